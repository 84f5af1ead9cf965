"""The application: routes, problems, envelope."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from assay import __version__
from assay.http import problems, reference
from assay.http.envelope import Envelope
from assay.http.inference.messages import InferenceRequest, InferenceResponse
from assay.http.routes import classify, health, inference, model, page
from assay.serving.process import Process


def create_app(process: Process) -> ASGIApp:
    """The ASGI application of one process.

    The framework's own ``/docs`` is off: it loads its scripts from another host. `routes.page` has one that does not.
    """
    app = FastAPI(title="Assay", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    problems.install(app)
    process.telemetry.expect(problems.refusals())
    reference.install(app, InferenceRequest, InferenceResponse)
    for routes in (classify, inference, model, health):
        app.include_router(routes.router(process))
    app.include_router(page.router())
    return Envelope(app, process)
