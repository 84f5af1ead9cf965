"""Packs and datasets that ship with the program: ``builtin:NAME`` is ``<folder>/NAME.tar``."""

import os
import re
import sys
from pathlib import Path
from typing import Final

from assay.errors import PackUnavailableError

SCHEME: Final = "builtin:"

PHOTOS: Final = "builtin:photos"
"""The dataset of a check that names none: a smoke set, see ``building.photos``."""

PHOTOS_CALIBRATION: Final = "builtin:photos-calibration"
"""The dataset that calibrates when none is named; shares no source photo with the other."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def builtin_dir() -> Path:
    """Return the folder of built-ins: ``ASSAY_BUILTIN_DIR``, else ``share/assay`` of this Python environment."""
    return Path(os.environ.get("ASSAY_BUILTIN_DIR") or Path(sys.prefix) / "share" / "assay")


def builtin_path(uri: str) -> Path:
    """Return the file of a ``builtin:`` URI. Raises ``PackUnavailableError`` naming those there are."""
    name = uri.removeprefix(SCHEME)
    path = builtin_dir() / f"{name}.tar"
    if not _NAME.fullmatch(name) or not path.is_file():
        there = ", ".join(sorted(file.stem for file in builtin_dir().glob("*.tar")))
        advice = f"there: {there}" if there else f"none was made: assay builtin build --out {builtin_dir()}"
        raise PackUnavailableError(f"there is no built-in {name!r} in {builtin_dir()}; {advice}")
    return path
