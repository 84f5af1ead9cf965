"""The operator behind a proxy that loses, delays, repeats and refuses what passes between it and a real API server.

Names of fault rows are those of the operator's fault table.
"""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.apiserver import OPERATOR, RENEWED, eventually
from support.fault_proxy import Fault, Reorder, drop, gone, hang, lose, refuse, silence, stale
from support.packs import FAST, GOOD, MODEL, spec

WATCHED = ("modelvariants", "deployments", "pods", "jobs")
READS_A_PASS = 12  # of one object, resync included; generous: what it guards against is a loop


def swap(target) -> None:
    """Take a target to GOOD, playing the cluster's part."""
    target.variant(spec(GOOD, **FAST))
    finish_swap(target)


def finish_swap(target) -> None:
    target.finish(target.new_job())
    eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
    target.roll()
    target.wait("True Serving")


def resyncs(operator) -> float:
    """Time of the last one."""
    for family in text_string_to_metric_families(operator.metrics()):
        if family.name == "assay_last_resync_timestamp_seconds":
            return family.samples[0].value
    raise KeyError("assay_last_resync_timestamp_seconds")


def is_idle(proxy, operator) -> None:
    """Nothing is written, and little is read, while three resyncs go by; the one before tells of what just happened."""
    before = resyncs(operator)
    eventually(lambda: resyncs(operator) > before + 1, "a resync has gone by")
    began, writes, seen = resyncs(operator), len(proxy.writes()), len(proxy.seen)
    eventually(lambda: resyncs(operator) > began + 3, "three resyncs have gone by")
    assert proxy.writes()[writes:] == []
    passes = resyncs(operator) - began + 1
    assert len([one for one in proxy.seen[seen:] if not one.watch]) <= READS_A_PASS * passes


def jobs_made(proxy) -> int:
    return len([one for one in proxy.seen if one.method == "POST" and one.path.endswith("/jobs") and one.status == 201])


def test_fault_6_stalled_watches_are_made_up_for_by_the_resync_and_begun_anew(target, proxy, run_operator):
    with (
        proxy.fault(Fault(watch=True, lines=silence)),
        run_operator(url=proxy.url, watch_timeout_seconds=2) as operator,
    ):
        swap(target)
        for kind in WATCHED:
            eventually(
                lambda kind=kind: [one for one in proxy.seen if one.watch and one.path.endswith(kind)],
                f"the watch of {kind} is given up",
            )
        is_idle(proxy, operator)


def test_fault_6_liveness_fails_while_nothing_is_answered_and_comes_back(target, proxy, run_operator):
    with run_operator(url=proxy.url, liveness_seconds=2, request_timeout_seconds=1) as operator:
        before = resyncs(operator)
        with proxy.fault(Fault(act=hang)):
            eventually(lambda: operator.answers("/livez") == 503, "liveness fails")
            assert operator.answers("/readyz") == 200  # what it watches does not depend on it
            stalled = resyncs(operator)
            assert stalled < before + 3  # the metric tells since when
        proxy.release()
        eventually(lambda: operator.answers("/livez") == 200, "liveness is back")
        swap(target)


@pytest.mark.parametrize("lines", [gone, Reorder()], ids=["410 for every event", "reordered and doubled events"])
def test_fault_7_broken_news_makes_no_extra_writes_and_no_hot_loop(target, proxy, run_operator, lines):
    with proxy.fault(Fault(watch=True, lines=lines)), run_operator(url=proxy.url) as operator:
        swap(target)
        is_idle(proxy, operator)
        proxy.break_watches()
        is_idle(proxy, operator)
    assert jobs_made(proxy) == 1
    assert len([one for one in proxy.writes() if "/deployments/" in one.path]) == 1


def test_fault_8_stale_read_cannot_roll_out_under_limits_that_were_not_checked(target, proxy, run_operator):
    with run_operator(url=proxy.url):
        target.variant(spec(GOOD, **FAST))
        first = target.new_job()
        with proxy.fault(Fault(method="GET", path="/deployments/assay$", act=stale({}))) as cache:
            eventually(lambda: cache.met, "the Deployment is kept as it was")
            container = target.read_deployment()["spec"]["template"]["spec"]["containers"][0]
            container["resources"]["limits"]["cpu"] = "1"
            changed = {"spec": {"template": {"spec": {"containers": [container]}}}}
            target.api.merge(target.path("apps/v1", "deployments", "assay"), changed, manager="helm")
            target.finish(first)
            eventually(
                lambda: [one for one in proxy.seen if one.method == "PATCH" and one.status == 409],
                "an apply is refused for its resourceVersion",
            )
            assert target.annotations() == {}
        second = eventually(
            lambda: [job for job in target.jobs() if job["metadata"]["uid"] != first["metadata"]["uid"]],
            "it is checked anew, under the limits there are now",
        )[0]
        assert second["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
        assert target.annotations() == {}


@pytest.mark.parametrize(
    ("method", "act"),
    [
        pytest.param("GET", hang, id="reads hang"),
        pytest.param("GET", refuse(503), id="reads are answered 503"),
        pytest.param("POST", lose, id="answers to creations are lost"),
        pytest.param("POST", refuse(429, Retry_After="1"), id="creations are answered 429"),
        pytest.param("PATCH|PUT", lose, id="answers to changes are lost"),
        pytest.param("PATCH|PUT", drop, id="changes are not answered"),
        pytest.param("PATCH|PUT", refuse(500), id="changes are answered 500"),
    ],
)
def test_fault_9_trouble_with_the_api_server_costs_time_and_nothing_else(target, proxy, run_operator, method, act):
    fault = Fault(act=act, method=method, watch=False, path=f"/namespaces/{target.name}/", times=3)
    with run_operator(url=proxy.url, request_timeout_seconds=1) as operator, proxy.fault(fault):
        swap(target)
        assert fault.met == fault.times
        is_idle(proxy, operator)
    assert len(target.jobs()) == 1
    assert target.read_deployment()["metadata"]["generation"] == 2


def test_fault_9_conditions_keep_their_value_while_the_api_server_is_away(target, proxy, run_operator):
    with run_operator(url=proxy.url) as operator:
        swap(target)
        is_idle(proxy, operator)
        before = target.read()
        with proxy.fault(Fault(act=refuse(503))) as outage:
            eventually(lambda: outage.met > 20, "it has asked for a while")
            assert operator.answers("/livez") == 200
        is_idle(proxy, operator)
        assert target.read() == before


def test_fault_9_retry_after_is_waited_for(target, proxy, run_operator):
    wait_s = 3
    fault = Fault(act=refuse(429, Retry_After=str(wait_s)), method="POST", path="/jobs$", times=1)
    # No resync in between: that would look at the object of itself.
    with run_operator(url=proxy.url, resync_seconds=60), proxy.fault(fault):
        swap(target)
    tries = [one for one in proxy.seen if one.method == "POST" and one.path.endswith("/jobs")]
    assert [one.status for one in tries] == [429, 201]
    assert tries[1].at - tries[0].at >= wait_s


def test_fault_10_renewed_token_is_taken_up_where_the_old_one_is_refused(target, proxy, run_operator, api, tmp_path):
    """Tokens of ServiceAccounts are renewed in their file; here it is the kubeconfig that is written anew."""

    async def old_is_refused(passed, request):
        if request.headers.get("Authorization", "").lower() == f"bearer {OPERATOR}":
            return await refuse(401)(passed, request)
        return None

    with run_operator(url=proxy.url) as operator:
        swap(target)
        with proxy.fault(Fault(act=old_is_refused)) as refused:
            (tmp_path / "kubeconfig").write_text("")  # as somebody finds it who reads while it is being written
            eventually(lambda: refused.met > 3, "the old token is refused")
            assert operator.answers("/livez") == 200
            api.kubeconfig(tmp_path / "kubeconfig", RENEWED, proxy.url)
            proxy.break_watches()
            target.edit({"model": {**GOOD, "digest": "sha256:" + "7" * 64}})
            eventually(lambda: len(target.jobs()) == 2, "it goes on with the new one")
            assert target.condition("Stalled") != "True InsufficientPermissions"
            assert operator.answers("/livez") == 200
