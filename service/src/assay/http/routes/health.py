"""``/livez``, ``/readyz`` and ``/metrics``. None of them waits for a worker."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from assay.http.problems import problem
from assay.http.reference import Responses, Status, responses
from assay.serving.errors import NotReadyError
from assay.serving.lifecycle import Phase
from assay.serving.process import Process

_TEXT = {"schema": {"type": "string"}}
_METRICS: Responses = {
    200: {"description": "The metrics.", "content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}}
}


def not_ready(process: Process, request: Request) -> Response | None:
    """The problem of a process that takes no traffic; nothing for one that does."""
    reason = process.lifecycle.unready_reason()
    if reason is None:
        return None
    code = "NotReady" if process.lifecycle.phase is Phase.LOADING else "Draining"
    return problem(503, code, reason, request.scope["path"], retry_after_s=NotReadyError.retry_after_s)


def router(process: Process) -> APIRouter:
    """The routes for one process."""
    routes = APIRouter(tags=["Operation"], default_response_class=Response)

    @routes.get("/livez", summary="Whether the process lives", responses=responses(Status))
    async def livez() -> Response:
        return JSONResponse({"status": "alive"})

    @routes.get("/readyz", summary="Whether it takes traffic; if not, why", responses=responses(Status, 503))
    async def readyz(request: Request) -> Response:
        return not_ready(process, request) or JSONResponse({"status": "ready"})

    @routes.get("/metrics", summary="Prometheus and OpenMetrics", responses=_METRICS)
    async def metrics(request: Request) -> Response:
        content, media_type = process.telemetry.render(request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": media_type})

    return routes
