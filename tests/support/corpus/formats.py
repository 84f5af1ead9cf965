"""Files of every format that Pillow opens and this service does not take, and of what is no image at all."""

import io
import zipfile

from support.images import encoded, photo

_WRITTEN = {
    "AVIF": "RGB", "BLP": "P", "DDS": "RGB", "DIB": "RGB", "EPS": "RGB", "ICNS": "RGBA", "ICO": "RGB",
    "JPEG2000": "RGB", "MSP": "1", "PCX": "RGB", "PDF": "RGB", "PPM": "RGB", "PALM": "1", "QOI": "RGB", "SGI": "RGB",
    "SPIDER": "F", "TGA": "RGB", "XBM": "1",
}  # fmt: skip
"""Formats that Pillow can write, with a pixel type each of them takes."""

_SIGNATURES = {
    "BUFR": b"BUFR", "CUR": b"\0\0\2\0", "DCX": b"\xb1\x68\xde\x3a", "FITS": b"SIMPLE  =                    T",
    "FLI": b"\0\0\0\0\x11\xaf", "FPX": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "FTEX": b"FTEX",
    "GBR": b"\0\0\0\x1c\0\0\0\2", "GRIB": b"GRIB\0\0\0\1", "HDF5": b"\x89HDF\r\n\x1a\n",
    "IM": b"Image type: RGB image\r\n",
    "IMT": b"\nwidth 4\nheight 4\n",
    "IPTC": b"\x1c\x03\0\0\1\1", "MCIDAS": b"\0\0\0\0\0\0\0\4", "MPEG": b"\0\0\1\xb3", "PCD": b"PCD_",
    "PIXAR": b"\200\350\000\000", "PSD": b"8BPS\0\1", "SUN": b"\x59\xa6\x6a\x95", "WMF": b"\xd7\xcd\xc6\x9a\0\0",
    "XPM": b"/* XPM */", "XVTHUMB": b"P7 332",
}  # fmt: skip
"""How files of the other formats begin; what follows does not matter to a service that takes none of them."""


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("cat.jpg", encoded(photo(), "JPEG"))
    return file.getvalue()


def formats() -> dict[str, bytes]:
    """Name to file; every one of them is refused as a media type that is not taken."""
    small = photo("chelsea", (64, 64))
    found = {f"format-{name.lower()}": encoded(small.convert(mode), name) for name, mode in _WRITTEN.items()}
    found |= {f"format-{name.lower()}": start + bytes(4096) for name, start in _SIGNATURES.items()}
    return found | {
        "no-image-nothing": b"",
        "no-image-zero-bytes": bytes(5000),
        "no-image-text": b"I am a picture, honestly.",
        "no-image-html": b"<!doctype html><html><body><img src=cat.jpg></body></html>",
        "no-image-svg": b"<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>",
        "no-image-json": b'{"instances": [[0.5]]}',
        "no-image-zip": _zip(),
        "no-image-gzip": b"\x1f\x8b\x08" + bytes(200),
        "no-image-program": b"\x7fELF\2\1\1" + bytes(200),
        "no-image-mp4": b"\0\0\0\x18ftypmp42" + bytes(200),
        "no-image-heic": b"\0\0\0\x18ftypheic" + bytes(200),
        "no-image-wave": b"RIFF\x24\0\0\0WAVEfmt " + bytes(200),
        "no-image-base64": b"data:image/jpeg;base64,/9j/4AAQSkZJRg==",
        "no-image-byte-order-mark-before-jpeg": b"\xef\xbb\xbf" + encoded(small, "JPEG"),
    }
