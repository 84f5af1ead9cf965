"""``/livez``, ``/readyz`` and ``/metrics``. None of them waits for a worker."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client.exposition import choose_encoder

from assay.http.problems import problem
from assay.serving.lifecycle import Phase
from assay.serving.process import Process


def router(process: Process) -> APIRouter:
    """The routes for one process."""
    routes = APIRouter()

    @routes.get("/livez", summary="Whether the process lives")
    async def livez() -> JSONResponse:
        return JSONResponse({"status": "alive"})

    @routes.get("/readyz", response_class=Response, summary="Whether it takes traffic; if not, why")
    async def readyz() -> Response:
        reason = process.lifecycle.unready_reason()
        if reason is None:
            return JSONResponse({"status": "ready"})
        return problem(503, "NotReady" if process.lifecycle.phase is Phase.LOADING else "Draining", reason)

    @routes.get("/metrics", response_class=Response, summary="Prometheus and OpenMetrics")
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(process.telemetry.registry), headers={"Content-Type": content_type})

    return routes
