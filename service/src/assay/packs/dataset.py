"""A dataset: one tar of encoded images with ``dataset.json``, read image by image."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.errors import DatasetError, PackError, PackUnavailableError
from assay.packs.tar import Member, file_digest, index_tar, read_member, verify_digest, write_tar

MANIFEST: Final = "dataset.json"

MAX_DATASET_BYTES: Final = 2 << 30
"""2000 photos (the most a check looks at by default) of 1 MB each; read one at a time, never whole."""

MAX_IMAGES: Final = 100_000
"""More than any check will look at; bounds the index kept in memory."""

_MAX_MANIFEST_BYTES: Final = 64 << 20
"""600 bytes for each of the most images there may be."""

MAX_IMAGE_BYTES: Final = 64 << 20
"""The service takes 8 MiB by default; a dataset may hold what a service with larger limits takes."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ImageEntry(_Frozen):
    """One image: its member, the source photo it comes from, and what it shows, if known."""

    file: str
    group: str = Field(min_length=1, max_length=100, description="sha256 of the source photo, or another name for it")
    label: str | None = Field(None, description="the class's text; wins over the index")
    class_index: Annotated[int, Field(ge=0)] | None = Field(None, description="index in the yardstick's labels")


class DatasetManifest(_Frozen):
    """``dataset.json``."""

    format: Literal[1]
    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,98}[a-z0-9])?$")
    description: str = Field(max_length=2000)
    images: tuple[ImageEntry, ...] = Field(min_length=1, max_length=MAX_IMAGES)


@dataclass(frozen=True)
class Image:
    """An image's entry and its encoded bytes."""

    entry: ImageEntry
    data: bytes


@dataclass(frozen=True)
class Dataset:
    """A verified dataset. Iterating reads one image at a time, in the manifest's order."""

    path: Path
    manifest: DatasetManifest
    digest: str
    members: dict[str, Member]

    def __iter__(self) -> Iterator[Image]:
        """Read every image."""
        return self.read(self.manifest.images)

    def read(self, entries: Iterable[ImageEntry]) -> Iterator[Image]:
        """Read the images of some entries. Raises ``DatasetError`` if the file has changed under us."""
        try:
            with self.path.open("rb") as stream:
                for entry in entries:
                    yield Image(entry, read_member(stream, self.members[entry.file], MAX_IMAGE_BYTES))
        except OSError as error:
            raise DatasetError(f"cannot read {self.path}: {error.strerror or error}") from error
        except PackError as error:
            raise DatasetError(f"the dataset {self.path} is damaged: {error}") from error

    @property
    def groups(self) -> int:
        """Number of source photos."""
        return len({entry.group for entry in self.manifest.images})


def read_dataset(path: Path, expected_digest: str | None = None) -> Dataset:
    """Verify a dataset and read its index.

    Raises ``DigestMismatchError`` before anything is parsed, ``PackUnavailableError`` if the file cannot be read, and
    ``DatasetError`` when it is not a dataset: bad manifest, members missing, unknown, doubled or too large.
    """
    digest = file_digest(path)
    verify_digest(digest, expected_digest, f"the dataset {path}")
    try:
        with path.open("rb") as stream:
            members = index_tar(stream, max_members=MAX_IMAGES + 1)
            if MANIFEST not in members:
                raise PackError(f"{MANIFEST!r} is missing")
            text = read_member(stream, members.pop(MANIFEST), _MAX_MANIFEST_BYTES)
        manifest = DatasetManifest.model_validate_json(text)
        _match(manifest, members)
    except OSError as error:
        raise PackUnavailableError(f"cannot read the dataset {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DatasetError(f"the dataset {path} is refused: dataset.json: {where}: {first['msg']}") from error
    except PackError as error:
        raise DatasetError(f"the dataset {path} is refused: {error}") from error
    return Dataset(path, manifest, digest, members)


def write_dataset(
    path: Path, name: str, description: str, images: Sequence[ImageEntry], bodies: Iterable[bytes]
) -> str:
    """Write a dataset and return its digest; the same images give the same bytes.

    ``images`` are in the order of their file names, and ``bodies`` yields their encoded bytes in that order, one at a
    time. Raises ``DatasetError`` for names out of order or a manifest that is not valid.
    """
    try:
        manifest = DatasetManifest(format=1, name=name, description=description, images=tuple(images))
    except ValidationError as error:
        raise DatasetError(f"cannot describe the dataset: {error.errors(include_url=False)[0]['msg']}") from error

    def members() -> Iterator[tuple[str, bytes]]:
        yield MANIFEST, manifest.model_dump_json(indent=1).encode() + b"\n"
        for entry, body in zip(manifest.images, bodies, strict=True):
            yield entry.file, body

    try:
        return write_tar(path, members())
    except PackError as error:
        raise DatasetError(f"cannot write the dataset {path}: {error}") from error


def _match(manifest: DatasetManifest, members: dict[str, Member]) -> None:
    listed = [entry.file for entry in manifest.images]
    if len(set(listed)) != len(listed):
        raise PackError("dataset.json lists an image twice")
    if odd := sorted(set(listed) ^ set(members)):
        where = "a member that dataset.json does not list" if odd[0] in members else "listed, but not there"
        raise PackError(f"{odd[0]!r} is {where}")
