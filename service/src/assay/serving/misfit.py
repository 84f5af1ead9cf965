"""The last words of a process whose pack does not fit, where Kubernetes and the operator read them."""

import json
from pathlib import Path

import structlog

from assay.constants import TERMINATION_LOG_BYTES
from assay.errors import AssayError

_MESSAGE_CHARACTERS = 1000
"""Leaves room in 4096 bytes for the code, and for characters that JSON writes as ``\\uXXXX``: three bytes more each."""

_log = structlog.get_logger()


def write_last_words(error: AssayError, path: Path) -> None:
    """Write ``{"code","message"}`` to the termination log, if there is one: only a container has that file."""
    words = json.dumps({"code": error.code, "message": str(error)[:_MESSAGE_CHARACTERS]})
    if len(words) > TERMINATION_LOG_BYTES:
        words = json.dumps({"code": error.code, "message": "The message is too long; see the log."})
    try:
        if path.exists():
            path.write_text(words)
    except OSError as failure:
        _log.warning("The termination message could not be written.", path=str(path), why=str(failure))
