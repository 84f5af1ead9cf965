"""The two built-in datasets: crops of the natural colour photos that ship in scikit-image and scikit-learn.

Smoke sets: few source photos, many views of each. They show that quantisation did not break a model; they do not prove
anything about other photos, and whatever prints their numbers prints the number of groups. The two share no source,
so one can calibrate what the other judges.
"""

import hashlib
import io
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from PIL import Image

from assay.building.distributions import distribution_file
from assay.errors import BuildError
from assay.packs.builtin import SCHEME, builtin_dir
from assay.packs.dataset import ImageEntry, write_dataset

_SKIMAGE: Final = ("scikit-image", "skimage/data")
_SKLEARN: Final = ("scikit-learn", "sklearn/datasets/images")

MEGAPIXELS: Final = (0.2, 1.1)
"""Sizes of what users upload when a client resizes first (the input policy this service is built for)."""

AREA: Final = (0.35, 1.0)
"""Share of the source each view shows: less than a third rarely still shows the object."""

ASPECT: Final = (3 / 4, 4 / 3)
"""Width by height of a view: the range of phone and camera photos."""

QUALITY: Final = (75, 92)
"""JPEG quality: what browsers and phones write."""

MIRRORED: Final = 0.5
PROGRESSIVE: Final = 0.2
"""Shares of the views that are flipped, and that are progressive JPEGs (about a fifth of those on the web)."""


@dataclass(frozen=True)
class Photo:
    """A source photo. ``scene`` is the photo whose group it belongs to: two views of one scene are one group."""

    distribution: str
    folder: str
    file: str
    sha256: str
    credit: str
    scene: str | None = None

    @property
    def group(self) -> str:
        """Sha256 of the scene's source photo."""
        return self.scene or self.sha256


_MOTORCYCLE: Final = "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179"

JUDGING: Final = (
    Photo(
        *_SKIMAGE,
        "chelsea.png",
        "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
        "chelsea: Stefan van der Walt, CC0",
    ),
    Photo(
        *_SKIMAGE,
        "coffee.png",
        "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
        "coffee: Rachel Michetti, CC0",
    ),
    Photo(
        *_SKIMAGE,
        "rocket.jpg",
        "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        "rocket: SpaceX, public domain",
    ),
    Photo(
        *_SKLEARN,
        "flower.jpg",
        "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638",
        "flower: vultilion (flickr), CC BY 2.0",
    ),
)
"""Sources of ``photos``."""

CALIBRATION: Final = (
    Photo(
        *_SKIMAGE,
        "astronaut.png",
        "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        "astronaut: NASA, public domain",
    ),
    # A stereo pair is one scene: a pack calibrated on the left eye has seen the right one.
    Photo(*_SKIMAGE, "motorcycle_left.png", _MOTORCYCLE, "motorcycle: Middlebury Stereo 2014, CC0"),
    Photo(
        *_SKIMAGE,
        "motorcycle_right.png",
        "5fc913ae870e42a4b662314bc904d1786bcad8e2f0b9b67dba5a229406357797",
        "motorcycle: Middlebury Stereo 2014, CC0",
        scene=_MOTORCYCLE,
    ),
    Photo(
        *_SKLEARN,
        "china.jpg",
        "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29",
        "china: danielbuechele (flickr), CC BY 2.0",
    ),
)
"""Sources of ``photos-calibration``."""


@dataclass(frozen=True)
class PhotoSet:
    """A built-in dataset: its sources and how many views are taken of each."""

    sources: tuple[Photo, ...]
    views: int


SETS: Final = {
    # 150 views of 4 photos: 600 images give a bound of 99.5 % when all agree, were they independent.
    "photos": PhotoSet(JUDGING, 150),
    # Ranges settle after some dozens of images; 100 views of each source leave room to spare.
    "photos-calibration": PhotoSet(CALIBRATION, 100),
}
"""By the name on the command line."""


def build(name: str, out: Path, progress: Callable[[int, int], None] | None = None) -> str:
    """Build a dataset and return its digest; the same sources and Pillow give the same bytes.

    Raises ``BuildError`` for an unknown name or sources that are not installed.
    """
    if name not in SETS:
        raise BuildError(f"there is no dataset called {name!r}; known: {', '.join(sorted(SETS))}")
    chosen = SETS[name]
    paths = {p.file: distribution_file(p.distribution, f"{p.folder}/{p.file}", p.sha256) for p in chosen.sources}
    views = [(photo, index) for photo in chosen.sources for index in range(chosen.views)]
    entries = [
        ImageEntry(
            file=f"images/{number:04d}-{Path(photo.file).stem}.jpg", group=photo.group, label=None, class_index=None
        )
        for number, (photo, _) in enumerate(views)
    ]
    credits_ = "; ".join(dict.fromkeys(photo.credit for photo in chosen.sources))
    altered = f"{chosen.views} altered views (cropped, resized, flipped) of each of {len(paths)} photos"
    description = f"Smoke set: {altered}. {credits_}."

    def bodies() -> Iterator[bytes]:
        opened = {photo.file: _open(paths[photo.file]) for photo in chosen.sources}
        for number, (photo, index) in enumerate(views):
            # Seeded per view, so that a view does not depend on how many come before it.
            yield view(opened[photo.file], random.Random(f"{photo.file}/{index}"))  # noqa: S311 - not a secret
            if progress:
                progress(number + 1, len(views))

    return write_dataset(out, name, description, entries, bodies())


def find(uri: str, folder: Path, begin: Callable[[str], Callable[[int, int], None] | None]) -> Path | None:
    """Return the file of ``builtin:photos`` or ``builtin:photos-calibration``, built into a folder if it did not ship.

    None for every other URI. A dataset built before by the same sources and Pillow is not built again.
    """
    name = uri.removeprefix(SCHEME)
    if not uri.startswith(SCHEME) or name not in SETS:
        return None
    shipped = builtin_dir() / f"{name}.tar"
    if shipped.is_file():
        return shipped
    key = hashlib.sha256(repr((SETS[name], Path(__file__).read_bytes(), version("pillow"))).encode()).hexdigest()
    built = folder / f"{name}-{key[:16]}.tar"
    if not built.is_file():
        build(name, built, begin(f"building {name}"))
    return built


def view(photo: Image.Image, rng: random.Random) -> bytes:
    """Return one JPEG of a photo: a random part of it, perhaps mirrored, at 0.2 to 1.1 megapixels.

    Only ``rng.random`` is drawn from: its sequence is the one that Python promises to keep.
    """

    def between(low: float, high: float) -> float:
        return low + (high - low) * rng.random()

    aspect = math.exp(between(math.log(ASPECT[0]), math.log(ASPECT[1])))
    area = between(*AREA) * photo.width * photo.height
    width = min(photo.width, round(math.sqrt(area * aspect)))
    height = min(photo.height, round(math.sqrt(area / aspect)))
    left, top = round(between(0, photo.width - width)), round(between(0, photo.height - height))
    pixels = between(*MEGAPIXELS) * 1e6
    size = round(math.sqrt(pixels * width / height)), round(math.sqrt(pixels * height / width))
    image = photo.resize(size, Image.Resampling.BICUBIC, (left, top, left + width, top + height))
    if rng.random() < MIRRORED:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=round(between(*QUALITY)), progressive=rng.random() < PROGRESSIVE)
    return out.getvalue()


def _open(path: Path) -> Image.Image:
    """Decode a source (its bytes are pinned by sha256, so this cannot fail on what a stranger sent)."""
    with Image.open(path) as image:
        return image.convert("RGB")
