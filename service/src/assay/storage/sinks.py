"""Where stored answers go: a folder of this machine or of an object store, named by a URI.

All of them through obstore: a file appears under its name whole or not at all, and so does an object. Credentials come
from the usual environment of each cloud (``AWS_…``, ``GOOGLE_…``, ``AZURE_…``); they are never part of the URI, and
nothing a store answers is logged but its status and its error code, since error documents may quote credentials.
"""

import re
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from assay.errors import AssayError, SettingsError
from assay.platform.objectstore import allows_plain_http

SCHEMES: Final = ("file", "s3", "gs", "az")
"""Kinds of sinks."""

_PUT_TIMEOUT: Final = timedelta(seconds=30)
"""Longest time of one attempt: 8 MiB, the largest body by default, at 2.2 Mbit/s."""

_CONNECT_TIMEOUT: Final = timedelta(seconds=5)

_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z]*)*)")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_KIND = re.compile(r"kind: (Connect|Timeout|Request|Interrupted|Decode)\b")


class SinkError(AssayError):
    """A sink did not take an object. Its text is fit for the log."""

    code = "SinkFailed"


def check_uri(uri: str) -> None:
    """Raise `SettingsError` for a text that names no sink; whether the sink is there shows when it is written to."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise SettingsError(f"ASSAY_STORE_URI is no URI: {error}.") from error
    if parts.query or parts.fragment or parts.username or parts.password:
        raise SettingsError(
            f"ASSAY_STORE_URI, of scheme {parts.scheme!r}, holds credentials, a query or a fragment: name the place; "
            "credentials come from the environment (AWS_ACCESS_KEY_ID and the like)."
        )
    if parts.scheme not in SCHEMES:
        raise SettingsError(f"ASSAY_STORE_URI={uri!r}: the scheme must be one of {', '.join(SCHEMES)}.")
    if parts.scheme == "file" and (parts.netloc not in ("", "localhost") or not parts.path.startswith("/")):
        raise SettingsError(f"ASSAY_STORE_URI={uri!r}: write file:///absolute/path.")
    if parts.scheme != "file" and not parts.netloc:
        raise SettingsError(f"ASSAY_STORE_URI={uri!r} names no bucket: write {parts.scheme}://bucket/prefix.")


class Sink:
    """A place for objects. Opened by the first object, because a place that is not there now may be there later."""

    def __init__(self, uri: str) -> None:
        check_uri(uri)
        self.uri = uri
        self._store: Any = None

    async def put(self, name: str, data: bytes) -> None:
        """Write one object, whole or not at all, in one attempt. Raises `SinkError`."""
        try:
            if self._store is None:
                self._store = _open(self.uri)
            # One request an object: parts of an upload that breaks off would stay in the bucket, and be paid for.
            await obstore.put_async(self._store, name, data, use_multipart=False)
        except (BaseError, OSError, ValueError) as error:
            raise SinkError(_reason(error)) from error


def _open(uri: str) -> Any:  # noqa: ANN401 - obstore's stores have no common base at run time
    scheme = urlsplit(uri).scheme
    if scheme == "file":
        return LocalStore.from_url(uri, mkdir=True)
    client: Any = {
        "timeout": _PUT_TIMEOUT,
        "connect_timeout": _CONNECT_TIMEOUT,
        "allow_http": allows_plain_http(scheme),
    }
    # The queue repeats attempts: it knows when there is no time left.
    return from_url(uri, client_options=client, retry_config={"max_retries": 0, "retry_timeout": _PUT_TIMEOUT})


def _reason(error: Exception) -> str:
    """Why an attempt failed, in words that hold no part of a store's answer but its status and error code."""
    text = str(error)
    if status := _STATUS.search(text):
        code = _CODE.search(text)
        return f"status {status[1]}{f', {code[1]}' if code else ''}"
    if kind := _KIND.search(text):
        return {"Connect": "no connection", "Timeout": "no answer in time"}.get(kind[1], f"broken off ({kind[1]})")
    return text.split("\n", 1)[0].split("<", 1)[0].strip()[:200]
