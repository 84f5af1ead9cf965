"""A user's own photos: a folder of image files, with a CSV of labels if there is one, as a dataset."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from assay.building.listing import Row, read_listing
from assay.errors import AssayError, DatasetError
from assay.packs.dataset import MAX_IMAGE_BYTES, ImageEntry, write_dataset
from assay.vision.preprocess import load

SUFFIXES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
"""Files of other names are passed over; a file with one of these names must be an image that the service takes."""


class _Usual:
    """The geometry that images are decoded by, to see that they can be: most models' own."""

    resize_short = 256
    crop = 224
    interpolation = "bilinear"


def pack_folder(
    folder: Path,
    labels: Path | None,
    name: str,
    out: Path,
    classes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Write a dataset of every image in a folder and return its digest; the same files give the same bytes.

    ``labels`` is a CSV as `listing.read_listing` takes it; only the files it lists are taken. An image without a group
    is its own: the sha256 of its bytes. ``classes`` bounds the class indices, where it is known. Every image is decoded
    as the service would. Raises ``DatasetError``, with the line of the CSV where there is one, for a file that is not
    there or no image, and for a CSV that does not fit.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder")
    rows = read_listing(labels, folder, classes) if labels else _found(folder)
    if not rows:
        raise DatasetError(f"{labels or folder} has no images ({', '.join(sorted(SUFFIXES))})")
    entries = []
    for number, row in enumerate(rows):
        data = _image(folder, row)
        entries.append(
            ImageEntry(
                file=f"images/{number:06d}{Path(row.file).suffix.lower()}",
                group=row.group or hashlib.sha256(data).hexdigest(),
                label=row.label or None,
                class_index=row.class_index,
            )
        )
        if progress:
            progress(number + 1, len(rows))

    def bodies() -> Iterator[bytes]:
        for row in rows:
            yield _bytes(folder, row)

    return write_dataset(out, name, f"{len(rows)} images of {folder.resolve().name}", entries, bodies())


def _found(folder: Path) -> Sequence[Row]:
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [Row(file) for file in files if Path(file).suffix.lower() in SUFFIXES]


def _bytes(folder: Path, row: Row) -> bytes:
    path = folder / row.file
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise DatasetError(f"{row.where}{path} has more than {MAX_IMAGE_BYTES} bytes, the most of an image here")
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{row.where}cannot read {path}: {error.strerror or error}") from error


def _image(folder: Path, row: Row) -> bytes:
    data = _bytes(folder, row)
    try:
        load(data, _Usual())
    except AssayError as error:
        raise DatasetError(f"{row.where}{folder / row.file} is not an image the service takes: {error}") from error
    return data
