"""Why a request is refused or dropped. Each has the HTTP status it answers with and a stable code."""

from typing import ClassVar

from assay.errors import AssayError


class RequestError(AssayError):
    """A request that gets no answer. ``retry_after_s``: when trying again makes sense, in whole seconds."""

    code: ClassVar[str] = "RequestInvalid"
    status: ClassVar[int] = 400
    retry_after_s: int | None = None
    closes_connection: ClassVar[bool] = False


class InvalidParameterError(RequestError):
    """A query parameter is not what it should be."""

    code = "InvalidParameter"


class MultipartInvalidError(RequestError):
    """A multipart body is broken, or does not hold exactly one file."""

    code = "MultipartInvalid"


class InferenceInvalidError(RequestError):
    """An Open Inference Protocol request that contradicts itself, the model's metadata, or the protocol."""

    code = "InferenceInvalid"


class ModelNotFoundError(RequestError):
    """The model, or the version of it, that a path names is not the one served here."""

    code = "ModelNotFound"
    status = 404


class TooManyImagesError(RequestError):
    """One request holds more images, or more numbers in JSON, than are taken at once."""

    code = "TooManyImages"
    status = 413


class ContentEncodingError(RequestError):
    """The body is compressed; images are compressed already, and a bomb is refused best where none is opened."""

    code = "ContentEncodingUnsupported"
    status = 415


class BodyTimeoutError(RequestError):
    """The body did not arrive in time."""

    code = "BodyTimeout"
    status = 408
    closes_connection = True


class BodyTooLargeError(RequestError):
    """The body is larger than what is taken; the rest of it is not read."""

    code = "BodyTooLarge"
    status = 413
    closes_connection = True


class OverloadedError(RequestError):
    """More work waits than may wait."""

    code = "Overloaded"
    status = 429

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotReadyError(RequestError):
    """No model is loaded yet."""

    code = "NotReady"
    status = 503
    retry_after_s = 1


class DrainingError(RequestError):
    """This process is about to end; another one answers on a new connection."""

    code = "Draining"
    status = 503
    closes_connection = True
    retry_after_s = 1


class AbandonedError(RequestError):
    """The client hung up while its request waited; nobody reads the answer. 499 is nginx's number for it."""

    code = "ClientDisconnect"
    status = 499


class DeadlineExceededError(RequestError):
    """The request waited longer than its answer would be worth."""

    code = "DeadlineExceeded"
    status = 504
