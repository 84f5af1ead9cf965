"""What the environment says about object stores, beyond what obstore reads from it itself."""

import os
from typing import Final

_VARIABLES: Final = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}


def allows_plain_http(scheme: str) -> bool:
    """Whether stores of a scheme (``s3``, ``gs``, ``az``) may be spoken to without TLS, as inside a cluster.

    obstore reads the variable too, but options that are given to it replace those of the environment.
    """
    return os.environ.get(_VARIABLES[scheme], "").lower() in ("1", "true", "yes")
