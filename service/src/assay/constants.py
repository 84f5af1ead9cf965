"""Names and numbers that are part of a contract with something outside this package."""

from pathlib import Path

ANNOTATION_PREFIX = "assay.dev/"
"""Prefix of the pod annotations that name the model to serve; the operator writes them."""

EXIT_MISFIT = 78
"""Exit code (EX_CONFIG of sysexits.h) of a pod whose pack does not fit: digest, CPU feature, broken, unreachable."""

TERMINATION_LOG = Path("/dev/termination-log")
"""Where Kubernetes reads a container's last words (at most 4096 bytes are kept)."""

TERMINATION_LOG_BYTES = 4096
"""Kubernetes cuts a termination message at this size."""

EXIT_ERROR = 2
"""Exit code of a command that ended with an error of this package."""

EXIT_CHECK_ERROR = 3
"""The same for ``assay check``, whose 1 and 2 are verdicts: Fail and Inconclusive."""
