"""Read why a pod's pack did not fit: `{"code", "message"}` in the termination message of exit code 78."""

import json

from assay_operator.models.observed import Termination

QUOTED = 300  # characters of a pod's last words in a condition


def misfit_code(ended: Termination) -> tuple[str, str]:
    """The code (empty if there is none) and the sentence that came with it."""
    words = " ".join(ended.message.split())[:QUOTED]
    try:
        told = json.loads(ended.message)
    except ValueError:
        return "", words or (ended.reason if ended.reason not in ("Error", "Completed") else "")
    if not isinstance(told, dict):
        return "", words
    code, message = told.get("code"), told.get("message")
    return (code if isinstance(code, str) else ""), (message[:QUOTED] if isinstance(message, str) else words)
