"""How far the check of one pack has come: passed, refused, running, to be started, waiting, or out of attempts."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from assay_operator.builders.check_job import check_job, job_name, same_template
from assay_operator.builders.inputs import Inputs
from assay_operator.models.observed import CheckJob, ServedModel
from assay_operator.models.result import CheckResult, parse_result
from assay_operator.models.status import LastCheck, Pack
from assay_operator.plan import reasons
from assay_operator.plan.facts import Facts
from assay_operator.plan.judgement import Outcome, judge, lasting, late_start, newest_pod, start_by
from assay_operator.plan.wording import sentences

FIRST_BACKOFF_S = 10  # a registry's or a noisy neighbour's hiccup
LONGEST_BACKOFF_S = 300  # as long as Kubernetes waits at most before it starts a crashed container again

State = Literal["Passed", "Refused", "Exhausted", "Blocked", "Running", "Late", "Due", "Queued", "Waiting"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one pack's check, with what to say about it.

    attempt: the newest whose Job was made. passed: the measured pack. job: what is running, or (Late) to be deleted.
    """

    state: State
    reason: str
    message: str
    inputs: Inputs
    attempt: int = 0
    passed: Pack | None = None
    check: LastCheck | None = None
    job: CheckJob | None = None
    body: Mapping[str, Any] | None = None
    name: str = ""
    until: datetime | None = None


def find(facts: Facts, pack: Pack) -> Finding:
    """The state of the check of this pack under the present inputs."""
    inputs = facts.inputs_for(pack)
    body = check_job(facts.variant, facts.spec, facts.target, pack, inputs, 1)
    own = [job for job in facts.observed.jobs if job.owner_uid == facts.variant.uid and job.inputs_hash == str(inputs)]
    for job in own:
        if not same_template(body["spec"]["template"], job.template):
            return _conflict(inputs, job.name, "was not made from the template that the operator would use")
    outcomes = [(job, _outcome(facts, job, pack)) for job in sorted(own, key=lambda job: job.attempt) if job.finished]
    for verdict in ("Pass", "Fail"):
        for job, outcome in reversed(outcomes):
            if outcome.check.verdict == verdict:
                return _final(outcome, inputs, job, pack.uri)
    if rejection := facts.status.rejection(str(inputs)):
        state: State = "Exhausted" if rejection.stage == "Attempts" else "Refused"
        return Finding(state, rejection.reason, rejection.message, inputs, check=facts.status.last_check)
    if kept := _kept_pass(facts, inputs):
        return kept
    running = max((job for job in own if not job.finished), key=lambda job: job.attempt, default=None)
    if running is not None:
        return _running(facts, running, inputs)
    return _next(facts, pack, inputs, outcomes)


def _outcome(facts: Facts, job: CheckJob, pack: Pack) -> Outcome:
    return judge(job, facts.spec, pack, _yardstick(facts))


def _yardstick(facts: Facts) -> Pack:
    wanted = facts.spec.check.compare_with
    return Pack(uri=wanted.uri, digest=wanted.digest or "") if wanted else facts.base


def _conflict(inputs: Inputs, name: str, why: str) -> Finding:
    message = f"Job {name} {why}; it is neither used nor deleted. Delete it, or change spec.retryToken"
    return Finding("Blocked", reasons.JOB_NAME_CONFLICT, message, inputs)


def _final(outcome: Outcome, inputs: Inputs, job: CheckJob, uri: str) -> Finding:
    check, result = outcome.check, outcome.result
    message = f"{check.message} (Job {job.name})"
    if result is not None and result.verdict == "Pass":
        measured = Pack(uri=uri, digest=result.candidate.digest or "", precision=result.candidate.precision or "")
        return Finding("Passed", reasons.CHECK_PASSED, message, inputs, job.attempt, measured, check)
    return Finding("Refused", check.reason, message, inputs, job.attempt, check=check)


def _kept_pass(facts: Facts, inputs: Inputs) -> Finding | None:
    """A Pass whose Job is gone counts for what the operator itself has written since, and for nothing else."""
    check, target = facts.status.last_check, facts.target
    if check is None or check.verdict != "Pass" or check.inputs_hash != str(inputs):
        return None
    passed = Pack(uri=target.model.uri, digest=target.model.digest, precision=target.model.precision)
    if not target.owned or check.model_digest != passed.digest or not facts.asks_for(passed):
        return None
    message = f"{check.message} (Job {check.job_name}, since deleted)"
    return Finding("Passed", reasons.CHECK_PASSED, message, inputs, check.attempt, passed, check)


def _running(facts: Facts, job: CheckJob, inputs: Inputs) -> Finding:
    judged = facts.status.last_check
    if judged is not None and judged.job_uid == job.uid and judged.verdict == "Error":
        return Finding("Late", judged.reason, judged.message, inputs, job.attempt, check=judged, job=job)
    deadline = job.created + start_by(job, facts.spec)
    if facts.now >= deadline and (late := late_start(job, facts.spec)):
        late = late.model_copy(update={"completed_at": facts.now})
        return Finding("Running", late.reason, late.message, inputs, job.attempt, check=late, job=job)
    pod = newest_pod(job)
    began = pod is not None and (pod.started is not None or pod.ended is not None)
    progress = "is measuring" if began else _why_waiting(job)
    message = f"attempt {job.attempt} of {facts.spec.check.max_attempts}: Job {job.name} {progress}"
    return Finding(
        "Running", reasons.CHECK_RUNNING, message, inputs, job.attempt, job=job, until=None if began else deadline
    )


def _why_waiting(job: CheckJob) -> str:
    pod = newest_pod(job)
    if pod is None:
        return f"has no pod yet{': ' + job.refused_pods if job.refused_pods else ''}"
    said = pod.unschedulable or " ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"is starting{': ' + said if said else ''}"


def _next(facts: Facts, pack: Pack, inputs: Inputs, outcomes: list[tuple[CheckJob, Outcome]]) -> Finding:
    noted = facts.status.target if facts.status.target.inputs_hash == str(inputs) else None
    attempt = max([job.attempt for job, _ in outcomes] + [noted.attempt if noted else 0])
    last = outcomes[-1][1].check if outcomes and outcomes[-1][0].attempt == attempt else None
    if attempt and last is None:
        remembered = facts.status.last_check
        if remembered is not None and remembered.inputs_hash == str(inputs) and remembered.attempt == attempt:
            last = remembered
            if remembered.verdict == "Pass":  # the evidence is gone before it was used: begin anew
                last = outcomes[-1][1].check if outcomes else None
                attempt = outcomes[-1][0].attempt if outcomes else 0
                return _after(facts, pack, inputs, attempt, last)
        if last is None:
            last = _vanished(facts, inputs, attempt)
    return _after(facts, pack, inputs, attempt, last)


def _after(facts: Facts, pack: Pack, inputs: Inputs, attempt: int, last: LastCheck | None) -> Finding:
    if attempt == 0 or last is None:
        return _due(facts, pack, inputs, 1)
    if lasting(last, (pack.uri, _yardstick(facts).uri, facts.spec.check.dataset.uri)):
        message = sentences(last.message, f"Another attempt would end in the same way (Job {last.job_name})")
        return Finding("Exhausted", _reason(last), message, inputs, attempt, check=last)
    noted = facts.status.target if facts.status.target.inputs_hash == str(inputs) else None
    if attempt >= facts.spec.check.max_attempts:
        told = f"That was attempt {attempt} of {facts.spec.check.max_attempts} (Job {last.job_name})"
        message = sentences(last.message, told)
        return Finding("Exhausted", _reason(last), message, inputs, attempt, check=last)
    again = noted.next_attempt_time if noted and noted.attempt == attempt and noted.next_attempt_time else None
    again = again or (last.completed_at or facts.now) + backoff(inputs, attempt)
    if facts.now < again:
        follows = f"Attempt {attempt + 1} of {facts.spec.check.max_attempts} follows at {again:%H:%M:%S} UTC"
        message = sentences(last.message, follows)
        return Finding("Waiting", _reason(last), message, inputs, attempt, check=last, until=again)
    due = _due(facts, pack, inputs, attempt + 1)
    return Finding(due.state, due.reason, due.message, inputs, attempt, check=last, body=due.body, name=due.name)


def _reason(check: LastCheck) -> str:
    return reasons.CHECK_INCONCLUSIVE if check.verdict == "Inconclusive" else check.reason


def _vanished(facts: Facts, inputs: Inputs, attempt: int) -> LastCheck:
    name = job_name(facts.variant, inputs, attempt)
    return LastCheck(
        verdict="Error",
        reason=reasons.CHECK_CRASHED,
        message=f"Job {name} was deleted before its result was read",
        job_name=name,
        job_uid="",
        inputs_hash=str(inputs),
        attempt=attempt,
        completed_at=facts.now,
    )


def _due(facts: Facts, pack: Pack, inputs: Inputs, attempt: int) -> Finding:
    name = job_name(facts.variant, inputs, attempt)
    if facts.observed.name_taken:
        return _conflict(inputs, name, "is not this ModelVariant's")
    if not facts.image_id and _coming_up(facts):
        message = "no ready pod of the target tells yet what its image is; the check begins when one does"
        return Finding("Queued", reasons.CHECK_QUEUED, message, inputs)
    if facts.crowded:
        message = f"{facts.observed.running_checks} other checks are running in this namespace; this one waits its turn"
        return Finding("Queued", reasons.CHECK_QUEUED, message, inputs)
    body = check_job(facts.variant, facts.spec, facts.target, pack, inputs, attempt)
    message = f"attempt {attempt} of {facts.spec.check.max_attempts}: Job {name} is being created"
    return Finding("Due", reasons.CHECK_RUNNING, message, inputs, body=body, name=name)


def _coming_up(facts: Facts) -> bool:
    """Whether the target is being rolled out by somebody, and Kubernetes still sees progress."""
    target = facts.target
    if target.replicas == 0 or target.rolled:
        return False
    moved = target.progressing.updated if target.progressing is not None else None
    return moved is None or facts.now < moved + timedelta(seconds=facts.spec.rollout.progress_deadline_seconds)


def backoff(inputs: Inputs, attempt: int) -> timedelta:
    """The wait after a failed attempt: doubled each time, and up to a quarter longer so that many do not coincide."""
    base = min(FIRST_BACKOFF_S * 2 ** (attempt - 1), LONGEST_BACKOFF_S)
    share = hashlib.sha256(f"{inputs}/{attempt}".encode()).digest()[0] / 255
    return timedelta(seconds=base * (1 + share / 4))


def passed_packs(facts: Facts) -> list[ServedModel]:
    """Packs that something believable has passed in this environment: what a yardstick may be besides the base."""
    found = []
    for job in facts.observed.jobs:
        believable = (
            job.owner_uid == facts.variant.uid and job.complete and job.inputs_hash.endswith(facts.inputs.environment)
        )
        pod = newest_pod(job)
        if not believable or pod is None or pod.ended is None:
            continue
        outcome = _as_evidence(job, pod.ended.message, facts)
        if outcome is not None:
            found.append(outcome)
    good = facts.good
    return [*found, *([ServedModel(good.uri, good.digest, good.precision)] if good else [])]


def _as_evidence(job: CheckJob, message: str, facts: Facts) -> ServedModel | None:
    result = parse_result(message)
    if not isinstance(result, CheckResult) or result.verdict != "Pass" or not result.candidate.digest:
        return None
    if result.job_uid != job.uid or result.inputs_hash != job.inputs_hash:
        return None
    body = check_job(facts.variant, facts.spec, facts.target, facts.asked, facts.inputs, job.attempt)
    if not same_template(body["spec"]["template"], job.template, arguments=False):
        return None
    return ServedModel(result.candidate.uri, result.candidate.digest, result.candidate.precision or "")
