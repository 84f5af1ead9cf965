"""What it costs to get from a file to the model's pixels, by megapixels and kind of file, the plain way and as served.

The plain way is the reference preprocessing as it is usually written: decode all, resize all, crop. As served is
``vision``: a large JPEG is decoded at a reduced size, and the crop is resized in one step.
"""

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PIL import Image

from assay.bench.photos import ENCODINGS, made
from assay.bench.report import Chart, Column, Report, now, versions
from assay.bench.timing import Call, Sample, Timings, interleave
from assay.errors import BenchError
from assay.vision.decode import decode, draft_scale
from assay.vision.errors import ImageError
from assay.vision.geometry import Geometry, resized
from assay.vision.header import read_header
from assay.vision.preprocess import preprocess

SIZES: Final = (0.2, 0.5, 1.1, 2.0, 12.0)
"""Megapixels: from what a client sends that resizes first, to what a phone takes."""

MAX_MEGAPIXELS: Final = 89.0
"""Above it Pillow warns of decompression bombs."""

PHOTOS: Final = 8
"""Photos of each size: detail, and with it the cost, differs by a third between photos."""

PLAIN: Final = "full, two-step"
SERVED: Final = "as served"

_FILTERS: Final = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}

COLUMNS: Final = (
    Column(key="megapixels", title="size", unit="MP", decimals=1),
    Column(key="file", title="file"),
    Column(key="file_kb", title="file", unit="KB", decimals=0),
    Column(key="path", title="path"),
    Column(key="reduction", title="decoded at"),
    Column(key="decode_cpu_ms", title="decode", unit="CPU-ms", decimals=2),
    Column(key="preprocess_cpu_ms", title="preprocess", unit="CPU-ms", decimals=2),
    Column(key="cpu_ms", title="together", unit="CPU-ms", decimals=2),
    Column(key="cpu_p10_ms", title="p10", unit="CPU-ms", decimals=2),
    Column(key="cpu_p90_ms", title="p90", unit="CPU-ms", decimals=2),
    Column(key="wall_p50_ms", title="p50", unit="ms", decimals=2),
    Column(key="of_plain", title=f"of {PLAIN}", decimals=2),
)


@dataclass(frozen=True)
class Shape:
    """How the model wants its input; a `Geometry`."""

    resize_short: int = 256
    crop: int = 224
    interpolation: str = "bicubic"


def plain(data: bytes, geometry: Geometry) -> Sample:
    """Decode the whole picture, resize all of it, then crop; say what both halves took."""
    wall, start = time.perf_counter(), time.thread_time()
    with Image.open(io.BytesIO(data)) as image:
        picture = image.convert("RGB")
    middle = time.thread_time()
    size = resized(*picture.size, geometry.resize_short)
    left, top = (round((side - geometry.crop) / 2) for side in size)
    box = left, top, left + geometry.crop, top + geometry.crop
    picture.resize(size, _FILTERS[geometry.interpolation]).crop(box)
    end = time.thread_time()
    return Sample(time.perf_counter() - wall, end - start, (middle - start, end - middle))


def served(data: bytes, geometry: Geometry) -> Sample:
    """Take the service's way to the same pixels; say what both stages took (reading the header is part of decode)."""
    wall, start = time.perf_counter(), time.thread_time()
    header = read_header(data, int(MAX_MEGAPIXELS * 1e6))
    picture = decode(data, header, geometry)
    middle = time.thread_time()
    preprocess(picture, geometry, header.upright_size, header.decoded_orientation)
    end = time.thread_time()
    return Sample(time.perf_counter() - wall, end - start, (middle - start, end - middle))


def measure(
    photos: Sequence[Image.Image],
    *,
    sizes: Sequence[float] = SIZES,
    formats: Sequence[str] = ("jpeg",),
    geometry: Geometry | None = None,
    calls: int = 100,
    warmups: int = 10,
    seed: int = 1,
    max_seconds: float = 240,
    progress: Callable[[str], Callable[[int, int], None] | None] | None = None,
) -> Report:
    """Time both ways for every size and kind of file, all of them in turns, photo by photo.

    Raises ``BenchError`` for a size that cannot be, and when the time does not do for two calls of each.
    """
    if not sizes or not all(0 < size <= MAX_MEGAPIXELS for size in sizes):
        raise BenchError(f"sizes are megapixels, above 0 and up to {MAX_MEGAPIXELS:g}; got {list(sizes)}")
    started, shape, begin = now(), geometry or Shape(), progress or (lambda _step: None)
    kinds = [kind for name in formats for kind in ENCODINGS[name]]
    files = made(photos, sizes, kinds, seed, begin("making photos"))
    contenders = {
        _name(size, kind, path): _calls(take, files[size, kind], shape)
        for size, kind in files
        for path, take in ((PLAIN, plain), (SERVED, served))
    }
    try:
        timings = interleave(contenders, calls, warmups, seed, max_seconds, begin("timing"))
    except ImageError as error:
        raise BenchError(f"a photo made for this is refused: {error}") from error
    rows = [
        _row(size, kind, path, files[size, kind], shape, timings) for size, kind in files for path in (PLAIN, SERVED)
    ]
    return Report(
        bench="input",
        title="Decode and preprocess, by megapixels",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=_notes(len(photos), shape, timings, calls, max_seconds),
        charts=(
            Chart(
                kind="lines", x="megapixels", y="cpu_ms", series=("file", "path"), low="cpu_p10_ms", high="cpu_p90_ms",
                title="CPU time from file to pixels: mean, and 10th to 90th percentile", logarithmic=True,
            ),
        ),
        versions=versions("pillow", "numpy"),
        started_at=started,
    )  # fmt: skip


def _name(size: float, kind: str, path: str) -> str:
    return f"{size} {kind} {path}"


def _calls(take: Callable[[bytes, Geometry], Sample], files: Sequence[bytes], geometry: Geometry) -> Call:
    return lambda number: take(files[number % len(files)], geometry)


def _row(
    size: float, kind: str, path: str, files: Sequence[bytes], geometry: Geometry, timings: Timings
) -> dict[str, str | int | float | None]:
    name = _name(size, kind, path)
    cpu = timings.cpu(name)
    headers = [read_header(data, int(MAX_MEGAPIXELS * 1e6)) for data in files]
    scales = {1} if path == PLAIN else {draft_scale(header, geometry) for header in headers}
    return {
        "megapixels": size,
        "file": kind,
        "file_kb": sum(map(len, files)) / len(files) / 1e3,
        "path": path,
        "reduction": " and ".join("whole" if scale == 1 else f"1/{scale}" for scale in sorted(scales)),
        "decode_cpu_ms": timings.part(name, 0).mean,
        "preprocess_cpu_ms": timings.part(name, 1).mean,
        "cpu_ms": cpu.mean,
        "cpu_p10_ms": cpu.p10,
        "cpu_p90_ms": cpu.p90,
        "wall_p50_ms": timings.wall(name).p50,
        "of_plain": timings.ratio(name, _name(size, kind, PLAIN), cpu=True),
    }


def _notes(photos: int, shape: Geometry, timings: Timings, calls: int, max_seconds: float) -> tuple[str, ...]:
    notes = [
        f"Photos: {photos}, brought to each size with noise on top, so that there is detail to decode.",
        "A phone's own file of 12 MP has 3 to 6 MB and costs more where it has more bytes; --photos takes yours.",
        f"Short side to {shape.resize_short}, then the centre {shape.crop} x {shape.crop}, {shape.interpolation}.",
        f"{PLAIN}: decode all, resize all, crop.",
        f"{SERVED}: a large JPEG decoded at a reduced size, one resize of the crop.",
        f"Means over {timings.rounds} calls of each, all taking turns; p10 and p90 are of both stages together.",
        f"'of {PLAIN}': median of the ratios of CPU times of one photo in one round.",
    ]
    if not timings.complete:
        notes.append(f"Ended after {max_seconds:g} s, before the {calls} calls that were asked for.")
    return tuple(notes)
