"""What can go wrong in the operator. Foreign exceptions become these where they arise."""


class OperatorError(Exception):
    """Base of all."""


class RenderError(OperatorError):
    """The target's pod template does not give what a check needs: no such container, or no base model named.

    step: what somebody can do about it.
    """

    def __init__(self, message: str, step: str) -> None:
        super().__init__(message)
        self.step = step


class ApiError(OperatorError):
    """The Kubernetes API refused a request, or could not be reached.

    status: HTTP status, 0 when there was no answer. what: verb and resource, for messages.
    """

    def __init__(self, message: str, *, status: int = 0, what: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.what = what
        self.retry_after_s = retry_after_s


class NotFoundError(ApiError):
    """404: the object, or its kind, is not there."""


class ConflictError(ApiError):
    """409: a precondition failed, or the name is taken. Observe again."""


class DeniedError(ApiError):
    """401 or 403: the operator's ServiceAccount lacks the permission named in `what`."""


class InvalidError(ApiError):
    """400 or 422: the API server does not take the object as it is."""
