"""The service's errors: one hierarchy; each message says what was seen and what to do.

Foreign exceptions are translated to these where the foreign library is called.
"""

from typing import ClassVar


class AssayError(Exception):
    """Base of every error this package raises on purpose.

    ``code`` is stable and part of the API: it stands in problem documents, termination messages and check results.
    """

    code: ClassVar[str] = "InternalError"


class PackError(AssayError):
    """A pack or dataset file is not what it should be: unknown members, bad manifest, too large."""

    code = "PackInvalid"


class PackUnavailableError(AssayError):
    """A pack or dataset cannot be fetched: unreachable, missing, too slow, too large."""

    code = "PackUnavailable"


class DigestMismatchError(AssayError):
    """The bytes fetched are not the bytes that were asked for."""

    code = "DigestMismatch"


class CpuFeatureMissingError(AssayError):
    """The pack needs a CPU feature that this machine lacks."""

    code = "CpuFeatureMissing"


class PrecisionMismatchError(AssayError):
    """The pack is not of the precision that was asked for: somebody approved another one."""

    code = "PrecisionMismatch"


class SettingsError(AssayError):
    """An ``ASSAY_`` variable or an option is unknown or out of range."""

    code = "SettingsInvalid"


class DatasetError(AssayError):
    """A dataset cannot be used for what was asked: no images left, labels missing."""

    code = "DatasetInvalid"


class BuildError(AssayError):
    """A model cannot be built or quantised from what was given."""

    code = "BuildFailed"


class BenchError(AssayError):
    """A bench cannot measure what was asked, or cannot write what it measured."""

    code = "BenchFailed"
