"""Files made to do harm: each one costs little to send and much to somebody who believes it."""

# ruff: noqa: E501 - one file a line: a table

import struct
import zlib
from collections.abc import Iterable

from PIL import Image

from support.corpus.seeds import deep, seeds
from support.images import bomb, encoded, photo


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk with its checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    width: int, height: int, colour: int, depth: int, chunks: Iterable[bytes] = (), rows: int | None = None
) -> bytes:
    """A PNG of zeros, with chunks before its pixels, and as many rows as are wanted."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    squeezed = zlib.compressobj(9)
    row = bytes(1 + (width * channels * depth + 7) // 8)
    body = b"".join(squeezed.compress(row) for _ in range(height if rows is None else rows)) + squeezed.flush()
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [png_chunk(b"IHDR", head), *chunks, png_chunk(b"IDAT", body), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff(tags: dict[int, tuple[int, int, int]], tail: bytes = b"") -> bytes:
    """A little-endian TIFF: tag to (type, count, value)."""
    entries = b"".join(struct.pack("<HHII", tag, *entry) for tag, entry in sorted(tags.items()))
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + tail


def _gray_tiff(width: int, height: int, **changed: tuple[int, int, int]) -> bytes:
    tags = {256: (4, 1, width), 257: (4, 1, height), 258: (3, 1, 8), 259: (3, 1, 1), 262: (3, 1, 1), 273: (4, 1, 8),
            277: (3, 1, 1), 278: (4, 1, height), 279: (4, 1, width * height)}  # fmt: skip
    return tiff(tags | {int(tag.removeprefix("tag_")): entry for tag, entry in changed.items()}, bytes(5000))


def _segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2) + body


def _with_segments(data: bytes, segments: Iterable[bytes]) -> bytes:
    return data[:2] + b"".join(segments) + data[2:]


def _exif_of_overlapping_tags(segments: int) -> list[bytes]:
    """EXIF whose 500 tags each claim all the bytes there are."""
    size = segments * 65000
    tags = {0x9000 + number: (7, size - 8000, 8) for number in range(500)}
    block = tiff({0x0112: (3, 1, 6)} | tags)
    block += bytes(size - len(block))
    return [_segment(0xE1, b"Exif\0\0" + block[at : at + 65000]) for at in range(0, size, 65000)]


def _many_scans(times: int) -> bytes:
    data = seeds()["jpeg-progressive"]
    last, end = data.rindex(b"\xff\xda"), data.rindex(b"\xff\xd9")
    return data[:end] + data[last:end] * times + data[end:]


def _gif(width: int, height: int, blocks: bytes = b"", frame: tuple[int, int] | None = None) -> bytes:
    picture = b"," + struct.pack("<HHHHB", 0, 0, *(frame or (width, height)), 0) + b"\x02\x02\x4c\x01\0"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + blocks + picture + b";"


def _bmp(width: int, height: int, bits: int, compression: int, size: int = 40, body: bytes = bytes(4000)) -> bytes:
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, len(body), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54) + head + body


def _webp(width: int, height: int, **options: object) -> bytes:
    return encoded(Image.new("RGB", (width, height)), "WEBP", lossless=True, quality=0, method=0, **options)


def bombs() -> dict[str, bytes]:
    """Few bytes, many pixels: some beyond the limits, some just within."""
    return {
        "bomb-png-20000x20000": bomb(),
        "bomb-png-rgba-4000x4000": png(4000, 4000, 6, 8),
        "bomb-png-rgba-4000x3000": png(4000, 3000, 6, 8),
        "bomb-png-16-bit-rgb-4000x3000": png(4000, 3000, 2, 16),
        "bomb-png-16-bit-gray-4000x4000": png(4000, 4000, 0, 16),
        "bomb-png-1-bit-4000x4000": png(4000, 4000, 0, 1),
        "bomb-png-strip-15000000x1": png(15_000_000, 1, 0, 1),
        "bomb-png-2-to-the-31": png(1, 1, 0, 8).replace(struct.pack(">II", 1, 1), struct.pack(">II", 2**31 - 1, 2**31 - 1)),
        "bomb-gif-65535x65535": _gif(65535, 65535),
        "bomb-gif-4000x4000": _gif(4000, 4000),
        "bomb-gif-frame-beyond-its-screen": _gif(10, 10, frame=(65535, 65535)),
        "bomb-webp-16383x16383": b"RIFF\0\1\0\0WEBPVP8L\0\1\0\0\x2f" + (16382 | 16382 << 14).to_bytes(4, "little") + bytes(240),
        "bomb-webp-4000x3000": _webp(4000, 3000),
        "bomb-webp-1700x1700": _webp(1700, 1700),
        "bomb-tiff-20000x20000": _gray_tiff(20000, 20000),
        "bomb-tiff-4000x3000-without-pixels": _gray_tiff(4000, 3000),
        "bomb-bmp-30000x30000": _bmp(30000, 30000, 24, 0),
        "bomb-bmp-4000x3000-without-pixels": _bmp(4000, 3000, 24, 0),
        "bomb-jpeg-65500x65500": seeds()["jpeg"].replace(struct.pack(">HH", 80, 120), struct.pack(">HH", 65500, 65500), 1),
        "bomb-jpeg-4000x3900-without-pixels": seeds()["jpeg"].replace(struct.pack(">HH", 80, 120), struct.pack(">HH", 3900, 4000), 1),
        "bomb-jpeg-progressive-cmyk-4000x3900": encoded(Image.new("CMYK", (4000, 3900)), "JPEG", progressive=True),
        "bomb-jpeg-progressive-3800x3000": encoded(Image.new("RGB", (3800, 3000)), "JPEG", progressive=True),
        "bomb-jpeg-4000x4000": encoded(Image.new("RGB", (4000, 4000)), "JPEG"),
    }  # fmt: skip


def loops() -> dict[str, bytes]:
    """Few bytes, many steps: what a reader written in Python would walk for minutes, or copy again and again."""
    jpeg, picture = seeds()["jpeg"], photo("chelsea", (120, 80))
    text = png_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 20), 9))
    return {
        "loop-jpeg-endless-segments": b"\xff\xd8" + b"\xff\xe1\x00\x02" * (1 << 20),
        "loop-jpeg-endless-fill-bytes": b"\xff\xd8" + b"\xff" * (1 << 20),
        "loop-jpeg-4000-comments": _with_segments(jpeg, [_segment(0xFE, b"a cat")] * 4000),
        "loop-jpeg-exif-overlapping": _with_segments(jpeg, _exif_of_overlapping_tags(60)),
        "loop-jpeg-multi-picture-index": _with_segments(jpeg, [_segment(0xE2, b"MPF\0" + tiff({0xB001: (4, 1, 1 << 30)}))]),
        "loop-jpeg-photoshop-blocks": _with_segments(jpeg, [_segment(0xED, b"Photoshop 3.0\0" + b"8BIM\4\4\0\0\0\0\0\0" * 5000)] * 50),
        "loop-jpeg-2000-scans": _many_scans(2000),
        "loop-jpeg-50-scans": _many_scans(40),
        "loop-png-a-million-chunks": png(64, 64, 2, 8, [png_chunk(b"tEXt", b"")] * 600_000),
        "loop-png-200-text-bombs": png(64, 64, 2, 8, [text] * 200),
        "loop-png-profile-bomb": png(64, 64, 2, 8, [png_chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 24), 9))]),
        "loop-png-split-pixels": png(64, 64, 2, 8)[:33] + png_chunk(b"IDAT", b"") * 600_000 + png(64, 64, 2, 8)[33:],
        "loop-gif-comment-of-a-million-blocks": _gif(10, 10, b"!\xfe" + b"\1a" * (1 << 20) + b"\0"),
        "loop-gif-junk-between-blocks": _gif(10, 10, bytes(1 << 20)),
        "loop-gif-2000-frames": encoded(picture.quantize(16), "GIF", save_all=True,
                                        append_images=[picture.rotate(n).quantize(16) for n in range(60)] * 5),
        "loop-webp-150-frames": encoded(picture, "WEBP", save_all=True, append_images=[picture.rotate(n) for n in range(150)]),
        "loop-png-60-frames": encoded(picture, "PNG", save_all=True, append_images=[picture.rotate(n) for n in range(60)]),
        "loop-tiff-a-million-strips": _gray_tiff(4, 1 << 20, tag_273=(4, 1 << 20, 200), tag_278=(4, 1, 1)) + bytes(1 << 22),
        "loop-tiff-65535-tags": b"II*\0\x08\0\0\0\xff\xff" + struct.pack("<HHII", 700, 7, 1 << 22, 8) * 65535,
        "loop-tiff-500-overlapping-tags": tiff({0x9000 + n: (7, 1 << 22, 8) for n in range(500)}, bytes(1 << 22)),
        "loop-tiff-tiles": _gray_tiff(64, 64, tag_322=(4, 1, 20000), tag_323=(4, 1, 20000), tag_324=(4, 1, 8)),
        "loop-tiff-lzw": encoded(photo("chelsea", (64, 64)), "TIFF", compression="tiff_lzw"),
        "loop-tiff-compression-of-another-type": _gray_tiff(64, 64, tag_259=(1, 1, 5)),
        "loop-tiff-samples-per-pixel": _gray_tiff(64, 64, tag_277=(3, 1, 65535)),
        "loop-bmp-run-length": _bmp(4000, 3000, 8, 1, body=bytes(1024) + b"\1\0" * (1 << 20)),
        "loop-deep-tiff": encoded(deep(picture), "TIFF"),
    }  # fmt: skip


def lies() -> dict[str, bytes]:
    """Headers that contradict the rest, or make no sense."""
    jpeg, plain = seeds()["jpeg"], png(64, 64, 2, 8)
    frame = jpeg.index(b"\xff\xc0")
    small = jpeg[frame : frame + 5] + (16).to_bytes(2) * 2 + jpeg[frame + 9 : frame + 19]
    return {
        "lie-jpeg-two-frames": jpeg[: frame + 19] + small + jpeg[frame + 19 :],
        "lie-jpeg-no-frame": jpeg[:frame] + jpeg[frame + 19 :],
        "lie-jpeg-no-tables": jpeg[:2] + jpeg[frame:],
        "lie-jpeg-200-components": jpeg[: frame + 9] + b"\xc8" + jpeg[frame + 10 :],
        "lie-jpeg-zero-sampling": jpeg[: frame + 11] + b"\0" + jpeg[frame + 12 :],
        "lie-jpeg-arithmetic": jpeg[: frame + 1] + b"\xc9" + jpeg[frame + 2 :],
        "lie-jpeg-lossless": jpeg[: frame + 1] + b"\xc3" + jpeg[frame + 2 :],
        "lie-jpeg-12-bit": jpeg[: frame + 4] + b"\x0c" + jpeg[frame + 5 :],
        "lie-jpeg-no-height": jpeg[: frame + 5] + bytes(2) + jpeg[frame + 7 :],
        "lie-jpeg-only-a-beginning": b"\xff\xd8\xff",
        "lie-jpeg-begin-and-end": b"\xff\xd8\xff\xd9",
        "lie-jpeg-long-tail": jpeg + bytes(1 << 20),
        "lie-png-wrong-checksum": plain[:60] + bytes((plain[60] ^ 1,)) + plain[61:],
        "lie-png-too-few-rows": png(64, 64, 2, 8, rows=10),
        "lie-png-too-many-rows": png(64, 64, 2, 8, rows=5000),
        "lie-png-no-palette": png(64, 64, 3, 8),
        "lie-png-no-width": plain.replace(struct.pack(">II", 64, 64), struct.pack(">II", 0, 64)),
        "lie-png-7-bit": plain[:24] + b"\7" + plain[25:],
        "lie-png-no-pixels": plain[:33] + png_chunk(b"IEND", b""),
        "lie-png-chunk-of-4-gb": plain[:33] + b"\xff\xff\xff\xffIDAT" + plain[41:],
        "lie-gif-no-picture": _gif(10, 10)[:19] + b";",
        "lie-gif-no-size": _gif(0, 10),
        "lie-webp-chunk-too-long": seeds()["webp"][:16] + b"\xff\xff\xff\x7f" + seeds()["webp"][20:],
        "lie-webp-unknown-first-chunk": b"RIFF\x20\0\0\0WEBPABCD" + bytes(40),
        "lie-webp-canvas-larger-than-its-picture": seeds()["webp-alpha"][:24] + struct.pack("<I", 1000)[:3] + seeds()["webp-alpha"][27:],
        "lie-tiff-directory-nowhere": b"II*\0\xff\xff\xff\x7f" + bytes(100),
        "lie-tiff-no-size": tiff({262: (3, 1, 1)}),
        "lie-tiff-strips-nowhere": _gray_tiff(64, 64, tag_273=(4, 1, 1 << 30)),
        "lie-tiff-float-pixels": _gray_tiff(8, 8, tag_258=(3, 1, 32), tag_339=(3, 1, 3)),
        "lie-tiff-directory-of-itself": b"II*\0\x04\0\0\0" + bytes(100),
        "lie-bmp-header-of-99-bytes": _bmp(10, 10, 24, 0, size=9999),
        "lie-bmp-no-size": _bmp(0, 0, 24, 0),
        "lie-bmp-top-down": _bmp(20, -20, 24, 0),
        "lie-bmp-no-pixels": _bmp(20, 20, 24, 0, body=b""),
    }  # fmt: skip
