"""Open Inference Protocol v2: metadata, health, and inference through the same path as ``/v1/classify``."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from assay import __version__
from assay.http.classification import classification
from assay.http.envelope import Record
from assay.http.inference import messages
from assay.http.inference.outputs import DATATYPES, response_body, wanted
from assay.http.inference.tensors import parse, pictures
from assay.http.limits import read_body
from assay.http.reference import INFER_BODY, INFER_PARAMETERS, INFER_RESPONSE, MODEL, VERSION, responses
from assay.http.routes.health import not_ready
from assay.http.timing import server_timing
from assay.serving.errors import ModelNotFoundError
from assay.serving.process import Process
from assay.serving.request import Answer, RequestPath

ALIAS = "assay"
"""A name that stands for whatever serves here. A pack's own name is another after a swap; a client may want that, or
may not want to know."""

_INFER_RESPONSES = responses(messages.InferenceResponse, 400, 404, 408, 413, 415, 422, 429, 503, 504)
_INFER_RESPONSES[200] = INFER_RESPONSE

_HEADER_LENGTH = "Inference-Header-Content-Length"


def _served(process: Process, request: Request) -> tuple[str, RequestPath]:
    """The model's name as the path says it, and what serves it. Raises `ModelNotFoundError` for another one."""
    path = process.slot.get()
    name, version = request.path_params["model"], request.path_params.get("version")
    pack = path.model.pack
    if name not in (ALIAS, pack.manifest.name):
        raise ModelNotFoundError(f"There is no such model here; {pack.manifest.name} is, and {ALIAS} stands for it.")
    if version not in (None, pack.digest):
        raise ModelNotFoundError(f"There is no such version here; a version is a pack's digest, here {pack.digest}.")
    return name, path


def _metadata(name: str, path: RequestPath) -> dict[str, Any]:
    pack = path.model.pack
    crop = pack.manifest.preprocess.crop
    return {
        "name": name,
        "versions": [pack.digest],
        "platform": "onnxruntime_onnx",
        "inputs": [
            {"name": "images", "datatype": "UINT8", "shape": [-1, crop, crop, 3]},
            {"name": "encoded", "datatype": "BYTES", "shape": [-1]},
        ],
        "outputs": [{"name": output, "datatype": datatype, "shape": [-1, -1]} for output, datatype in DATATYPES],
    }


def router(process: Process) -> APIRouter:
    """The routes for one process."""
    routes = APIRouter(prefix="/v2", tags=["Open Inference Protocol v2"], default_response_class=Response)

    @routes.get("", summary="What serves here", responses=responses(messages.ServerMetadata))
    async def server() -> Response:
        return JSONResponse({"name": "assay", "version": __version__, "extensions": ["binary_tensor_data"]})

    @routes.get("/health/live", summary="Whether the process lives", responses=responses(messages.Live))
    async def live() -> Response:
        return JSONResponse({"live": True})

    @routes.get("/health/ready", summary="Whether it takes traffic", responses=responses(messages.Ready, 503))
    async def ready(request: Request) -> Response:
        return not_ready(process, request) or JSONResponse({"ready": True})

    async def metadata(request: Request) -> Response:
        return JSONResponse(_metadata(*_served(process, request)))

    async def model_ready(request: Request) -> Response:
        name, _ = _served(process, request)
        return not_ready(process, request) or JSONResponse({"name": name, "ready": True})

    async def infer(request: Request) -> Response:
        return await _infer(process, request)

    named = (("/models/{model}", "the model", [MODEL]),)
    pinned = (("/models/{model}/versions/{version}", "one version of the model", [MODEL, VERSION]),)
    for path, subject, parameters in named + pinned:
        of_model = partial(APIRouter.get, routes, openapi_extra={"parameters": parameters})
        of_model(
            path, summary=f"Inputs and outputs of {subject}", responses=responses(messages.ModelMetadata, 404, 503)
        )(metadata)
        of_model(
            f"{path}/ready",
            summary=f"Whether {subject} takes traffic",
            responses=responses(messages.ModelReady, 404, 503),
        )(model_ready)
        routes.post(
            f"{path}/infer",
            summary=f"Classify images with {subject}",
            openapi_extra={"parameters": parameters + INFER_PARAMETERS, "requestBody": INFER_BODY},
            responses=_INFER_RESPONSES,
        )(infer)
    return routes


async def _infer(process: Process, request: Request) -> Response:
    record: Record = request.scope["assay"]
    settings = process.settings
    name, path = _served(process, request)
    pack = path.model.pack
    with process.receiving.allowance() as allowance:
        body = await read_body(request, settings.max_body_bytes, settings.receive_timeout_s, allowance)
        record.body_read = True
        message, binary = parse(body, request.headers.get(_HEADER_LENGTH))
        outputs = wanted(message)
        images = pictures(message, binary, pack.manifest.preprocess.crop)
        top_k = message.parameters.top_k or settings.top_k
        answers = await path.classify_several(images, top_k, record.started, lambda: record.gone)
    record.answer = Answer.total(answers)
    if process.store is not None:
        record.stored = tuple(
            (image, classification(answer, pack, record.request_id))
            for image, answer in zip(images, answers, strict=True)
            if isinstance(image, bytes)  # pixels that came as numbers are no file to keep
        )
    head = {"model_name": name, "model_version": pack.digest}
    if message.id:
        head["id"] = message.id
    content, header_length = response_body(head, outputs, answers)
    if header_length is None:
        response = Response(content, media_type="application/json")
    else:
        response = Response(content, media_type="application/octet-stream")
        response.headers[_HEADER_LENGTH] = str(header_length)
    response.headers["Server-Timing"] = server_timing(record.answer)
    return response
