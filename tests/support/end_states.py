"""Every state that a ModelVariant comes to rest in, and those it passes through, each reached as it would be."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from assay.check.verdict import Verdict
from support.journeys import (
    base_does_not_come_up,
    bypassed,
    crash_in_the_soak,
    deadline,
    drift_corrected,
    error,
    figures,
    finish,
    going_back,
    image_changed,
    later_misfit,
    misfit,
    name_taken,
    other_labels,
    pending,
    quota,
    refused,
    rollback_fails,
    rolled_back,
    rolling,
    running,
    scaled_to_zero,
    scaled_to_zero_in_a_trial,
    settled,
    soaking,
    spoilt_later,
    suspended,
    swapped,
    unproved,
    used_up,
    waiting,
)
from support.packs import BASE_URI, GOOD, OTHER, START, spec, template
from support.world import World

SERVE = "2 ready pods serve "


@dataclass(frozen=True)
class Life:
    """A state. kstatus: what tools that wait make of it. says: what Ready's message has in it, in this order.

    step: its last sentence, the next step; empty for what goes on by itself or is well.
    """

    make: Callable[[], World]
    ready: str
    kstatus: str
    says: tuple[str, ...] = ()
    step: str = ""


_RETRY = "Change spec, or spec.retryToken to try again"
_OTHER_MODEL = "Change spec.model, or spec.retryToken to try again"
_CRITERIA = "Change spec.model or the criteria of spec.check"
_ATTEMPTS = ("That was attempt 3 of 3 (Job assay-check-", SERVE + BASE_URI)
_FINAL = ("Another attempt would end in the same way (Job assay-check-", SERVE + BASE_URI)
_BACK = SERVE + GOOD["uri"]
_SERVED = "2 ready pods served " + GOOD["uri"]
_OLDER = ((START - timedelta(hours=1), "uid-0", "older"),)


def _failed(make: Callable[[], World], reason: str, says: tuple[str, ...], step: str) -> Life:
    return Life(make, f"False {reason}", "Failed", says, step)


def _refusal(verdict: Verdict, *figures: str) -> Life:
    says = (*figures, "(Job assay-check-", SERVE + BASE_URI)
    return _failed(refused(verdict), verdict.reason, says, _CRITERIA)


def _exhausted(make: Callable[[], World], reason: str, *says: str) -> Life:
    return _failed(make, reason, (*says, *_ATTEMPTS), _RETRY)


END_STATES = {
    "base": Life(settled(spec=spec({"uri": BASE_URI})), "True Serving", "Current", (SERVE + BASE_URI,)),
    "passed": Life(swapped, "True Serving", "Current", (_BACK,)),
    "other labels": _refusal(other_labels(), "1 and 2 of them", "only the yardstick knows 'kite'"),
    "inaccurate": _refusal(figures(300), "300/400 is at most 786 permille, below the 980 required"),
    "perhaps accurate": _refusal(figures(392), "392/400 proves only 964 permille of the 980 required"),
    "dear": _refusal(figures(400, ratio=1.5), "cost ratio 1500 to 1500 permille is above the limit of 1100 permille"),
    "never conclusive": _exhausted(
        used_up(lambda world: finish(world, figures(400, spread=0.9))),
        "CheckInconclusive",
        "the cost ratio varies by 451 permille from image to image, more than 100",
    ),
    "killed": _exhausted(
        used_up(lambda world: world.finish(message="", exit_code=137)), "CheckCrashed", "(OOMKilled, exit code 137)"
    ),
    "hanging": _exhausted(
        used_up(lambda world: world.finish(pod=False, failed="DeadlineExceeded")), "CheckTimedOut", "after 1200 s"
    ),
    "garbled": _exhausted(used_up(lambda world: world.finish(message="garbage")), "CheckResultInvalid", "result"),
    "no image": _exhausted(
        pending(waiting_reason="ImagePullBackOff", waiting_message="not found"),
        "CheckImagePullFailed",
        "within 300 s: ImagePullBackOff: not found",
    ),
    "no node": _exhausted(
        pending(unschedulable="0/1 nodes are available"), "CheckUnschedulable", "within 300 s: 0/1 nodes are available"
    ),
    **{reason: _exhausted(error(reason), reason, "told Error") for reason in ("PackUnavailable", "CpuFeatureMissing")},
    **{
        reason: _failed(error(reason), reason, ("told Error", *_FINAL), _RETRY)
        for reason in ("DigestMismatch", "PackInvalid", "PrecisionMismatch", "DatasetInvalid")
    },
    "own yardstick": _failed(
        settled(spec=spec(check={"compareWith": {"uri": GOOD["uri"], "digest": GOOD["digest"]}})),
        "YardstickNotApproved",
        (f"compareWith {GOOD['uri']} is the candidate itself", SERVE + BASE_URI),
        "Change spec.check.compareWith",
    ),
    "name taken": _failed(
        name_taken,
        "JobNameConflict",
        ("Job assay-check-", "is not this ModelVariant's", "Delete it, or change spec.retryToken", SERVE + BASE_URI),
        _RETRY,
    ),
    "invalid": _failed(
        spoilt_later(lambda world: world.edit(model={"uri": "ftp://x"})),
        "InvalidSpec",
        ("spec.model.uri", "When last seen, " + _SERVED),
        "Correct the spec",
    ),
    "no such container": _failed(
        running(spec=spec(container="server")),
        "InvalidSpec",
        ("no container server (it has classifier)",),
        "Name the one that serves in spec.container",
    ),
    "no base": _failed(
        running(template=template(env=[])), "InvalidSpec", ("no literal value for ASSAY_BASE_MODEL_URI",), "Set it to"
    ),
    "no target": _failed(
        running(exists=False), "TargetNotFound", ("no Deployment assay in namespace assay",), "Create it"
    ),
    "target without its label": _failed(
        running(labelled=False), "TargetNotFound", ("Deployment assay does not have the label",), "Set assay.dev/target"
    ),
    "two variants": _failed(
        spoilt_later(lambda world: setattr(world, "rivals", _OLDER)),
        "TargetConflict",
        ("ModelVariant older is older and has the same target assay", "When last seen, " + _SERVED),
        "Delete one of them",
    ),
    "never ready": _failed(
        rolled_back(deadline), "RolledBack", ("ProgressDeadlineExceeded: 0 of 2", "300 s", _BACK), _OTHER_MODEL
    ),
    "crashed in the soak": _failed(
        rolled_back(crash_in_the_soak), "RolledBack", ("SoakFailed", "exit code 1", _BACK), _OTHER_MODEL
    ),
    "no room": _failed(
        rolled_back(quota), "RolledBack", ("ReplicaFailure", "exceeded quota: few", _BACK), _OTHER_MODEL
    ),
    "another cpu": _failed(
        rolled_back(misfit("CpuFeatureMissing")),
        "RolledBack",
        ("CpuFeatureMissing", "exit code 78: it does not fit", _BACK),
        _OTHER_MODEL,
    ),
    "a node that does not fit": _failed(
        later_misfit,
        "CpuFeatureMissing",
        ("1 of 2 replicas serve " + GOOD["uri"], "exit code 78: it does not fit", "1 ready pods serve " + GOOD["uri"]),
        "or change spec.model",
    ),
    "no way back": _failed(
        rollback_fails,
        "RollbackFailed",
        ("0 of 2 replicas", "after 300 s without progress; nothing is scaled down", "No pod is ready"),
        "or change spec.model",
    ),
    "base never ready": _failed(
        base_does_not_come_up,
        "ProgressDeadlineExceeded",
        ("0 of 2 replicas serve " + BASE_URI, "after 300 s", "ImagePullBackOff"),
        "or change spec.model",
    ),
    "suspended": _failed(suspended, "Suspended", ("spec.suspend is set", SERVE + BASE_URI), "Unset it to go on"),
    "suspended from the beginning": _failed(
        settled(spec=spec(suspend=True)), "Suspended", ("spec.suspend is set", SERVE + BASE_URI), "Unset it to go on"
    ),
    "bypassed": _failed(
        bypassed,
        "CheckBypassed",
        ("without a check", "assay.dev/skip-check", SERVE + OTHER["uri"]),
        "Remove the annotation to have it checked",
    ),
    "scaled to zero": _failed(scaled_to_zero, "NoReadyPods", ("no pod of Deployment assay is ready",), "Scale"),
    "scaled to zero in a trial": _failed(
        scaled_to_zero_in_a_trial, "NoReadyPods", ("scaled to zero", "No pod is ready"), "Scale"
    ),
    "unproved": _failed(
        unproved,
        "PackUnavailable",
        ("told Error", "attempt 3 of 3 (Job assay-check-", _BACK + ", which has not been proved"),
        _RETRY,
    ),
}
"""At rest: nothing changes until somebody changes something."""

PASSING_STATES = {
    "checking": Life(running(), "False CheckRunning", "InProgress", ("attempt 1 of 3: Job assay-check-", SERVE)),
    "queued": Life(running(others_running=2), "False CheckQueued", "InProgress", ("2 other checks", SERVE)),
    "between attempts": Life(
        waiting, "False CheckInconclusive", "InProgress", ("more than 100", "Attempt 2 of 3 follows at", SERVE)
    ),
    "rolling out": Life(lambda: rolling(OTHER), "False RolloutInProgress", "InProgress", (OTHER["uri"], _BACK)),
    "soaking": Life(soaking, "False Soaking", "InProgress", ("they must hold for 30 s", SERVE + OTHER["uri"])),
    "going back": Life(
        going_back,
        "False ProgressDeadlineExceeded",
        "InProgress",
        ("after 300 s", "It is being rolled back", "serve " + GOOD["uri"]),
    ),
    "image changed": Life(
        image_changed, "False CheckRunning", "InProgress", ("attempt 1 of 3", _BACK + ", which has not been proved")
    ),
    "drift corrected": Life(drift_corrected, "False RolloutInProgress", "InProgress", (GOOD["uri"],)),
}
"""On its way: the operator has something to do or to wait for."""
