"""Names and numbers that are part of a contract with something outside this package."""

from pathlib import Path

ANNOTATION_PREFIX = "assay.dev/"
"""Prefix of the pod annotations that name the model to serve; the operator writes them."""

EXIT_MISFIT = 78
"""Exit code (EX_CONFIG of sysexits.h) of a pod whose pack does not fit: wrong digest, missing CPU feature, unreadable."""

TERMINATION_LOG = Path("/dev/termination-log")
"""Where Kubernetes reads a container's last words (at most 4096 bytes are kept)."""

TERMINATION_LOG_BYTES = 4096
"""Kubernetes cuts a termination message at this size."""
