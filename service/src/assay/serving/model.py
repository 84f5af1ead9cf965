"""The model a process serves: found, fetched, verified, loaded and warmed up, or refused with a reason."""

import statistics
import time
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

from assay.errors import PackError, PrecisionMismatchError
from assay.inference.engine import Engine
from assay.packs.archive import MAX_PACK_BYTES, Pack, read_pack
from assay.packs.fetch import fetch
from assay.serving.stages import classify
from assay.settings import Settings
from assay.vision.header import read_header

_WARM_UPS = 5
"""Passes before readiness: the first allocates ONNX Runtime's buffers, the rest give a median to price requests by."""

_CONTRASTS = 4  # full, a half, a quarter, an eighth of the range

_BATCH_ROUNDING = 1e-3
"""Most that a logit may differ in a batch, as a share of the spread of all: far above the rounding of 32-bit sums, far
below what dynamic quantisation does."""

_WARM_UP_SIZE = (1024, 768)  # 0.8 MP, the middle of the uploads this service is made for


@dataclass(frozen=True)
class Model:
    """A pack in service, and where it came from."""

    uri: str
    pack: Pack
    engine: Engine


def chosen_uri(settings: Settings) -> tuple[str, str]:
    """URI and digest of the pack to serve: the variant's, else the base."""
    if settings.model_uri:
        return settings.model_uri, settings.model_digest
    return settings.base_model_uri, settings.base_model_digest


def open_pack(settings: Settings) -> tuple[str, Pack]:
    """Fetch, verify and read the pack of these settings.

    Raises the errors of ``assay.packs``, and `PrecisionMismatchError` for a pack of another precision than was asked.
    """
    uri, digest = chosen_uri(settings)
    path = fetch(uri, digest or None, cache_dir=settings.cache_dir, max_bytes=MAX_PACK_BYTES)
    pack = read_pack(path, digest or None)
    wanted = settings.model_precision if settings.model_uri else ""
    if wanted and pack.manifest.precision != wanted:
        raise PrecisionMismatchError(f"The pack at {uri} is {pack.manifest.precision}, but {wanted} was asked for.")
    return uri, pack


def _warm_up_photo() -> bytes:
    """A JPEG with detail in it; made here, because a service carries no photos."""
    noise = np.random.default_rng(0).integers(0, 256, (_WARM_UP_SIZE[1] // 8, _WARM_UP_SIZE[0] // 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(noise).resize(_WARM_UP_SIZE, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    return file.getvalue()


def load_model(settings: Settings) -> Model:
    """The model of these settings, not yet warm. Blocks for a second, longer where the pack is fetched.

    Raises `CpuFeatureMissingError` where this CPU lacks what the pack requires, and what `open_pack` raises.
    """
    uri, pack = open_pack(settings)
    return Model(uri, pack, Engine(pack))


def batches_alike(model: Model, batch_max: int) -> bool:
    """Run every batch size up to ``batch_max`` once; whether an image's logits are what they are alone.

    They are not where a model computes something over the whole batch, as dynamic quantisation does with its ranges:
    then an answer would depend on who else asks.
    """
    crop = model.engine.crop
    images = np.random.default_rng(1).integers(0, 256, (batch_max, crop, crop, 3), dtype=np.uint8)
    # Each of its own contrast: equal ranges would hide that they are shared.
    images >>= (np.arange(batch_max, dtype=np.uint8) % _CONTRASTS)[:, None, None, None]
    alone = np.concatenate([model.engine.infer(image[None]) for image in images])
    allowed = _BATCH_ROUNDING * float(alone.max() - alone.min())
    return all(
        np.abs(model.engine.infer(images[:size]) - alone[:size]).max() <= allowed for size in range(2, batch_max + 1)
    )


def warm_up(model: Model) -> float:
    """Run the whole path of a request a few times on this thread; median CPU-ms in the model.

    Raises `PackError` for a model that fails, or whose scores are not finite.
    """
    photo = _warm_up_photo()
    header = read_header(photo)
    pack, engine = model.pack, model.engine
    passes = [classify(photo, header, pack, engine, top_k=1, started=time.perf_counter()) for _ in range(_WARM_UPS)]
    if not all(np.isfinite(score) for result in passes for _, score in result.predictions):
        raise PackError(f"The model of pack {pack.manifest.name} answers with numbers that are not finite.")
    return statistics.median(result.model_cpu_s for result in passes[1:]) * 1000
