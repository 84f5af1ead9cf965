"""Reads a file of labels, one per line in class order, as editors on any system leave them."""

from pathlib import Path
from typing import Final

from assay.errors import BuildError

MAX_BYTES: Final = 4 << 20
"""What a pack may hold of labels."""

_BACKGROUND: Final = frozenset({"background", "__background__", "dummy", "n00000000"})
"""What lists of TensorFlow's 1001 classes begin with."""


def read_labels(path: Path) -> tuple[str, ...]:
    """Return the lines, stripped, blank ones as empty texts; blank lines at the end are left out.

    A byte order mark and any kind of line end are taken. Raises ``BuildError`` for a file that is not UTF-8 text.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BuildError(f"{path} has more than {MAX_BYTES} bytes: it needs one label per line, nothing else")
        data = path.read_bytes()
    except OSError as error:
        raise BuildError(f"cannot read {path}: {error.strerror or error}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BuildError(f"{path} is UTF-16: save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BuildError(f"line {line} of {path} is not UTF-8: save the file as UTF-8") from error
    if text.lstrip().startswith(("{", "[")):
        raise BuildError(f"{path} is JSON: write one label per line, in class order")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").rstrip().split("\n")
    labels = tuple(line.strip() for line in lines)
    if not any(labels):
        raise BuildError(f"{path} has no labels: write one per line, in class order")
    for number, label in enumerate(labels, 1):
        if not label.isprintable():
            raise BuildError(f"line {number} of {path} has a character that cannot be shown: {label[:80]!r}")
    return labels


def fit_labels(labels: tuple[str, ...], classes: int | None, path: Path) -> tuple[str, ...]:
    """Return the labels for so many classes (None: not known yet).

    Blank lines are left out where the rest is as many as the classes: they separate. Raises ``BuildError`` otherwise.
    """
    named = tuple(label for label in labels if label)
    if classes is None or len(named) == classes:
        return named
    if len(labels) == classes:
        blank = labels.index("") + 1
        raise BuildError(f"line {blank} of {path} is blank, but class {blank - 1} needs a name: write one there")
    counts = f"the model has {classes} classes, {path} has {len(named)} labels"
    first = named[0]
    if classes == len(named) + 1:
        raise BuildError(
            f"{counts}: if the model counts a background class first, as TensorFlow's do with 1001, put a line "
            "'background' at the top"
        )
    if classes == len(named) - 1:
        why = (
            f"its first line, {first!r}, is a class that the model lacks: remove it"
            if first.lower() in _BACKGROUND
            else f"is its first line, {first[:40]!r}, a heading or a background class? remove it"
        )
        raise BuildError(f"{counts}: {why}")
    raise BuildError(f"{counts}: give the list that the model was trained with, one label per line")
