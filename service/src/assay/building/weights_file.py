"""Finds a checkpoint by path or URL, and makes sure that it is the file that was meant.

torchvision's file names end in the first 8 hexadecimal digits of the file's sha256 (``mobilenet_v2-b0353104.pth``).
That finds a wrong or damaged file, but 32 bits can be forged; a full sha256 cannot.
"""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from assay.building.checkpoint import MAX_CHECKPOINT_BYTES
from assay.errors import BuildError, DigestMismatchError
from assay.packs.fetch import Progress, fetch
from assay.packs.tar import file_digest

FULL_DIGITS: Final = 64
"""Of a sha256 in hexadecimal."""

_SHA256 = re.compile(r"[0-9a-f]{64}")

_IN_NAME = re.compile(r"-([0-9a-f]{8,64})\.[a-z]+$")
"""As ``torch.hub`` reads it (``HASH_REGEX``), with at least the 8 digits that it asks of publishers."""


@dataclass(frozen=True)
class WeightsFile:
    """A checkpoint that is here: ``name`` is that of the file it came as, ``sha256`` that of its bytes."""

    path: Path
    name: str
    sha256: str


def find_weights(where: str, sha256: str | None, *, cache_dir: Path, progress: Progress | None = None) -> WeightsFile:
    """Return the checkpoint at a path or URL, fetched if need be.

    It must have the ``sha256`` given, else the one whose first digits end its name. A path may have neither.
    Raises ``BuildError`` for a URL without either, ``DigestMismatchError`` for another file, and what ``fetch`` raises.
    """
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise BuildError(f"{sha256!r} is not a sha256: 64 hexadecimal digits in lower case are")
    name = _file_name(where)
    named = _IN_NAME.search(name)
    expected = sha256 or (named[1] if named else None)
    if "://" in where:
        path = _fetched(where, expected, cache_dir, progress)
    else:
        path = Path(where)
        if not path.is_file():
            raise BuildError(f"there is no file {where}: give the path or the URL of a checkpoint")
    found = file_digest(path).removeprefix("sha256:")
    if expected and not found.startswith(expected):
        advice = (
            "another file stands there"
            if sha256
            else "it is damaged or another file (if those digits mean something else, give its sha256 with --sha256)"
        )
        told = "asked for" if sha256 else "in its name"
        raise DigestMismatchError(f"{where} has sha256 {found}, but {expected} is {told}: {advice}")
    return WeightsFile(path, name, found)


def _fetched(url: str, expected: str | None, cache_dir: Path, progress: Progress | None) -> Path:
    if expected is None:
        raise BuildError(
            f"{url} is not pinned: its name does not end in digits of its sha256; give all 64 of them with --sha256"
        )
    if len(expected) < FULL_DIGITS and urlsplit(url).scheme == "http" and not _is_loopback(url):
        raise BuildError(
            f"{url} comes unprotected, and the {len(expected)} digits in its name can be forged: "
            "use https, or give all 64 digits of its sha256 with --sha256"
        )
    return fetch(
        url,
        f"sha256:{expected}",
        abbreviated=True,
        cache_dir=cache_dir,
        max_bytes=MAX_CHECKPOINT_BYTES,
        progress=progress,
    )


def _file_name(where: str) -> str:
    if "://" not in where:
        return Path(where).name
    try:
        return unquote(urlsplit(where).path.rpartition("/")[2])
    except ValueError as error:
        raise BuildError(f"{where} is no URL: {error}") from error


def _is_loopback(url: str) -> bool:
    """Say whether a URL's host is this machine, written as an address: nobody stands in between."""
    try:
        return ipaddress.ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False
