"""``POST /v1/classify``: an image in, its labels out."""

import json
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.http.envelope import CLASSIFY, Record
from assay.http.limits import read_body
from assay.http.upload import image_bytes
from assay.serving.errors import InvalidParameterError
from assay.serving.process import Process
from assay.serving.request import Answer
from assay.vision.header import MEDIA_TYPES

MAX_TOP_K = 1000
"""Most labels one may ask for: the classes of ImageNet. A model with fewer classes gives all it has."""

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_MULTIPART = {
    "schema": {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
}
_PROBLEMS = {
    400: "A parameter or the multipart body is not what it should be.",
    408: "The body did not arrive in time.",
    413: "Too many bytes, or too many pixels.",
    415: "Not an image of a format that is taken.",
    422: "The image is broken.",
    429: "More work waits than may wait; Retry-After says when to try again.",
    503: "Not ready, or draining.",
    504: "The request waited longer than its deadline.",
}

_OPENAPI: dict[str, Any] = {
    "parameters": [
        {
            "name": "top_k",
            "in": "query",
            "description": "Labels wanted, best first; by default 3.",
            "schema": {"type": "integer", "minimum": 1, "maximum": MAX_TOP_K},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {**dict.fromkeys(MEDIA_TYPES.values(), _BINARY), "multipart/form-data": _MULTIPART},
    },
}


def _top_k(request: Request, default: int) -> int:
    """The parameter ``top_k``, read here: the framework's way to it costs the event loop 0.1 ms."""
    given = request.query_params.get("top_k")
    if given is None:
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > len(str(MAX_TOP_K)):
        raise InvalidParameterError(f"top_k is no whole number from 1 to {MAX_TOP_K}.")
    if not 1 <= int(given) <= MAX_TOP_K:
        raise InvalidParameterError(f"top_k is {int(given)}; it may be 1 to {MAX_TOP_K}.")
    return int(given)


def _server_timing(answer: Answer) -> str:
    """``Server-Timing`` (W3C): milliseconds of each stage; ``respond`` ends where this header is written."""
    stages = {**answer.stages, "respond": time.perf_counter() - answer.finished}
    order = ("receive", "queue", "decode", "preprocess", "infer", "postprocess", "respond")
    return ", ".join(f"{name};dur={stages[name] * 1000:.3f}" for name in order)


def router(process: Process) -> APIRouter:
    """The route for one process."""
    routes = APIRouter()
    settings = process.settings

    @routes.post(
        CLASSIFY,
        response_class=Response,
        summary="Classify an image",
        openapi_extra=_OPENAPI,
        responses={
            200: {"description": "The best labels, best first.", "content": {"application/json": {}}},
            **{status: {"description": text} for status, text in _PROBLEMS.items()},
        },
    )
    async def classify(request: Request) -> Response:
        record: Record = request.scope["assay"]
        top_k = _top_k(request, settings.top_k)
        path = process.slot.get()
        with process.receiving.allowance() as allowance:
            body = await read_body(request, settings.max_body_bytes, settings.receive_timeout_s, allowance)
            record.body_read = True
            data = image_bytes(body, request.headers.get("content-type", ""))
            answer = await path.classify(data, top_k, record.started)
        manifest = path.model.pack.manifest
        content = {
            "predictions": [
                {"label": label, "index": index, "score": round(score, 6)} for index, label, score in answer.predictions
            ],
            "model": {"name": manifest.name, "precision": manifest.precision, "digest": path.model.pack.digest},
            "request_id": record.request_id,
        }
        record.answer = answer
        response = Response(json.dumps(content), media_type="application/json")
        response.headers["Server-Timing"] = _server_timing(answer)
        return response

    return routes
