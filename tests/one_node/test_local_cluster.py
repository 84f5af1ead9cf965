"""Which cluster a command may touch, and what is told while a model changes."""

import json
import re

import pytest

from local_cluster import providers, release, swap, target
from local_cluster.tools import ToolError

needs_kubectl = pytest.mark.system


def write_kubeconfig(path, *contexts):
    entries = [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts]
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": contexts[0], "contexts": entries})
    )


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A project whose `make cluster` made a one-node cluster."""
    folder = tmp_path / ".cluster"
    folder.mkdir()
    monkeypatch.setattr(target, "KUBECONFIG", folder / "kubeconfig")
    monkeypatch.setattr(target, "KIND", folder / "kind")
    write_kubeconfig(folder / "kubeconfig", "one-node-kube")
    (folder / "kind").write_text("one-node\n")
    return folder


@pytest.fixture
def foreign(tmp_path):
    """A kubeconfig of someone's real clusters."""
    write_kubeconfig(tmp_path / "foreign", "production", "staging")
    return tmp_path / "foreign"


@needs_kubectl
def test_own_cluster_is_used_without_being_named(own):
    found = target.find({})
    assert found.kubeconfig == own / "kubeconfig"
    assert found.context == "one-node-kube"
    assert isinstance(found.provider, providers.OneNode)


@needs_kubectl
def test_own_cluster_may_be_named(own):
    assert target.find({"KUBECONFIG": str(own / "kubeconfig")}).provider is not None


@needs_kubectl
def test_foreign_cluster_is_refused_until_its_context_is_confirmed(own, foreign):
    with pytest.raises(ToolError, match="confirm by name that this one is meant: CONTEXT=production"):
        target.find({"KUBECONFIG": str(foreign)})
    with pytest.raises(ToolError, match="no context 'test'; it has production, staging"):
        target.find({"KUBECONFIG": str(foreign), "CONTEXT": "test"})
    found = target.find({"KUBECONFIG": str(foreign), "CONTEXT": "staging"})
    assert (found.kubeconfig, found.context, found.provider) == (foreign, "staging", None)


@needs_kubectl
def test_every_command_line_names_kubeconfig_and_context(own, foreign):
    found = target.find({"KUBECONFIG": str(foreign), "CONTEXT": "staging"})
    assert found.kubectl("get", "pods")[1:3] == (f"--kubeconfig={foreign}", "--context=staging")
    assert found.helm("list")[1:3] == (f"--kubeconfig={foreign}", "--kube-context=staging")


def test_list_of_kubeconfigs_is_refused(own, foreign):
    with pytest.raises(ToolError, match="is not one file"):
        target.find({"KUBECONFIG": f"{foreign}:{foreign}", "CONTEXT": "staging"})


def test_without_a_cluster_the_command_that_makes_one_is_named(own):
    (own / "kubeconfig").unlink()
    with pytest.raises(ToolError, match="run `make cluster`"):
        target.find({})


class FileCluster(providers.OneNode):
    """A cluster that is a file: there or not."""

    def __init__(self, path):
        self.path = path

    def running(self):
        return self.path.exists()

    def start(self, kubeconfig):
        self.path.touch()
        write_kubeconfig(kubeconfig, "file")

    def delete(self):
        self.path.unlink()


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A project for which no cluster was made yet."""
    folder = tmp_path / ".cluster"
    for module, name, path in (
        (target, "FOLDER", folder),
        (target, "KUBECONFIG", folder / "kubeconfig"),
        (target, "KIND", folder / "kind"),
        (target, "MADE", folder / "made"),
    ):
        monkeypatch.setattr(module, name, path)
    return tmp_path


def test_cluster_that_was_started_here_is_stopped_by_down_even_if_asked_for_twice(nothing, capsys):
    cluster = FileCluster(nothing / "cluster")
    target.start(cluster)
    target.start(cluster)
    assert target.MADE.exists()
    assert target.KUBECONFIG.stat().st_mode & 0o077 == 0
    assert isinstance(target.recorded(), providers.OneNode)
    release.down(target.Target(target.KUBECONFIG, "file", cluster), "assay")
    assert not cluster.running()
    assert not target.KUBECONFIG.exists()
    assert "`make down` stops it" in capsys.readouterr().out


def test_cluster_that_ran_already_is_not_taken_for_ours(nothing, capsys):
    cluster = FileCluster(nothing / "cluster")
    cluster.path.touch()
    target.start(cluster)
    assert not target.MADE.exists()
    assert "`make down` leaves it alone" in capsys.readouterr().out


def test_images_cannot_be_given_to_a_cluster_nobody_knows(tmp_path):
    with pytest.raises(ToolError, match="staging takes images from a registry"):
        release.build_images(target.Target(tmp_path / "foreign", "staging", None))


def test_images_have_the_charts_version_and_k6_its_own():
    names = [image.name for image in providers.release_images()]
    assert names == [
        f"localhost/assay-service:{providers.version()}",
        f"localhost/assay-operator:{providers.version()}",
    ]
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", providers.version())
    assert re.fullmatch(r"localhost/k6:[0-9]+\.[0-9]+\.[0-9]+", providers.load_image().name)


def test_every_image_has_its_dockerfile_and_stage(root):
    for image in (*providers.release_images(), providers.load_image()):
        text = (root / image.dockerfile).read_text()
        assert not image.stage or f" AS {image.stage}\n" in text


def variant(*conditions, generation=2):
    """A ModelVariant with conditions as (type, status, reason, observedGeneration)."""
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": "why", "observedGeneration": observed}
        for kind, status, reason, observed in conditions
    ]
    return {"metadata": {"generation": generation}, "status": {"conditions": listed}}


@pytest.mark.parametrize(
    ("conditions", "state", "line"),
    [
        ([], "working", "the operator has not seen it yet"),
        # What the last generation reached says nothing about this one.
        ([("Ready", "True", "Serving", 1)], "working", "the operator has not seen it yet"),
        ([("Stalled", "True", "CostAboveThreshold", 1)], "working", "the operator has not seen it yet"),
        (
            [("Ready", "False", "CheckRunning", 2), ("CheckPassed", "Unknown", "CheckQueued", 2)],
            "working",
            "CheckQueued: why",
        ),
        (
            [("CheckPassed", "True", "CheckPassed", 2), ("RolledOut", "False", "RolloutInProgress", 2)],
            "working",
            "RolloutInProgress: why",
        ),
        ([("Ready", "True", "Serving", 2), ("Stalled", "False", "Serving", 2)], "ready", "Serving: why"),
        (
            [("Ready", "False", "X", 2), ("Stalled", "True", "AccuracyBelowThreshold", 2)],
            "stalled",
            "AccuracyBelowThreshold: why",
        ),
    ],
)
def test_progress_follows_the_conditions_of_the_present_generation(conditions, state, line):
    assert swap.progress(variant(*conditions)) == swap.Progress(state, line)


def test_rollout_is_told_in_pods():
    deployment = {"spec": {"replicas": 2}, "status": {"updatedReplicas": 1, "readyReplicas": 2}}
    assert swap.rollout(deployment) == "1/2 pods new, 2 ready"
    assert swap.rollout({"spec": {"replicas": 2}, "status": {}}) == "0/2 pods new, 0 ready"
