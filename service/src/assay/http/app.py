"""The application: routes, problems, envelope."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from assay import __version__
from assay.http import problems, reference
from assay.http.envelope import Envelope
from assay.http.inference.messages import InferenceRequest, InferenceResponse
from assay.http.routes import classify, health, inference, model
from assay.serving.process import Process


def create_app(process: Process) -> ASGIApp:
    """The ASGI application of one process.

    ``/docs`` is off: the framework's page loads its scripts from another host, and would not work offline. The document
    itself is at ``/openapi.json``.
    """
    app = FastAPI(title="Assay", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    problems.install(app)
    reference.install(app, InferenceRequest, InferenceResponse)
    for routes in (classify, inference, model, health):
        app.include_router(routes.router(process))
    return Envelope(app, process)
