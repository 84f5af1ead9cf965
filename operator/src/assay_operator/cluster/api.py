"""One request to the Kubernetes API: JSON in, JSON out, errors translated, the server's clock noted."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self

import aiohttp
from kubernetes.aio import client, config

from assay_operator.errors import ApiError, ConflictError, DeniedError, InvalidError, NotFoundError

MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: InvalidError,
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: ConflictError,
    422: InvalidError,
}

_MISSING_RIGHT: Final = re.compile(r'\bUser "[^"]*" cannot ')  # as every authorizer's refusal is worded

Json = dict[str, Any]


class Api:
    """Access to one API server. Errors are of kind ApiError; nothing is retried here: the work queue does that."""

    # Any, because the generated client's methods are not typed.
    def __init__(
        self,
        connection: Any,  # noqa: ANN401
        log_in: Callable[[], Awaitable[None]],
        timeout_s: float,
        count: Callable[[str, int], None],
    ) -> None:
        self._connection = connection
        self._log_in = log_in
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._count = count
        self._server_time: datetime | None = None

    @classmethod
    async def connect(cls, timeout_s: float, count: Callable[[str, int], None]) -> Self:
        """Connect as the pod's ServiceAccount, or else as the kubeconfig says ($KUBECONFIG, ~/.kube/config).

        timeout_s: for one request. count: called with method and status (0 for no answer) of every request.
        """
        settings = client.Configuration()
        loaders: Any = config  # its functions are not typed

        async def log_in() -> None:
            try:
                loaders.load_incluster_config(client_configuration=settings)
                return
            except config.ConfigException:
                pass  # not in a pod
            try:
                await loaders.load_kube_config(client_configuration=settings)
            except Exception as error:  # a file that is being written, or is none, makes it raise whatever comes
                told = f"there is neither a ServiceAccount nor a kubeconfig to connect with: {error!r}"
                raise ApiError(told) from error

        await log_in()
        return cls(client.ApiClient(settings), log_in, timeout_s, count)

    @property
    def now(self) -> datetime:
        """The API server's clock at its last answer (whole seconds): deadlines do not depend on this node's clock."""
        return self._server_time or datetime.now(UTC)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def get(self, path: str, what: str, **query: str) -> Json:
        """GET an object or a list."""
        return await self._request("GET", path, what, query)

    async def create(self, path: str, body: Mapping[str, Any], what: str) -> Json:
        """POST an object. ConflictError where its name is taken."""
        return await self._request("POST", path, what, {}, body, "application/json")

    async def replace(self, path: str, body: Mapping[str, Any], what: str) -> Json:
        """PUT an object. ConflictError where its resourceVersion is not the newest."""
        return await self._request("PUT", path, what, {}, body, "application/json")

    async def patch(self, path: str, body: Mapping[str, Any], what: str, kind: str, **query: str) -> Json:
        """PATCH an object with MERGE_PATCH or APPLY_PATCH."""
        return await self._request("PATCH", path, what, query, body, kind)

    async def delete(self, path: str, body: Mapping[str, Any], what: str) -> Json:
        """DELETE an object under the preconditions of `body` (DeleteOptions)."""
        return await self._request("DELETE", path, what, {}, body, "application/json")

    async def _request(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        named = f"{method.lower()} {what}"
        answer, content = await self._send(named, method, path, query, headers, body)
        if answer.status == 401 and await self._has_new_token():
            answer, content = await self._send(named, method, path, query, headers, body)
        if answer.status >= 400:
            raise _refusal(answer.status, content, named, answer.getheader("Retry-After"))
        decoded = json.loads(content)
        if not isinstance(decoded, dict):
            raise ApiError(f"the API server's answer is not an object ({named})", what=named)
        return decoded

    # Any, as above.
    async def _send(
        self,
        named: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: dict[str, str],
        body: Mapping[str, Any] | None,
    ) -> tuple[Any, bytes]:
        """The answer and what it holds. ApiError where there is none."""
        try:
            request = await self._connection.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._connection.call_api(*request, _request_timeout=self._timeout)
            content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._count(method, 0)
            raise ApiError(f"the API server did not answer ({named}): {error!r}", what=named) from error
        self._count(method, answer.status)
        self._note_time(answer.getheader("Date"))
        return answer, content

    async def _has_new_token(self) -> bool:
        """Log in again: the token is in a file that is written anew before it runs out. Whether it is another one."""
        keys = self._connection.configuration.api_key
        before = dict(keys)
        try:
            await self._log_in()
        except ApiError:
            return False  # the refusal that led here is what to tell of
        return bool(before != keys)

    def _note_time(self, date: str | None) -> None:
        if date:
            self._server_time = parsedate_to_datetime(date).astimezone(UTC)


def _refusal(status: int, content: bytes, named: str, retry_after: str | None) -> ApiError:
    try:
        told = json.loads(content)
        message, details = told.get("message") or "", told.get("details") or {}
    except (ValueError, AttributeError):
        message, details = content[:200].decode(errors="replace"), {}
    kind = _BY_STATUS.get(status, ApiError)
    if any(cause.get("reason") == "NamespaceTerminating" for cause in details.get("causes") or ()):
        kind = ApiError  # it says 403, but no right is missing: the namespace is about to be gone
    elif kind is DeniedError and status == 403 and not _MISSING_RIGHT.search(message):
        kind = InvalidError  # a quota or a policy says 403 as well, and no Role would help
    wait_s = float(retry_after) if retry_after and retry_after.isdigit() else None
    return kind(f"{named}: {status} {message}".strip(), status=status, what=named, retry_after_s=wait_s)
