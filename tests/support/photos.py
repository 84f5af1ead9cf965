"""Real photos for tests, from wheels that are installed anyway."""

import io
from importlib.metadata import distribution

from PIL import Image


def chelsea_jpeg(quality: int = 90) -> bytes:
    """A photo of a cat (scikit-image's `chelsea`, 451 x 300) as JPEG."""
    path = distribution("scikit-image").locate_file("skimage/data/chelsea.png")
    buffer = io.BytesIO()
    with Image.open(str(path)) as image:
        image.convert("RGB").save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
