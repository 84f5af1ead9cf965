"""Every refusal in one shape: RFC 9457 ``application/problem+json`` with a stable ``code``.

A message of `AssayError` with a status is written for the sender. Everything else is this program's fault: it is logged
here and answered with a fixed text, so that nothing internal leaks.
"""

import json
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.serving.errors import InvalidParameterError, RequestError
from assay.vision.errors import ImageError

MEDIA_TYPE = "application/problem+json"

_log = structlog.get_logger()


def problem_body(status: int, code: str, detail: str) -> bytes:
    """A problem document. ``type`` names the code as a URN: there is no page to link to that would work offline."""
    body = {
        "type": f"urn:assay:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    return json.dumps(body).encode()


def problem(status: int, code: str, detail: str, *, retry_after_s: int | None = None, closes: bool = False) -> Response:
    """A response with a problem document."""
    headers = {}
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    if closes:
        headers["Connection"] = "close"
    return Response(problem_body(status, code, detail), status_code=status, headers=headers, media_type=MEDIA_TYPE)


def _tell(request: Request, code: str) -> None:
    """Leave the reason where the envelope counts it."""
    if (record := request.scope.get("assay")) is not None:
        record.reason = code


def of_request_error(error: RequestError) -> Response:
    """The problem of a request that was refused or dropped."""
    return problem(
        error.status, error.code, str(error), retry_after_s=error.retry_after_s, closes=error.closes_connection
    )


def internal(error: Exception, request_id: str) -> Response:
    """The problem of a fault of this program, which is logged with its trace."""
    _log.error("A request failed by a fault of this program; please report it.", exc_info=error, request_id=request_id)
    return problem(500, "InternalError", "The request failed by a fault of this service; its log knows more.")


async def _request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)  # noqa: S101 - registered for this type only
    _tell(request, error.code)
    return of_request_error(error)


async def _image_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ImageError)  # noqa: S101 - registered for this type only
    _tell(request, error.code)
    return problem(error.status, error.code, str(error))


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type only
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return await _request_error(request, InvalidParameterError(f"{where}: {first['msg']}."))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    phrase = HTTPStatus(error.status_code).phrase
    response = problem(error.status_code, phrase.title().replace(" ", ""), f"{phrase}.")
    response.headers.update(error.headers or {})
    return response


async def _any_error(request: Request, error: Exception) -> Response:
    _tell(request, "InternalError")
    return internal(error, request.scope["assay"].request_id)


def install(app: FastAPI) -> None:
    """Answer every exception of a route with its problem."""
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(ImageError, _image_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _any_error)
