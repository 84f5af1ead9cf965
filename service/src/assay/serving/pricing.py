"""What an image will cost, in CPU-milliseconds, told from its header before anything is decoded.

Decoding is linear in pixels for each format, scan type and scale; the table holds the slopes. How fast this machine is,
and what the model costs, is learned from the requests that were served.
"""

from assay.vision.decode import draft_scale
from assay.vision.geometry import Geometry
from assay.vision.header import ImageHeader

_BASELINE = {1: 3.6, 2: 2.1, 4: 1.3, 8: 1.2}
_PROGRESSIVE = {1: 9.0, 2: 6.9, 4: 5.1, 8: 4.8}
_OTHERS = {"PNG": 23.0, "WEBP": 12.0, "GIF": 7.0, "BMP": 1.5, "TIFF": 12.0}
"""CPU-ms per megapixel of the stored picture: one photo at 0.2 to 12 MP in each format, Pillow 13.0 with libjpeg-turbo
and zlib-ng, AMD EPYC with AVX-512, median of 7. JPEG by scale: the scaled decoder saves the transform, not the entropy
decoding, which is all there is to a progressive file. TIFF by its dearest common compression."""

_RESIZE = 3.5
_FIXED = 1.5
"""CPU-ms per megapixel decoded, and per request (the smallest resize, HTTP, JSON); measured alongside."""

_SMOOTHING = 0.05  # weight of one request: twenty requests, a quarter of a second at full load

_DEAR = 0.05
"""Share of the deadline: whoever waits behind an image whose pixels cost no more than that loses no more of theirs."""


def is_dear(pixels_ms: float, deadline_s: float) -> bool:
    """Whether an image costs so much up to the model's input, in CPU-ms, that others should not wait behind it."""
    return pixels_ms > _DEAR * deadline_s * 1000


class PriceList:
    """Prices images for one model. Not thread-safe: lives on the event loop."""

    def __init__(self, geometry: Geometry, model_ms: float) -> None:
        self._geometry = geometry
        self._model_ms = model_ms
        self._slowness = 1.0

    def _table_ms(self, header: ImageHeader) -> float:
        scale = draft_scale(header, self._geometry)
        if header.format == "JPEG":
            slope = (_PROGRESSIVE if header.progressive else _BASELINE)[scale]
        else:
            slope = _OTHERS[header.format]
        megapixels = header.pixels / 1e6
        return _FIXED + megapixels * (slope + _RESIZE / scale**2)

    @property
    def model_ms(self) -> float:
        """Estimated CPU-ms in the model: the part of every price that no header changes."""
        return self._model_ms

    def price_ms(self, header: ImageHeader) -> float:
        """Estimated CPU-ms of a request with this image."""
        return self._slowness * self._table_ms(header) + self._model_ms

    def tensor_price_ms(self) -> float:
        """Estimated CPU-ms of pixels that come as the model takes them: nothing to decode, nothing to resize."""
        return self._slowness * _FIXED + self._model_ms

    def learn_model(self, model_ms: float) -> None:
        """Take in what the model did cost, in CPU-ms."""
        self._model_ms += _SMOOTHING * (model_ms - self._model_ms)

    def learn(self, header: ImageHeader, pixels_ms: float, model_ms: float) -> None:
        """Take in what a request did cost: CPU-ms up to the model's input, and in the model."""
        self.learn_model(model_ms)
        self._slowness += _SMOOTHING * (pixels_ms / self._table_ms(header) - self._slowness)
