"""Every refusal in one shape: RFC 9457 ``application/problem+json`` with a stable ``code``.

A message of `AssayError` with a status is written for the sender. Everything else is this program's fault: it is logged
here and answered with a fixed text, so that nothing internal leaks. Below ``/v2`` a problem has the member ``error``
as well, the one that clients of the Open Inference Protocol read.
"""

import json
from collections.abc import Iterator
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from assay.errors import AssayError
from assay.serving.errors import AbandonedError, InvalidParameterError, RequestError
from assay.vision.errors import ImageError
from assay.vision.header import MEDIA_TYPES

MEDIA_TYPE = "application/problem+json"

INFERENCE_ROOT = "/v2"
"""Where the paths of the Open Inference Protocol begin."""

_HINTS = {
    "UnsupportedMediaType": {"Accept": ", ".join(MEDIA_TYPES.values())},
    "ContentEncodingUnsupported": {"Accept-Encoding": "identity"},
}
"""Headers that say what would have been taken (RFC 9110, section 15.5.16)."""

_FAULT = AssayError.code
"""The code of a fault of this program."""

_log = structlog.get_logger()


def refusals() -> dict[str, int]:
    """The codes of all problems that a counted request may end with, each with its status."""
    found = {_code_of(status): status for status in (404, 405)}  # no such path, not this method
    kinds = (*_kinds(RequestError), *_kinds(ImageError))
    return {**found, _FAULT: 500, **{kind.code: kind.status for kind in kinds}}


def _kinds(base: type[RequestError | ImageError]) -> Iterator[type[RequestError | ImageError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _code_of(status: int) -> str:
    """The code of a refusal by the framework."""
    return HTTPStatus(status).phrase.title().replace(" ", "")


def problem_body(status: int, code: str, detail: str, path: str = "") -> bytes:
    """A problem document. ``type`` names the code as a URN: there is no page to link to that would work offline.

    ``path``: that of the request, which decides about the member ``error``.
    """
    body = {
        "type": f"urn:assay:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if path == INFERENCE_ROOT or path.startswith(f"{INFERENCE_ROOT}/"):
        body["error"] = detail
    return json.dumps(body).encode()


def problem(
    status: int, code: str, detail: str, path: str = "", *, retry_after_s: int | None = None, closes: bool = False
) -> Response:
    """A response with a problem document, to a request for ``path``."""
    headers = dict(_HINTS.get(code, {}))
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    if closes:
        headers["Connection"] = "close"
    return Response(
        problem_body(status, code, detail, path), status_code=status, headers=headers, media_type=MEDIA_TYPE
    )


def _tell(request: Request, code: str) -> None:
    """Leave the reason where the envelope counts it."""
    if (record := request.scope.get("assay")) is not None:
        record.reason = code


def of_request_error(error: RequestError, path: str) -> Response:
    """The problem of a request for ``path`` that was refused or dropped."""
    return problem(
        error.status, error.code, str(error), path, retry_after_s=error.retry_after_s, closes=error.closes_connection
    )


def internal(error: Exception, request_id: str, path: str) -> Response:
    """The problem of a fault of this program, which is logged with its trace."""
    _log.error("A request failed by a fault of this program; please report it.", exc_info=error, request_id=request_id)
    return problem(500, _FAULT, "The request failed by a fault of this service; its log knows more.", path)


async def _request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)  # noqa: S101 - registered for this type only
    _tell(request, error.code)
    return of_request_error(error, request.scope["path"])


async def _image_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ImageError)  # noqa: S101 - registered for this type only
    _tell(request, error.code)
    return problem(error.status, error.code, str(error), request.scope["path"])


async def _gone(request: Request, _: Exception) -> Response:
    """For the metrics only: whoever would read it has hung up."""
    _tell(request, AbandonedError.code)
    return Response(status_code=AbandonedError.status)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type only
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return await _request_error(request, InvalidParameterError(f"{where}: {first['msg']}."))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    code = _code_of(error.status_code)
    _tell(request, code)
    detail = f"{HTTPStatus(error.status_code).phrase}."
    response = problem(error.status_code, code, detail, request.scope["path"])
    response.headers.update(error.headers or {})
    return response


async def _any_error(request: Request, error: Exception) -> Response:
    _tell(request, _FAULT)
    return internal(error, request.scope["assay"].request_id, request.scope["path"])


def install(app: FastAPI) -> None:
    """Answer every exception of a route with its problem."""
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(AbandonedError, _gone)
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(ImageError, _image_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _any_error)
