"""What the OpenAPI document says beyond the routes' names: answers, problems, headers.

The document is at ``/openapi.json``, and for people at ``/docs``; `tests/service/http/test_reference.py` holds the
service to it.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field

from assay.http.problems import MEDIA_TYPE

Responses = dict[int | str, dict[str, Any]]

MAX_TOP_K = 1000
"""Most labels one may ask for: the classes of ImageNet. A model with fewer classes gives all it has."""

_ABOUT = """Classifies images on CPUs. Every refusal is a problem document (RFC 9457) with a stable `code`; every answer
carries `X-Request-Id`, and a classification says in `Server-Timing` where its milliseconds went."""

_REFUSALS = {
    400: "The request is not what it should be; `detail` says where.",
    404: "There is no such model or version here.",
    408: "The body did not arrive in time.",
    413: "Too many bytes, too many pixels, or too many images at once.",
    415: "Not an image of a format that is taken, or a compressed body.",
    422: "An image is broken.",
    429: "More work waits than may wait; `Retry-After` says when to try again.",
    503: "Not ready, or draining.",
    504: "The request waited longer than its deadline.",
}
_RETRY_AFTER = {"description": "Seconds to wait (RFC 9110).", "schema": {"type": "integer", "minimum": 1}}
_REQUEST_ID = {"description": "The request's id, given or made up; logs name it.", "schema": {"type": "string"}}
_TIMING = {
    "description": "Milliseconds of each stage (W3C Server Timing).",
    "schema": {"type": "string"},
    "example": "receive;dur=0.4, queue;dur=0.1, decode;dur=4.2, preprocess;dur=1.3, infer;dur=9.8, "
    "postprocess;dur=0.1, respond;dur=0.3",
}
CLASSIFIED_HEADERS = {"X-Request-Id": _REQUEST_ID, "Server-Timing": _TIMING}
"""Headers of a classification."""

_PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "Why a request was refused (RFC 9457).",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri", "examples": ["urn:assay:problem:ImageBroken"]},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "code": {"type": "string", "description": "Stable; what a program should look at."},
        "detail": {"type": "string", "description": "What was seen, and what to do."},
        "error": {"type": "string", "description": "The same as `detail`, below /v2: what its clients read."},
    },
}

BINARY = {"schema": {"type": "string", "format": "binary"}}
"""Content that is bytes."""

TOP_K = {
    "name": "top_k",
    "in": "query",
    "description": "Labels wanted, best first; by default 3.",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_TOP_K},
}
MODEL = {
    "name": "model",
    "in": "path",
    "required": True,
    "description": "The pack's name, or `assay` for whatever is served here.",
    "schema": {"type": "string"},
    "example": "assay",
}
VERSION = {
    "name": "version",
    "in": "path",
    "required": True,
    "description": "The pack's digest: a client that names it gets no answer of another pack.",
    "schema": {"type": "string"},
    "example": "sha256:5e0cff...",
}
_HEADER_LENGTH = {
    "description": "Bytes of the JSON part of the body, where binary tensors follow it.",
    "schema": {"type": "integer", "minimum": 0},
}
INFER_PARAMETERS = [{"name": "Inference-Header-Content-Length", "in": "header", "required": False, **_HEADER_LENGTH}]
"""What an inference request may have beyond its path and body."""

INFER_BODY = {
    "required": True,
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/InferenceRequest"}},
        "application/octet-stream": BINARY,
    },
}
"""The body of an inference request."""

INFER_RESPONSE = {
    "description": "The outputs: JSON, or JSON followed by binary tensors where these were asked for.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/InferenceResponse"}},
        "application/octet-stream": BINARY,
    },
    "headers": {**CLASSIFIED_HEADERS, "Inference-Header-Content-Length": _HEADER_LENGTH},
}
"""The answer to an inference request."""


class Prediction(BaseModel):
    """A label of an image."""

    label: str
    index: int = Field(ge=0)
    score: float = Field(ge=0, le=1)


class ModelName(BaseModel):
    """The pack that answered."""

    name: str
    precision: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")


class Classification(BaseModel):
    """The best labels of an image, best first."""

    predictions: list[Prediction] = Field(min_length=1)
    model: ModelName
    request_id: str


class ServedModel(ModelName):
    """The pack that is served, and on what."""

    uri: str
    variant: str
    classes: int
    workers: int
    cpu_limit_millicores: int
    memory_limit_bytes: int | None
    cpu_features: list[str]
    manifest: dict[str, Any]


class Status(BaseModel):
    """That it is so."""

    status: str


def responses(answer: type[BaseModel], *refusals: int) -> Responses:
    """Responses of a route that answers with JSON of this model, or refuses with one of these statuses."""
    described: Responses = {200: {"model": answer, "description": str(answer.__doc__)}}
    for status in refusals:
        headers: dict[str, Any] = {"X-Request-Id": _REQUEST_ID}
        if status == 429:
            headers["Retry-After"] = {**_RETRY_AFTER, "required": True}
        elif status == 503:
            headers["Retry-After"] = _RETRY_AFTER
        described[status] = {
            "description": _REFUSALS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            "headers": headers,
        }
    return described


def install(app: FastAPI, *components: type[BaseModel]) -> None:
    """Let the application's document have the shapes that routes only refer to."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schemas["Problem"] = _PROBLEM
            for component in components:
                shape = component.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas.update(shape.pop("$defs", {}))
                schemas[component.__name__] = shape
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign] # how the framework wants it
