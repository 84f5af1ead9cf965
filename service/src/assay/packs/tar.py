"""Deterministic USTAR files: written the same way each time, read strictly and never unpacked.

A pack or dataset is data from elsewhere. Reading indexes the members by name and returns their bytes; links, devices,
folders, extended headers, duplicate names, odd names, trailing bytes and sizes over the limit are refused.
"""

import hashlib
import io
import os
import re
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from assay.errors import DigestMismatchError, PackError, PackUnavailableError

BLOCK: Final = 512
"""Unit of a tar file (POSIX.1-1988, ustar)."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
"""A plain name, at most one folder deep: nothing that could climb, hide or confuse."""

_CHUNK: Final = 1 << 20
"""Bytes hashed at a time: large enough to be fast, small enough not to matter in memory."""


@dataclass(frozen=True)
class Member:
    """Where a member's bytes lie in the file."""

    name: str
    offset: int
    size: int


def file_digest(path: Path) -> str:
    """Return ``sha256:<hex>`` of a file, read in pieces. Raises ``PackUnavailableError`` if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    except OSError as error:
        raise PackUnavailableError(f"cannot read {path}: {error.strerror or error}") from error


def verify_digest(found: str, expected: str | None, what: str) -> None:
    """Raise ``DigestMismatchError`` unless a digest is the one expected, or begins with it if that is abbreviated.

    Nothing expected, nothing compared. Callers admit abbreviated digests or not.
    """
    if expected and not found.startswith(expected):
        raise DigestMismatchError(f"{what} has digest {found}, but {expected} was asked for: another file stands there")


def write_tar(path: Path, members: Iterable[tuple[str, bytes]]) -> str:
    """Write members in sorted order with fixed metadata; return the file's digest.

    The file appears whole or not at all. ``members`` is read in one go but each body is written as it comes, so they
    must already be sorted by name. Raises ``PackError`` for a bad name or order, ``PackUnavailableError`` if the disk
    refuses.
    """
    last = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
            try:
                # Not a "with": closing a tar after an error would write an end mark over half a file.
                tar = tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
                for name, data in members:
                    if not _NAME.fullmatch(name) or name <= last:
                        raise PackError(f"member {name!r} after {last!r}: names must be plain, sorted and unique")
                    entry = tarfile.TarInfo(name)
                    entry.size, entry.mode = len(data), 0o644
                    tar.addfile(entry, io.BytesIO(data))
                    last = name
                tar.close()
                stream.close()
                digest = file_digest(Path(stream.name))
                Path(stream.name).chmod(0o644)
                Path(stream.name).replace(path)
            except BaseException:
                Path(stream.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise PackUnavailableError(f"cannot write {path}: {error.strerror or error}") from error
    return digest


def index_tar(stream: BinaryIO, *, max_members: int) -> dict[str, Member]:
    """Return every member by name, in file order. Raises ``PackError`` for anything but plain files."""
    end = stream.seek(0, os.SEEK_END)
    members: dict[str, Member] = {}
    offset = 0
    while True:
        stream.seek(offset)
        header = stream.read(BLOCK)
        if len(header) < BLOCK:
            raise PackError("it is cut off, or not a tar file: the end mark is missing")
        if not any(header):
            break
        entry = _parse_header(header)
        if entry.name in members:
            raise PackError(f"it has two members called {entry.name!r}")
        if len(members) == max_members:
            raise PackError(f"it has more than {max_members} members")
        start = offset + BLOCK
        if entry.size < 0 or start + entry.size > end:
            raise PackError(f"member {entry.name!r} claims {entry.size} bytes, more than the file has")
        members[entry.name] = Member(entry.name, start, entry.size)
        offset = start + -(-entry.size // BLOCK) * BLOCK
    stream.seek(offset)
    while chunk := stream.read(_CHUNK):
        if any(chunk):
            raise PackError("there are bytes after the end mark")
    return members


def read_member(stream: BinaryIO, member: Member, limit: int) -> bytes:
    """Return one member's bytes. Raises ``PackError`` if it is larger than ``limit``."""
    if member.size > limit:
        raise PackError(f"member {member.name!r} has {member.size} bytes; the limit is {limit}")
    stream.seek(member.offset)
    data = stream.read(member.size)
    if len(data) != member.size:
        raise PackError(f"member {member.name!r} is cut off")
    return data


def _parse_header(header: bytes) -> tarfile.TarInfo:
    try:
        entry = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
        raise PackError(f"it is damaged, or not a tar file: {error}") from error
    if entry.type != tarfile.REGTYPE or entry.linkname:
        raise PackError(
            f"member {entry.name!r} is not a plain file (type {entry.type!r}): links and others are refused"
        )
    if not _NAME.fullmatch(entry.name):
        raise PackError(f"member name {entry.name!r} is not plain")
    return entry
