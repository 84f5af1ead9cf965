"""Checks that cannot start, die, hang or lie: told for what they are, never a Pass, and nothing is moved."""

import pytest

from support.fault_objects import MAX_MEMORY, QUOTA_CPU

# Before the real command in the container's PATH: what a broken image, node or driver makes of it. A shell that is the
# container's first process ignores a signal that it sends itself, so a child dies of it, with the same exit code.
BROKEN = {
    "crash": "exit 7",
    "signal": "sh -c 'kill -ILL $$'; exit $?",
    "hang": "sleep 3600",
    "silent": "exit 0",
    "garbage": "echo it went well > /dev/termination-log",
    "truncated": 'real "$@" && said=$(head -c 400 /dev/termination-log) && echo "$said" > /dev/termination-log',
    "nan": """real "$@" && change 's/"costRatioPermille":[0-9]*/"costRatioPermille":NaN/'""",
    "foreign": """real "$@" && change 's/"jobUID":"[^"]*"/"jobUID":"00000000-0000-0000-0000-000000000000"/'""",
    "stale": """real "$@" && change 's/"inputsHash":"[^"]*"/"inputsHash":"0123-4567"/'""",
}
LIES = ("silent", "garbage", "truncated", "nan", "foreign", "stale")
PRELUDE = """#!/bin/sh
real() { PATH="${PATH#*:}" assay "$@"; }
change() { said=$(sed "$1" /dev/termination-log); echo "$said" > /dev/termination-log; }
"""
CHECKS = {
    "unpulled": {"startDeadlineSeconds": 30},
    "unschedulable": {"startDeadlineSeconds": 15},
    "quota": {"startDeadlineSeconds": 15, "cpuRequest": str(QUOTA_CPU + 10)},
    "limits": {"startDeadlineSeconds": 15},
    "unsafe": {"startDeadlineSeconds": 15},
    "crash": {"maxAttempts": 2},
    "hang": {"startDeadlineSeconds": 40, "timeoutSeconds": 10},
}


@pytest.fixture(scope="module")
def broken(crowd):
    """Targets scaled to zero, each with something wrong, and a check of the same good pack on each of them."""
    crowd.target("unpulled", container={"image": "localhost/nowhere:1", "imagePullPolicy": "IfNotPresent"})
    crowd.target("unschedulable", pod={"nodeSelector": {"kubernetes.io/hostname": "nowhere"}})
    crowd.target("quota", container=limited(cpu=str(2 * QUOTA_CPU)))
    crowd.target("limits", container=limited(memory=f"{2 * int(MAX_MEMORY.removesuffix('Gi'))}Gi"))
    crowd.target("unsafe", pod={"securityContext": {}}, container={"securityContext": {"privileged": True}})
    crowd.target("small", container=limited(memory="40Mi"))
    path = crowd.cluster.kubectl("exec", "pod/pack-source", "--", "printenv", "PATH").strip()
    for kind, program in BROKEN.items():
        data = {"assay": f"{PRELUDE}{program}\n"}
        crowd.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"broken-{kind}"}, "data": data}
        )
        volume = {"configMap": {"name": f"broken-{kind}", "defaultMode": 0o555}}
        crowd.target(kind, env={"PATH": f"/broken:{path}"}, volumes={"/broken": volume})
    names = [*BROKEN, "unpulled", "unschedulable", "quota", "limits", "unsafe", "small"]
    crowd.ask_all({name: crowd.body(crowd.model("good"), target=name, check=CHECKS.get(name)) for name in names})
    return crowd


def limited(**limits):
    return {"resources": {"limits": {"cpu": "1", "memory": "512Mi"} | limits, "requests": {"cpu": "50m"}}}


def stalled(bench, name, reason, attempts=1):
    """The message of a variant that stalled for this reason, without a Pass, a rollout or a further Job."""
    variant = bench.variant(name)
    settled = variant.settle()
    assert variant.condition("Stalled", settled)["status"] == "True", variant.explain()
    passed = variant.condition("CheckPassed", settled)
    assert (passed["status"], passed["reason"]) == ("False", reason), variant.explain()
    assert bench.annotations(name) == {}
    assert settled["status"]["target"]["attempt"] == attempts
    return passed["message"]


def test_fault_12_check_that_gets_no_pod_quotes_why(broken):
    assert "node(s) didn't match" in stalled(broken, "unschedulable", "CheckUnschedulable")
    assert "exceeded quota: cpu" in stalled(broken, "quota", "CheckUnschedulable")
    assert "maximum memory usage per Container" in stalled(broken, "limits", "CheckUnschedulable")
    assert "violates PodSecurity" in stalled(broken, "unsafe", "CheckUnschedulable")


def test_fault_11_image_that_cannot_be_pulled_is_told(broken):
    assert "localhost/nowhere:1" in stalled(broken, "unpulled", "CheckImagePullFailed")


def test_fault_13_check_that_dies_is_tried_again_and_told(broken):
    assert "OOMKilled" in stalled(broken, "small", "CheckCrashed")
    assert "ended by signal 4" in stalled(broken, "signal", "CheckCrashed")  # SIGILL
    assert "exit code 7" in stalled(broken, "crash", "CheckCrashed", attempts=2)
    assert len(broken.jobs("crash")) == 2


@pytest.mark.parametrize("lie", LIES)
def test_fault_16_result_that_is_not_the_checks_own_is_not_believed(broken, lie):
    stalled(broken, lie, "CheckResultInvalid")
    assert broken.jobs(lie)[0]["status"].get("succeeded") == 1, "the check ended well, but for its result"


def test_fault_15_check_that_hangs_is_ended(broken):
    stalled(broken, "hang", "CheckTimedOut")
    assert not broken.jobs("hang")[0]["status"].get("active"), "a check that was given up still runs"
