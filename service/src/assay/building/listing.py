"""Reads the CSV that says what a folder's images show."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from assay.errors import DatasetError
from assay.packs.dataset import MAX_IMAGES

_COLUMNS: Final = ("file", "label", "class_index", "group")

_MAX_BYTES: Final = 64 << 20
"""600 bytes for each of the most images a dataset may have."""

_MAX_CLASSES: Final = 1 << 20
"""No list of labels fits more into its 4 MiB; a larger index is another column, or a typing error."""


@dataclass(frozen=True)
class Row:
    """One image: its file, relative to the folder, and what is known of it. ``where`` is its line, for messages."""

    file: str
    label: str = ""
    class_index: int | None = None
    group: str = ""
    where: str = ""


def read_listing(path: Path, folder: Path, classes: int | None = None) -> Sequence[Row]:
    """Read a CSV with a header, in order of the file names.

    Columns: ``file`` (relative to the folder), and ``label`` (the class's text) or ``class_index`` (in the yardstick's
    labels, from 0), and ``group`` if photos belong together; others are passed over. Raises ``DatasetError`` with the
    line for a file that is not there, listed twice or outside the folder, a row of another length than the header, and
    an index that is no number or not below ``classes``.
    """
    rows: dict[str, Row] = {}
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DatasetError(f"{path} has more than {_MAX_BYTES} bytes: split the dataset")
        with path.open(newline="", encoding="utf-8-sig") as stream:  # spreadsheets begin with a byte order mark
            reader = csv.reader(stream, strict=True)
            header = _header(path, next(reader, []))
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                where = f"{path}, line {reader.line_num}: "
                if len(cells) != len(header):
                    raise DatasetError(
                        f"{where}{len(cells)} values for {len(header)} columns: put quotes around a text with commas"
                    )
                row = _row(where, dict(zip(header, map(str.strip, cells), strict=True)), folder, classes)
                if first := rows.get(row.file):
                    raise DatasetError(f"{where}{row.file!r} is listed again, see {first.where.removesuffix(': ')}")
                rows[row.file] = row
                if len(rows) > MAX_IMAGES:
                    raise DatasetError(f"{path} lists more than {MAX_IMAGES} images: split the dataset")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"cannot read {path} as a CSV in UTF-8: {error}") from error
    return [rows[file] for file in sorted(rows)]


def _header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    if doubled := [name for name in _COLUMNS if header.count(name) > 1]:
        raise DatasetError(f"{path}, line 1: the column {doubled[0]} is there twice")
    if "file" not in header or not {"label", "class_index"} & set(header):
        hint = "; separate them with commas" if len(cells) == 1 and any(mark in cells[0] for mark in ";\t") else ""
        raise DatasetError(f"{path}, line 1: columns {header}; it needs file, and label or class_index{hint}")
    return header


def _row(where: str, values: dict[str, str], folder: Path, classes: int | None) -> Row:
    file = PurePosixPath(values["file"])
    if not values["file"]:
        raise DatasetError(f"{where}no file is named")
    if file.is_absolute() or ".." in file.parts or "\\" in values["file"] or "\0" in values["file"]:
        raise DatasetError(f"{where}{values['file']!r} is outside the folder: name files below {folder}, with /")
    if not (folder / file).is_file():
        raise DatasetError(f"{where}{values['file']!r} is not in {folder}")
    index = _index(where, values.get("class_index", ""), classes)
    return Row(file.as_posix(), values.get("label", ""), index, values.get("group", ""), where)


def _index(where: str, text: str, classes: int | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise DatasetError(f"{where}class_index {text!r} is not a whole number from 0 (label is the column for texts)")
    limit = classes or _MAX_CLASSES
    if len(text) > len(str(limit)) + 1 or int(text) >= limit:
        raise DatasetError(f"{where}class_index {text} is out of range: it counts from 0 and is below {limit}")
    return int(text)
