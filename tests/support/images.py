"""Real photos of installed wheels, encoded as a test needs them."""

import io
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from PIL import Image

PHOTOS = {
    "chelsea": ("scikit-image", "skimage/data/chelsea.png"),
    "coffee": ("scikit-image", "skimage/data/coffee.png"),
    "astronaut": ("scikit-image", "skimage/data/astronaut.png"),
    "motorcycle": ("scikit-image", "skimage/data/motorcycle_left.png"),
    "rocket": ("scikit-image", "skimage/data/rocket.jpg"),
    "flower": ("scikit-learn", "sklearn/datasets/images/flower.jpg"),
    "china": ("scikit-learn", "sklearn/datasets/images/china.jpg"),
}


@cache
def _read(name: str) -> bytes:
    package, file = PHOTOS[name]
    return Path(str(distribution(package).locate_file(file))).read_bytes()


def photo(name: str = "chelsea", size: tuple[int, int] | None = None) -> Image.Image:
    """A photo as RGB; resized to ``size`` if given."""
    with Image.open(io.BytesIO(_read(name))) as image:
        picture = image.convert("RGB")
    return picture.resize(size, Image.Resampling.BICUBIC) if size else picture


def encoded(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    """An image as a file in memory."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def jpeg(name: str = "chelsea", size: tuple[int, int] | None = None, **options: object) -> bytes:
    """A photo as a JPEG file."""
    return encoded(photo(name, size), "JPEG", **{"quality": 90, **options})


def exif(orientation: int) -> bytes:
    """An EXIF block that says how to turn the picture."""
    block = Image.Exif()
    block[274] = orientation
    return block.tobytes()


@cache
def bomb(side: int = 20000) -> bytes:
    """A small PNG of very many pixels (50 KB for 20000 x 20000)."""
    return encoded(Image.new("1", (side, side)), "PNG")


def deep_png() -> bytes:
    """A photo in 16-bit gray."""
    gray = np.asarray(photo().convert("L")).astype(np.uint16) * 257
    return encoded(Image.fromarray(gray), "PNG")


def two_step(image: Image.Image, resize_short: int, crop: int, resample: Image.Resampling) -> list[np.ndarray]:
    """The reference preprocessing, written down plainly: resize all of the picture, then crop.

    Twice: the horizontal pass first, as Pillow did until 12, and the vertical pass first. Between the passes pixels are
    rounded to 8 bits, so the two differ by up to 0.3 of 255 on average; Pillow 13 takes the cheaper one.
    """
    width, height = image.size
    if width <= height:
        new = resize_short, int(resize_short * height / width)
    else:
        new = int(resize_short * width / height), resize_short
    left, top = round((new[0] - crop) / 2), round((new[1] - crop) / 2)
    box = left, top, left + crop, top + crop
    across_first = image.resize((new[0], height), resample).resize(new, resample).crop(box)
    down_first = image.resize((width, new[1]), resample).resize(new, resample).crop(box)
    return [np.asarray(across_first), np.asarray(down_first)]
