"""``GET /v1/model``: which pack serves here, and on what."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from assay.http.reference import ServedModel, responses
from assay.platform.cpu import notable_features
from assay.serving.process import Process


def router(process: Process) -> APIRouter:
    """The route for one process."""
    routes = APIRouter()

    @routes.get(
        "/v1/model",
        tags=["Classification"],
        summary="The model that is served",
        response_class=Response,
        responses=responses(ServedModel, 503),
    )
    async def model() -> Response:
        served = process.slot.get().model
        manifest = served.pack.manifest
        return JSONResponse(
            {
                "name": manifest.name,
                "precision": manifest.precision,
                "digest": served.pack.digest,
                "uri": served.uri,
                "variant": process.settings.variant,
                "classes": len(served.pack.labels),
                "workers": process.workers,
                "cpu_limit_millicores": process.limit.millicores,
                "memory_limit_bytes": process.memory_limit_bytes,
                "cpu_features": notable_features(),
                # The groups a quantisation was calibrated on may be a hundred thousand digests; the pack has them.
                "manifest": manifest.model_dump(mode="json", exclude={"quantization": {"calibration_groups"}}),
            }
        )

    return routes
