"""What tools that wait make of a ModelVariant: a real kubectl before a real API server, in every state there is."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from assay_operator.models.status import Status
from support.apiserver import ADMIN, KUBE, WAIT_S, eventually
from support.end_states import END_STATES, PASSING_STATES
from support.kstatus import kstatus
from support.packs import BAD, BASE_URI, FAST, GOOD, MODEL, spec

ALL = END_STATES | PASSING_STATES
ENOUGH_S = 4 * WAIT_S  # for a kubectl that waits while a test plays a whole check


class Kubectl:
    """A real kubectl with an administrator's rights in one namespace."""

    def __init__(self, config: Path, namespace: str) -> None:
        self._command = [KUBE, "kubectl", f"--kubeconfig={config}", f"--namespace={namespace}"]
        self._env = os.environ | {"HOME": str(config.parent)}  # its cache of what kinds there are

    def run(self, *argv: str) -> subprocess.CompletedProcess:
        return subprocess.run([*self._command, *argv], env=self._env, capture_output=True, text=True, timeout=ENOUGH_S)

    def start(self, *argv: str) -> subprocess.Popen:
        return subprocess.Popen([*self._command, *argv], env=self._env, stdout=subprocess.PIPE, text=True)

    def finds(self, condition: str) -> bool:
        """Whether `kubectl wait` ends at once, because the variant has the condition now."""
        seen = self.run("wait", f"--for=condition={condition}", "mv/assay", "--timeout=0")
        assert seen.returncode == 0 or "condition not met" in seen.stderr, seen.stderr
        return seen.returncode == 0

    def row(self, *argv: str) -> dict[str, str]:
        """The one line of `kubectl get mv`, by column; the last column may have blanks in it."""
        head, line = self.run("get", "mv", *argv).stdout.strip().splitlines()
        return dict(zip(head.split(), line.split(maxsplit=len(head.split()) - 1), strict=True))


@pytest.fixture
def kubectl(api, namespace, tmp_path) -> Kubectl:
    return Kubectl(api.kubeconfig(tmp_path / "admin", token=ADMIN), namespace.name)


def stored(namespace, world) -> dict:
    """A ModelVariant with the status of this state, of the same generation."""
    namespace.variant(spec(GOOD))
    for number in range(world.generation - 1):
        namespace.edit({"retryToken": str(number)})
    path = namespace.path("assay.dev/v1alpha1", "modelvariants", "assay", "status")
    namespace.api.merge(path, {"status": world.status.to_json()})
    return namespace.read()


@pytest.mark.parametrize("name", ALL)
def test_kubectl_and_kstatus_tell_ready_from_stalled_and_from_under_way(namespace, kubectl, name):
    world = ALL[name].make()
    made = stored(namespace, world)
    assert Status.model_validate(made["status"]) == world.status  # nothing was pruned
    assert kstatus(made) == ALL[name].kstatus
    assert kubectl.finds("Ready") is (ALL[name].kstatus == "Current")
    assert kubectl.finds("Stalled") is (ALL[name].kstatus == "Failed")
    assert kubectl.finds("Reconciling") is (ALL[name].kstatus == "InProgress")


def test_variant_that_nobody_has_looked_at_is_under_way(namespace, kubectl):
    made = namespace.variant(spec(GOOD))
    assert kstatus(made) == kstatus(namespace.read()) == "InProgress"
    assert not kubectl.finds("Ready")


def test_variant_whose_status_is_lost_is_under_way(namespace, kubectl):
    stored(namespace, ALL["passed"].make())
    namespace.api.merge(namespace.path("assay.dev/v1alpha1", "modelvariants", "assay", "status"), {"status": None})
    assert kstatus(namespace.read()) == "InProgress"
    assert not kubectl.finds("Ready")


@pytest.mark.parametrize(("name", "condition"), [("passed", "Ready"), ("inaccurate", "Stalled")])
def test_end_of_the_spec_before_this_one_is_not_taken_for_its_own(namespace, kubectl, name, condition):
    stored(namespace, ALL[name].make())
    assert kubectl.finds(condition)
    made = namespace.edit({"model": BAD})
    assert kstatus(made) == "InProgress"
    assert not kubectl.finds(condition)


def test_kubectl_that_waits_from_the_beginning_ends_with_the_verdict(target, operator, kubectl):
    target.variant(spec(GOOD, **FAST))
    with kubectl.start("wait", "--for=condition=Ready", "mv/assay", f"--timeout={ENOUGH_S}s") as waiting:
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        assert waiting.poll() is None
        target.roll()
        assert waiting.wait(ENOUGH_S) == 0
    target.edit({"model": BAD})
    with kubectl.start("wait", "--for=condition=Ready", "mv/assay", f"--timeout={ENOUGH_S}s") as waiting:
        eventually(lambda: len(target.jobs()) == 2, "a second check is made")
        target.finish(next(job for job in target.jobs() if not job["status"].get("conditions")), "Fail")
        assert kubectl.run("wait", "--for=condition=Stalled", "mv/assay", f"--timeout={ENOUGH_S}s").returncode == 0
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGTERM)
    assert kstatus(target.read()) == "Failed"


def test_columns_show_the_verdict_beside_the_pack_it_is_of(namespace, kubectl):
    stored(namespace, ALL["passed"].make())
    row = kubectl.row("-o", "wide")
    assert (row.pop("NAME"), row.pop("AGE")[-1], row.pop("MESSAGE")[: len(row["SERVING"]) + 20]) == (
        "assay",
        "s",
        f"2 ready pods serve {GOOD['uri']}.",
    )
    assert row == {
        "READY": "True",
        "SERVING": GOOD["uri"],
        "TARGET": GOOD["uri"],
        "CHECK": "Pass",
        "TOP3": "985",
        "COST": "560",
        "REASON": "Serving",
    }


def test_columns_of_a_refusal_and_of_a_first_check_under_way(namespace, kubectl):
    stored(namespace, ALL["inaccurate"].make())
    row = kubectl.row()
    assert (row["READY"], row["SERVING"], row["CHECK"]) == ("False", BASE_URI, "Fail")
    assert (row["REASON"], "MESSAGE" in row) == ("AccuracyBelowThreshold", False)
