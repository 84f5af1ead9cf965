"""What can be wrong with an image somebody sent. Each error carries the HTTP status it answers with."""

from typing import ClassVar

from assay.errors import AssayError


class ImageError(AssayError):
    """The image cannot be classified; the sender can mend that, so ``status`` is a 4xx."""

    code: ClassVar[str] = "ImageInvalid"
    status: ClassVar[int] = 422


class UnsupportedMediaType(ImageError):  # noqa: N818 - named as HTTP names it
    """The bytes are not an image of a format, or of a pixel type, that is taken."""

    code = "UnsupportedMediaType"
    status = 415


class ImageBroken(ImageError):  # noqa: N818 - a state of the image, not of this program
    """The format is taken, but this file is truncated or contradicts itself."""

    code = "ImageBroken"
    status = 422


class TooManyPixels(ImageError):  # noqa: N818 - named like its problem code
    """The image is larger than what is decoded here; told from its header, before decoding."""

    code = "TooManyPixels"
    status = 413
