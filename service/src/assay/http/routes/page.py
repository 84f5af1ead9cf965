"""``GET /``, the page, and ``GET /docs``, the reference: files of the package, served from memory."""

from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.http.reference import Responses

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_HEADERS = {
    # Nothing but this origin's own files, no script or style within the markup. A photo is shown from memory (blob:).
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked again each time, for an answer without a body: after an upgrade nobody sees the old page.
    "Cache-Control": "no-cache",
}
_HTML: Responses = {200: {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}}}


class _File:
    """A file of the page, and the responses that give it."""

    def __init__(self, name: str) -> None:
        self._content = files("assay.http").joinpath("page", name).read_bytes()
        self._media_type = _MEDIA_TYPES[name[name.index(".") :]]
        self._headers = {**_HEADERS, "ETag": f'"{sha256(self._content).hexdigest()[:32]}"'}

    def response(self, request: Request) -> Response:
        """The file, or that the client has it already (RFC 9110, section 13.1.2)."""
        if self._headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, headers={**self._headers, "Content-Type": self._media_type})


def router() -> APIRouter:
    """The routes; they need nothing of a process, and work before its model does."""
    routes = APIRouter(tags=["Pages"], default_response_class=Response)

    def serve(path: str, name: str, **options: object) -> None:
        file = _File(name)

        async def give(request: Request) -> Response:
            return file.response(request)

        routes.add_api_route(path, give, methods=["GET"], **options)  # type: ignore[arg-type] # named below

    serve("/", "index.html", summary="The page: drop a photo, see its labels", responses=_HTML)
    serve("/docs", "docs.html", summary="This reference", responses=_HTML)
    for name in ("style.css", "page.js", "docs.js", "icon.svg"):
        serve(f"/assets/{name}", name, include_in_schema=False)
    return routes
