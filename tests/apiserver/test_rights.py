"""The chart's own rights, in a namespace and in the whole cluster: enough, and not one too many."""

import contextlib
import os
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from support.apiserver import STARTED_S
from support.chart import Chart, find_helm
from support.controllers import Namespace
from support.episode import RESYNC_S, Episode, StepFailedError
from support.operator_process import OperatorProcess
from support.rights import Rendered, Right, rights_of, used

AT_ONCE = 6  # operators that are mostly waiting; each takes a second of CPU time to start

FIRST_MISSED = {
    Right("assay.dev", "modelvariants", "get"): "check",
    Right("assay.dev", "modelvariants", "list"): "ready",
    Right("assay.dev", "modelvariants", "watch"): "check",
    Right("assay.dev", "modelvariants/status", "update"): "waiting_check_is_told",
    Right("apps", "deployments", "get"): "check",
    Right("apps", "deployments", "list"): "scaled",
    Right("apps", "deployments", "watch"): "scaled",
    Right("apps", "deployments", "patch"): "applied",
    Right("apps", "replicasets", "list"): "check",
    Right("batch", "jobs", "get"): "name_taken",
    Right("batch", "jobs", "list"): "check",
    Right("batch", "jobs", "watch"): "name_free",
    Right("batch", "jobs", "create"): "check",
    Right("batch", "jobs", "delete"): "running_check_is_dropped",
    Right("", "pods", "list"): "check",
    Right("", "pods", "watch"): "pod_lost",
    Right("", "events", "list"): "waiting_check_is_told",
    Right("events.k8s.io", "events", "create"): "events",
}
"""Each right, and the first step of the episode that needs it."""

SILENT = {
    Right("assay.dev", "modelvariants", verb) for verb in ("get", "list", "watch")
} | {
    Right("assay.dev", "modelvariants/status", "update"), Right("apps", "deployments", "list"),
    Right("apps", "deployments", "watch"), Right("batch", "jobs", "watch"), Right("", "pods", "watch"),
    Right("events.k8s.io", "events", "create"),
}  # fmt: skip
"""Those whose lack the operator cannot tell in a ModelVariant: it does not hear of it, or cannot write there."""


@pytest.fixture(scope="module")
def chart(root) -> Chart:
    return Chart(root / "charts" / "assay", find_helm(root))


@pytest.fixture(scope="module")
def live(api, tmp_path_factory):
    """Live the episode with an operator of its own. Returns the step that failed, if one did, and what was told."""

    def through(rendered, name, *, without=None, url="", clusterwide=False) -> tuple[str, str]:
        namespace = Namespace(api, f"rights-{name}-{os.getpid()}")
        token = rendered.install(api, namespace, without)
        where = "" if clusterwide else namespace.name
        folder = tmp_path_factory.mktemp("operator")
        operator = OperatorProcess(api, where, folder, url, {"resync_seconds": RESYNC_S}, token)
        try:
            Episode(namespace, operator, FIRST_MISSED[without] if without in SILENT else "").live()
        except StepFailedError as failed:
            return failed.step, failed.message
        finally:
            operator.end(wait_s=STARTED_S)
            with contextlib.suppress(Exception):
                api.delete(namespace.path("assay.dev/v1alpha1", "modelvariants", "assay"))
        return "", ""

    return through


@pytest.fixture(scope="module")
def less_one(chart, live) -> dict[Right, Future[tuple[str, str]]]:
    """What came of the episode with each right left out, several operators at a time."""
    rendered = Rendered(chart, "namespace")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {
            right: pool.submit(live, rendered, str(number), without=right) for number, right in enumerate(FIRST_MISSED)
        }


@pytest.mark.parametrize("scope", ["namespace", "cluster"])
def test_operator_uses_exactly_the_rights_that_the_chart_gives_it(api, chart, live, proxy, scope):
    for variant in api.get("/apis/assay.dev/v1alpha1/modelvariants")["items"]:
        api.delete(_path(variant))  # what other tests have left: an operator of the whole cluster would care for it
    rendered = Rendered(chart, scope)
    assert live(rendered, scope, url=proxy.url, clusterwide=scope == "cluster") == ("", "")
    assert used(proxy.seen) == rights_of(rendered.role) == set(FIRST_MISSED)
    assert not [one for one in proxy.seen if one.status == 403]


def _path(variant) -> str:
    meta = variant["metadata"]
    return f"/apis/assay.dev/v1alpha1/namespaces/{meta['namespace']}/modelvariants/{meta['name']}"


@pytest.mark.parametrize("right", FIRST_MISSED, ids=str)
def test_without_any_one_right_a_step_fails_and_where_it_can_be_told_it_is(less_one, right):
    step, message = less_one[right].result()
    assert step == FIRST_MISSED[right], message
    if right not in SILENT:
        told = f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"'
        assert told in message
