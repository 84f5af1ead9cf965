"""Brings a pack or dataset to a local file whose digest is verified; the only part of packs that uses the network."""

import hashlib
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import HTTPStore, from_url

from assay.errors import PackError, PackUnavailableError
from assay.packs.builtin import SCHEME as BUILTIN
from assay.packs.builtin import builtin_path
from assay.packs.manifest import is_digest
from assay.packs.tar import file_digest, verify_digest
from assay.platform.objectstore import allows_plain_http

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in total."""

REMOTE: Final = frozenset({"http", "https", "s3", "gs", "az"})
"""Schemes fetched through obstore; ``file`` and plain paths are read where they are."""

_ABBREVIATED = re.compile(r"sha256:[0-9a-f]{8,64}")

_CHUNK_BYTES: Final = 1 << 20
"""Smallest piece asked of the stream: one write per MiB."""

_READ_TIMEOUT_S: Final = 20
"""A connection silent this long is dead; the attempt is repeated."""

_CONNECT_TIMEOUT_S: Final = 5


def fetch(
    uri: str,
    digest: str | None,
    *,
    cache_dir: Path,
    max_bytes: int,
    progress: Progress | None = None,
    timeout_s: float = 300.0,
    attempts: int = 4,
    abbreviated: bool = False,
) -> Path:
    """Return a local file with the bytes of ``uri``, verified against ``digest``.

    ``builtin:NAME`` and plain paths may come without a digest; every other URI needs one, because the digest is what
    is trusted, not the place. Remote bytes are streamed to a temporary file in ``cache_dir`` that takes its final
    name (the digest) only when whole and right, so concurrent fetches do not disturb each other. ``timeout_s`` bounds
    all attempts together (a 512 MB pack at 2 MB/s needs 256 s). ``abbreviated`` admits a digest with 8 or more of its
    digits, as file names carry: enough to tell one published file from another, not enough against a forger.

    Raises ``PackUnavailableError`` (missing, unreachable, too large, too slow), ``DigestMismatchError``, and
    ``PackError`` for a URI or digest that is not well-formed.
    """
    if digest and not (is_digest(digest) or (abbreviated and _ABBREVIATED.fullmatch(digest))):
        raise PackError(f"{digest!r} is not a digest: expected sha256: and 64 hexadecimal digits")
    if uri.startswith(BUILTIN):
        return _local(builtin_path(uri), digest, max_bytes)
    try:
        scheme = urlsplit(uri).scheme
    except ValueError as error:
        raise PackError(f"{uri.partition('://')[0]}://…: what follows is no host and path") from error
    if not scheme:
        return _local(Path(uri), digest, max_bytes)
    if not digest:
        raise PackError(f"{uri} needs a digest: only built-ins and plain paths may come without one")
    if scheme == "file":
        return _local(_file_path(uri), digest, max_bytes)
    if scheme not in REMOTE:
        raise PackError(f"{uri}: scheme {scheme!r} is unknown; known: builtin, file, {', '.join(sorted(REMOTE))}")
    final = cache_dir / f"{digest.replace(':', '-')}.tar"
    if final.is_file() and file_digest(final).startswith(digest):
        return final
    _fetch_remote(uri, digest, final, max_bytes, progress, time.monotonic() + timeout_s, attempts)
    return final


def _local(path: Path, digest: str | None, max_bytes: int) -> Path:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise PackUnavailableError(f"cannot read {path}: {error.strerror or error}") from error
    if not path.is_file() or size > max_bytes:
        raise PackUnavailableError(f"{path} is not a file, or its {size} bytes are over the limit of {max_bytes}")
    if digest:
        verify_digest(file_digest(path), digest, str(path))
    return path


def _file_path(uri: str) -> Path:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise PackError(f"{uri}: write file:///absolute/path")
    return Path(unquote(parts.path))


def _fetch_remote(
    uri: str, digest: str, final: Path, max_bytes: int, progress: Progress | None, deadline: float, attempts: int
) -> None:
    """Try until whole, within the deadline; a wrong digest, a missing object or a size over the limit is final."""
    last: Exception | None = None
    for attempt in range(attempts):
        if attempt:
            # 0.4 s and doubling: a restarting server is back within seconds, and the deadline bounds the whole.
            time.sleep(min(0.2 * 2**attempt, max(0.0, deadline - time.monotonic())))
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            break
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=final.parent, prefix=".fetch-", delete=False) as stream:
                try:
                    found = _stream(uri, stream, max_bytes, progress, deadline)
                    stream.close()
                    verify_digest(found, digest, uri)
                    Path(stream.name).replace(final)
                except BaseException:
                    with suppress(OSError):
                        Path(stream.name).unlink()
                    raise
        except (FileNotFoundError, PermissionDeniedError, UnauthenticatedError) as error:
            raise PackUnavailableError(f"{uri} is not there, or may not be read: {_first_line(error)}") from error
        except BaseError as error:
            last = error  # unreachable or broken off: the next attempt may find it whole
        except OSError as error:
            raise PackUnavailableError(f"cannot keep {uri} in {final.parent}: {error}") from error
        except ValueError as error:
            raise PackError(f"{uri} is not a URI that can be fetched: {_first_line(error)}") from error
        else:
            return
    reason = _first_line(last) if last else "out of time"
    raise PackUnavailableError(f"{uri} could not be fetched in {attempts} attempts: {reason}") from last


def _stream(uri: str, out: IO[bytes], max_bytes: int, progress: Progress | None, deadline: float) -> str:
    """Copy one object to a file; return its digest."""
    store, name = _open_store(uri, deadline - time.monotonic())
    result = obstore.get(store, name)
    total = result.meta["size"]
    hasher, done = hashlib.sha256(), 0
    if total > max_bytes:
        raise PackUnavailableError(f"{uri} has {total} bytes; the limit is {max_bytes}")
    for chunk in result.stream(min_chunk_size=_CHUNK_BYTES):
        done += len(chunk)
        if done > max_bytes:
            raise PackUnavailableError(f"{uri} sends more than the limit of {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise PackUnavailableError(f"{uri} is too slow: {done} of {total} bytes when time was up")
        out.write(chunk)
        hasher.update(chunk)
        if progress:
            progress(done, total)
    return f"sha256:{hasher.hexdigest()}"


def _open_store(uri: str, remaining_s: float) -> tuple[Any, str]:
    """Return the store of a URI's folder and the object's name; credentials come from the environment."""
    parts = urlsplit(uri)
    if parts.query or parts.fragment or parts.username or parts.password:
        raise PackError(f"{parts.scheme}://{parts.hostname}/…: queries, fragments and credentials in a URI are refused")
    folder, _, name = parts.path.rpartition("/")
    if not name:
        raise PackError(f"{uri} names no file")
    client: Any = {
        "timeout": timedelta(seconds=remaining_s),
        "connect_timeout": timedelta(seconds=min(_CONNECT_TIMEOUT_S, remaining_s)),
        "read_timeout": timedelta(seconds=min(_READ_TIMEOUT_S, remaining_s)),
    }
    # Attempts are counted here, where a stream that breaks off half-way is seen too.
    retry: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=remaining_s)}
    if parts.scheme in ("http", "https"):
        # Not from_url: it would turn some hosts' https addresses into signed requests to their object stores.
        client["allow_http"] = parts.scheme == "http"
        base = f"{parts.scheme}://{parts.netloc}{folder}"
        return HTTPStore(base, client_options=client, retry_config=retry), unquote(name)
    client["allow_http"] = allows_plain_http(parts.scheme)
    base = f"{parts.scheme}://{parts.netloc}{folder}"
    return from_url(base, client_options=client, retry_config=retry), unquote(name)


def _first_line(error: Exception) -> str:
    """Return the readable part of an obstore message (it appends a debug dump)."""
    return str(error).split("\n", 1)[0].strip()[:300]
