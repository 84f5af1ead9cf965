"""Small valid files of every kind that is taken: what mutations and truncations start from."""

import io
from functools import cache

import numpy as np
from PIL import Image, ImageCms, PngImagePlugin

from support.images import encoded, exif, photo

SIZE = 120, 80


def _with_alpha(picture: Image.Image) -> Image.Image:
    layer = picture.convert("RGBA")
    layer.putalpha(Image.linear_gradient("L").resize(picture.size))
    return layer


def deep(picture: Image.Image) -> Image.Image:
    """16-bit gray."""
    return Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)


def interlaced_png(picture: Image.Image) -> bytes:
    """An Adam7 PNG, which Pillow reads and does not write: one pass of the seven holds pixels, for a 1 x 1 picture."""
    import struct
    import zlib

    width, height = picture.size
    pixels = np.asarray(picture.convert("RGB"))
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = [
        b"\0" + row.tobytes()
        for left, top, across, down in passes
        for row in pixels[top::down, left::across]
        if row.size
    ]

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )


@cache
def seeds() -> dict[str, bytes]:
    """Name to file; every one of them is answered with labels."""
    picture, other = photo("chelsea", SIZE), photo("coffee", SIZE)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "a cat " * 50, zip=True)
    text.add_itxt("Title", "a cat", "en", "Title", zip=True)
    palette = picture.quantize(64)
    multi = io.BytesIO()
    picture.copy().save(multi, "MPO", save_all=True, append_images=[other.copy()])  # it leaves its options in them
    rich = {"exif": exif(6), "icc_profile": profile}
    return {
        "jpeg": encoded(picture, "JPEG", quality=85),
        "jpeg-gray": encoded(picture.convert("L"), "JPEG"),
        "jpeg-progressive": encoded(picture, "JPEG", progressive=True, **rich),
        "jpeg-444": encoded(picture, "JPEG", subsampling=0, quality=95),
        "jpeg-restart": encoded(picture, "JPEG", restart_marker_rows=1),
        "jpeg-cmyk": encoded(picture.convert("CMYK"), "JPEG"),
        "jpeg-cmyk-progressive": encoded(picture.convert("CMYK"), "JPEG", progressive=True),
        "jpeg-metadata": encoded(picture, "JPEG", xmp=b"<x:xmpmeta/>", comment=b"a cat", **rich),
        "jpeg-several-pictures": multi.getvalue(),
        "png": encoded(picture, "PNG"),
        "png-gray": encoded(picture.convert("L"), "PNG"),
        "png-1-bit": encoded(picture.convert("1"), "PNG"),
        "png-16-bit": encoded(deep(picture), "PNG"),
        "png-gray-alpha": encoded(picture.convert("LA"), "PNG"),
        "png-alpha": encoded(_with_alpha(picture), "PNG"),
        "png-palette": encoded(palette, "PNG"),
        "png-palette-transparent": encoded(palette, "PNG", transparency=bytes(range(0, 256, 4))),
        "png-colour-transparent": encoded(picture, "PNG", transparency=(10, 20, 30)),
        "png-interlaced": interlaced_png(picture),
        "png-text": encoded(picture, "PNG", pnginfo=text, **rich),
        "png-animated": encoded(picture, "PNG", save_all=True, append_images=[other]),
        "webp": encoded(picture, "WEBP", quality=80),
        "webp-lossless": encoded(picture, "WEBP", lossless=True),
        "webp-alpha": encoded(_with_alpha(picture), "WEBP"),
        "webp-alpha-lossless": encoded(_with_alpha(picture), "WEBP", lossless=True),
        "webp-animated": encoded(picture, "WEBP", save_all=True, append_images=[other]),
        "webp-metadata": encoded(picture, "WEBP", xmp=b"<x:xmpmeta/>", **rich),
        "gif": encoded(picture, "GIF"),
        "gif-interlaced": encoded(palette, "GIF", interlace=True),
        "gif-transparent": encoded(palette, "GIF", transparency=3),
        "gif-animated": encoded(picture, "GIF", save_all=True, append_images=[other], disposal=2, comment=b"cats"),
        "bmp": encoded(picture, "BMP"),
        "bmp-palette": encoded(palette, "BMP"),
        "bmp-1-bit": encoded(picture.convert("1"), "BMP"),
        "bmp-alpha": encoded(_with_alpha(picture), "BMP"),
        "tiff": encoded(picture, "TIFF", exif=exif(6)),
        "tiff-16-bit": encoded(deep(picture), "TIFF"),
        "tiff-cmyk": encoded(picture.convert("CMYK"), "TIFF"),
        "tiff-alpha": encoded(_with_alpha(picture), "TIFF"),
        "tiff-several-pictures": encoded(picture.copy(), "TIFF", save_all=True, append_images=[other]),
    }
