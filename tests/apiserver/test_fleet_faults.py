"""Faults of many ModelVariants, of memory, and of an operator that is ended at any moment.

Names of fault rows are those of the operator's fault table.
"""

import signal
from collections import Counter
from pathlib import Path

from support.apiserver import eventually
from support.chart import Chart, find_helm
from support.fleet import Fleet
from support.operator_process import started
from support.packs import MODEL
from support.rounds import Rounds

SETTLE_S = 240  # dozens of checks, two at a time, on a busy machine
WORKERS = 4
LIMIT = 2  # the default of ASSAY_OPERATOR_RUNNING_CHECKS
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def resident(pid: int) -> float:
    """Bytes, as the kernel tells."""
    told = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(told.split("VmRSS:")[1].split()[0])


def test_fault_40_memory_is_told_limited_and_given_back_and_a_kill_for_it_is_harmless(
    swapped, operator, proxy, run_operator, root
):
    told = operator.total("process_resident_memory_bytes")
    assert 0.8 < told / resident(operator.process.pid) < 1.25
    deployment = next(
        entry
        for entry in Chart(root / "charts" / "assay", find_helm(root)).render()
        if entry["kind"] == "Deployment" and entry["metadata"]["name"].endswith("operator")
    )
    limit = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert told < 0.8 * int(limit[:-2]) * UNITS[limit[-2:]]
    operator.end(signal.SIGKILL)  # as the kernel does where the limit is exceeded
    jobs, version = len(swapped.jobs()), swapped.read()["metadata"]["resourceVersion"]
    with run_operator(url=proxy.url) as second:
        eventually(lambda: second.total("assay_reconcile_duration_seconds_count") >= 3, "it was looked at three times")
        assert second.total("assay_variant_condition", name="assay", type="Ready", status="True") == 1
        assert (proxy.writes(), len(swapped.jobs()), swapped.annotations()) == ([], jobs, MODEL)
        assert swapped.read()["metadata"]["resourceVersion"] == version
        swapped.api.delete(swapped.path("assay.dev/v1alpha1", "modelvariants", "assay"))
        eventually(lambda: 'name="assay"' not in second.metrics(), "nothing is kept of what is gone")


def waiting(operator) -> float:
    return operator.total("assay_variant_condition", type="CheckPassed", reason="CheckQueued")


def ready(operator) -> float:
    return operator.total("assay_variant_condition", type="Ready", status="True")


def most_at_once(seen) -> int:
    """Of requests that passes make: they name an object."""
    passes = [one for one in seen if "/modelvariants/" in one.path or "/deployments/" in one.path]
    return max(sum(other.at <= one.at < other.until for other in passes) for one in passes)


def test_fault_41_many_variants_at_start_are_few_at_a_time_and_all_settle(namespace, proxy, run_operator):
    asked = {f"v{number:02}": "good" if number % 3 == 0 else "base" for number in range(60)}
    checks = list(asked.values()).count("good")
    with Fleet(namespace, held=True) as fleet:
        for pack in ("good", "base"):
            fleet.add([name for name in asked if asked[name] == pack], pack)
        settings = {"workers": WORKERS, "resync_seconds": 60}
        with run_operator(url=proxy.url, **settings) as operator:
            eventually(
                lambda: waiting(operator) == checks - LIMIT and ready(operator) == len(asked) - checks,
                "those with a check wait their turn, and the others do not wait for them",
                SETTLE_S,
            )
            fleet.go.set()
            eventually(lambda: not fleet.unsettled(), "all are settled", SETTLE_S)
            eventually(lambda: not fleet.wrong() or fleet.broken, "all are as they were asked to be")
            assert fleet.broken == []
            assert fleet.checks_made == checks
            assert fleet.most_checks == LIMIT
            assert 1 < most_at_once(proxy.seen) <= WORKERS
        for writes in (1, 0):
            # The pass that only words a status differently may not have come before the operator was ended.
            began = len(proxy.seen)
            with run_operator(url=proxy.url, **settings) as operator:
                eventually(lambda: ready(operator) == len(asked), "each was looked at", SETTLE_S)
            written = Counter(one.path for one in proxy.seen[began:] if one.method != "GET")
            assert all(path.endswith("/status") and number <= writes for path, number in written.items()), written
            # One list of all is shared: one in each pass would make the cost grow with the square of their number.
            lists = [one for one in proxy.seen[began:] if one.path.endswith("/modelvariants") and not one.watch]
            assert len(lists) < 10


def test_operator_ended_at_any_moment_leaves_nothing_stuck_doubled_or_unapproved(api, namespace, tmp_path):
    names = ["a", "b", "c"]
    with Fleet(namespace, check_s=1.0, seed=5) as fleet:
        fleet.add(names)
        rounds = Rounds(fleet, names, lambda: started(api, namespace.name, tmp_path), seed=5)
        try:
            for _ in range(5):
                rounds.play()
            assert fleet.checks_made > len(names)
            assert min(rounds.ends.values()) > 0
        finally:
            rounds.operator.end()
