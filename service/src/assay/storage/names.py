"""Names of stored objects: by date, then time and request id, and never one that was given before."""

import re
import secrets
from datetime import UTC, datetime

from assay.vision.errors import ImageError
from assay.vision.header import sniff

_UNIQUE_BYTES = 8
"""Random bytes in each name. A client may choose its request id, and choose it twice; it cannot choose these."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")

_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp", "TIFF": ".tiff"}


def object_name(request_id: str, at: float) -> str:
    """Name of what is kept of one request, without suffix: ``2026/11/30/202607.123456-<request id>-<random>``.

    ``at``: seconds since 1970; the name tells UTC. ``request_id``: whatever it holds beyond letters, digits, ``.``,
    ``_`` and ``-`` becomes ``_``, so that a name has no folders but those of the date, and none begins with a dot.
    """
    kept = _FOREIGN.sub("_", request_id)
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y/%m/%d/%H%M%S.%f}-{kept}-{secrets.token_hex(_UNIQUE_BYTES)}"


def image_suffix(image: bytes) -> str:
    """What the name of an encoded image ends with, told from its bytes; ``.bin`` for one of no known format."""
    try:
        return _SUFFIXES[sniff(image)]
    except (ImageError, KeyError):
        return ".bin"
