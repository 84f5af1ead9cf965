"""A user's own photos: a folder of image files, with a CSV of labels if there is one, as a dataset."""

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from assay.errors import AssayError, DatasetError
from assay.packs.dataset import ImageEntry, write_dataset
from assay.vision.header import read_header

SUFFIXES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
"""Files of other names are passed over; a file with one of these names must be an image that the service takes."""


def pack_folder(folder: Path, labels: Path | None, name: str, out: Path) -> str:
    """Write a dataset of every image in a folder and return its digest; the same files give the same bytes.

    ``labels`` is a CSV with a header: ``file`` (relative to the folder) and ``label`` (the class's text) or
    ``class_index`` (in the yardstick's labels), and ``group`` if photos belong together; only the files it lists are
    taken. An image without a group is its own: the sha256 of its bytes. Raises ``DatasetError`` for a file that is not
    there or no image, or a CSV without those columns.
    """
    rows = _listed(folder, labels) if labels else _found(folder)
    if not rows:
        raise DatasetError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))})")
    entries = []
    for number, row in enumerate(rows):
        data = _image(folder, row["file"])
        index = row.get("class_index")
        entries.append(
            ImageEntry(
                file=f"images/{number:06d}{Path(row['file']).suffix.lower()}",
                group=row.get("group") or hashlib.sha256(data).hexdigest(),
                label=row.get("label") or None,
                class_index=_index(index, row["file"]) if index else None,
            )
        )

    def bodies() -> Iterator[bytes]:
        for row in rows:
            yield _image(folder, row["file"])

    return write_dataset(out, name, f"{len(rows)} images of {folder.resolve().name}", entries, bodies())


def _found(folder: Path) -> list[dict[str, str]]:
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder")
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [{"file": file} for file in files if Path(file).suffix.lower() in SUFFIXES]


def _listed(folder: Path, labels: Path) -> list[dict[str, str]]:
    try:
        with labels.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            columns = set(reader.fieldnames or ())
            rows = [{key: value for key, value in row.items() if key and isinstance(value, str)} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"cannot read {labels}: {error}") from error
    if "file" not in columns or not columns & {"label", "class_index"}:
        raise DatasetError(f"{labels} has columns {sorted(columns)}; it needs file, and label or class_index")
    if gone := [row["file"] for row in rows if not (folder / row["file"]).is_file()]:
        raise DatasetError(f"{labels} lists {gone[0]!r}, which is not in {folder}")
    return sorted(rows, key=lambda row: row["file"])


def _image(folder: Path, file: str) -> bytes:
    try:
        data = (folder / file).read_bytes()
        read_header(data)
    except OSError as error:
        raise DatasetError(f"cannot read {folder / file}: {error.strerror or error}") from error
    except AssayError as error:
        raise DatasetError(f"{folder / file} is not an image the service takes: {error}") from error
    return data


def _index(text: str, file: str) -> int:
    if not text.isdecimal():
        raise DatasetError(f"class_index of {file} is {text!r}, not a number")
    return int(text)
