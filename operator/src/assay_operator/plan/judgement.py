"""How a check's Job ended, and what that says. Everything but an explicit, well-formed Pass leaves the gate closed."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay_operator.models.observed import CheckJob, Pod, Termination
from assay_operator.models.result import CheckResult, parse_result, same_uri
from assay_operator.models.spec import Spec
from assay_operator.models.status import LastCheck, Pack
from assay_operator.plan import reasons

QUOTED = 300  # characters of a foreign message: enough for a scheduler's sentence, short enough for a condition
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
LASTING = frozenset({"DigestMismatch", "PrecisionMismatch", "PackInvalid", "DatasetInvalid"})
"""Reasons of an Error that lie in the bytes asked for, which a digest or the image holds fast."""
BUILTIN = "builtin:"  # in the image, and so there from the start or never
WAITING_FOR_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a Job's end says: its verdict as told in status, and the result where there is a believable one."""

    check: LastCheck
    result: CheckResult | None = None


def judge(job: CheckJob, spec: Spec, candidate: Pack, yardstick: Pack) -> Outcome:
    """The outcome of a finished Job that is known to be this variant's and rendered as we would."""
    pod = newest_pod(job)
    ended = pod.ended if pod else None
    result = parse_result(ended.message) if ended else "the check's pod is gone, and its result with it"
    if isinstance(result, CheckResult):
        wrong = contradiction(result, job, spec, candidate, yardstick)
        if wrong is None and (job.complete or result.verdict == "Error"):
            return Outcome(_told(result, job, pod), result)
        result = (
            wrong
            or f"the check wrote {result.verdict} and yet ended with exit code {ended.exit_code if ended else '?'}"
        )
    if job.failed is not None and job.failed.reason == "DeadlineExceeded":
        allowed = spec.check.start_deadline_seconds + spec.check.timeout_seconds
        return Outcome(_failure(job, pod, reasons.CHECK_TIMED_OUT, f"the check had not ended after {allowed} s"))
    if ended is not None and (ended.exit_code != 0 or ended.signal):
        return Outcome(_failure(job, pod, reasons.CHECK_CRASHED, f"the check's container {_how(ended)}"))
    if job.failed is not None and pod is None:
        said = job.failed.message or job.failed.reason
        return Outcome(_failure(job, pod, reasons.CHECK_CRASHED, f"the check's pod is gone: {said[:QUOTED]}"))
    return Outcome(_failure(job, pod, reasons.CHECK_RESULT_INVALID, result))


def lasting(check: LastCheck, fetched: tuple[str, str, str]) -> bool:
    """Whether another attempt would meet the same error. fetched: the URIs of candidate, yardstick and dataset."""
    if check.verdict != "Error":
        return False
    if check.reason == reasons.PACK_UNAVAILABLE:
        # They are fetched in this order, so what is missing is the first that was not measured.
        known = (check.model_digest, check.yardstick_digest, "")
        return next(uri for uri, digest in zip(fetched, known, strict=True) if not digest).startswith(BUILTIN)
    return check.reason in LASTING


def late_start(job: CheckJob, spec: Spec) -> LastCheck | None:
    """The failure of a running Job whose container did not start in time; None while there is time, or it started."""
    pod = newest_pod(job)
    if pod is not None and (pod.started is not None or pod.ended is not None):
        return None
    what = f"within {spec.check.start_deadline_seconds} s"
    if pod is None:
        said = job.refused_pods or "Kubernetes has not created its pod"
        return _failure(job, pod, reasons.CHECK_UNSCHEDULABLE, f"the check did not start {what}: {said[:QUOTED]}")
    if pod.waiting_reason in WAITING_FOR_IMAGE:
        said = f"{pod.waiting_reason}: {pod.waiting_message}"
        return _failure(
            job, pod, reasons.CHECK_IMAGE_PULL_FAILED, f"the check's image could not be pulled {what}: {said[:QUOTED]}"
        )
    said = pod.unschedulable or f"{pod.waiting_reason or pod.phase} {pod.waiting_message}"
    return _failure(job, pod, reasons.CHECK_UNSCHEDULABLE, f"the check did not start {what}: {said[:QUOTED].strip()}")


def start_by(job: CheckJob, spec: Spec) -> timedelta:
    """How long after the Job's creation its newest pod must have started; one for a drained pod has longer."""
    pod = newest_pod(job)
    lost = (pod.created - job.created) if pod is not None and pod.created > job.created else timedelta()
    return lost + timedelta(seconds=spec.check.start_deadline_seconds)


def newest_pod(job: CheckJob) -> Pod | None:
    """The pod that counts: a drained one was replaced by a newer.

    Times are whole seconds, and a pod may be replaced within one. Of two with the same time, the one that failed, or
    was drained, is the older: a Job gets another pod only once the one before has failed.
    """
    return max(job.pods, key=_newness, default=None)


def _newness(pod: Pod) -> tuple[datetime, bool, bool, str]:
    return pod.created, pod.phase != "Failed", not pod.disrupted, pod.name


def contradiction(result: CheckResult, job: CheckJob, spec: Spec, candidate: Pack, yardstick: Pack) -> str | None:
    """What makes a well-formed result unbelievable: another Job's, other packs, or figures that deny its verdict."""
    if result.job_uid != job.uid:
        return f"the result is of Job {result.job_uid or '(none)'}, not of {job.uid}"
    if result.inputs_hash != job.inputs_hash:
        return f"the result is for inputs {result.inputs_hash or '(none)'}, not for {job.inputs_hash}"
    if not same_uri(result.candidate.uri, candidate.uri) or not same_uri(result.yardstick.uri, yardstick.uri):
        return f"the result compares {result.candidate.uri} with {result.yardstick.uri}, which was not asked"
    if result.verdict == "Error":
        return None
    measured = ((result.candidate, candidate, "candidate"), (result.yardstick, yardstick, "yardstick"))
    for pack, asked, role in measured:
        if result.verdict == "Pass" and not DIGEST.fullmatch(pack.digest or ""):
            return f"the result says Pass and names no digest of the {role}"
        if asked.digest and pack.digest and pack.digest != asked.digest:
            return f"the {role} measured is {pack.digest}, not {asked.digest}"
        if asked.precision and pack.precision and pack.precision != asked.precision:
            return f"the {role} measured is {pack.precision}, not {asked.precision}"
    return _denied(result, spec) if result.verdict == "Pass" else None


def _denied(result: CheckResult, spec: Spec) -> str | None:
    check = spec.check
    at_least = (
        ("top-3 containment", result.containment_lower_permille, check.min_top3_containment_permille),
        ("top-1 agreement", result.agreement_lower_permille, check.min_top1_agreement_permille),
    )
    for what, figure, wanted in at_least:
        if wanted and (figure is None or figure < wanted):
            return f"the result says Pass, and yet its {what} is at least {figure}, below {wanted} permille"
    at_most = (
        ("top-1 drop", result.top1_drop_upper_permille, check.max_top1_drop_permille),
        ("cost ratio", result.cost_ratio_upper_permille, check.max_cost_ratio_permille),
    )
    for what, figure, limit in at_most:
        if limit is not None and (figure is None or figure > limit):
            return f"the result says Pass, and yet its {what} is at most {figure}, above {limit} permille"
    if result.cost_ratio_upper_permille is None or not result.dataset.images:
        return "the result says Pass without figures"
    return None


def _how(ended: Termination) -> str:
    if ended.reason == "OOMKilled":
        return f"was killed for using more memory than its limit (OOMKilled, exit code {ended.exit_code})"
    number = ended.signal or (ended.exit_code - 128 if 128 < ended.exit_code < 160 else 0)
    how = f"was ended by signal {number}" if number else f"ended with exit code {ended.exit_code}"
    tail = " ".join(ended.message.split())[-QUOTED:]
    return f"{how}: {tail}" if tail else how


def _failure(job: CheckJob, pod: Pod | None, reason: str, message: str) -> LastCheck:
    ended = pod.ended.finished if pod and pod.ended else None
    return LastCheck(
        verdict="Error",
        reason=reason,
        message=message,
        job_name=job.name,
        job_uid=job.uid,
        inputs_hash=job.inputs_hash,
        attempt=job.attempt,
        image_id=pod.image_id if pod else "",
        completed_at=job.finished_at or ended,
    )


def _told(result: CheckResult, job: CheckJob, pod: Pod | None) -> LastCheck:
    return LastCheck(
        verdict=result.verdict,
        reason=result.reason,
        message=result.message,
        job_name=job.name,
        job_uid=job.uid,
        inputs_hash=job.inputs_hash,
        attempt=job.attempt,
        images=result.dataset.images,
        groups=result.dataset.groups,
        top3_contained=result.top3_contained,
        top1_agreed=result.top1_agreed,
        containment_lower_permille=result.containment_lower_permille,
        top1_drop_upper_permille=result.top1_drop_upper_permille,
        cost_ratio_permille=result.cost_ratio_permille,
        cost_ratio_lower_permille=result.cost_ratio_lower_permille,
        cost_ratio_upper_permille=result.cost_ratio_upper_permille,
        noise_permille=result.noise_permille,
        candidate_cost_micros=result.candidate.cost_micros,
        yardstick_cost_micros=result.yardstick.cost_micros,
        model_digest=result.candidate.digest or "",
        model_precision=result.candidate.precision or "",
        yardstick_digest=result.yardstick.digest or "",
        image_id=pod.image_id if pod else "",
        cpu_model=result.cpu_model,
        # Times of API objects: the check's node may have another clock.
        started_at=job.created,
        completed_at=job.finished_at or result.completed_at,
    )
