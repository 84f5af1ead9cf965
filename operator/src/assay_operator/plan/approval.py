"""What the target may be told to serve: the base, what passed, and for a while what it served before anyone looked."""

from dataclasses import dataclass, replace

from assay_operator.models.observed import ServedModel
from assay_operator.models.status import Pack
from assay_operator.plan import reasons
from assay_operator.plan.checking import Finding, find, passed_packs
from assay_operator.plan.facts import Facts, pack_of, same_pack

BASE = ServedModel()


@dataclass(frozen=True, slots=True)
class Approval:
    """Whether the spec's model may serve. wanted is None where it may not (yet)."""

    state: str
    reason: str
    message: str
    wanted: ServedModel | None = None
    finding: Finding | None = None
    bypassed: bool = False

    @property
    def refused(self) -> bool:
        """Whether only a change by somebody can go on from here."""
        return self.state in ("Refused", "Exhausted", "Blocked")


def approve(facts: Facts) -> Approval:
    """Whether what the spec asks for may serve."""
    if facts.asks_base:
        return Approval("Passed", reasons.BASE_MODEL, f"{facts.base.uri} is the base model of the target", BASE)
    rejection = facts.status.rejection(str(facts.inputs))
    if facts.asks_good and facts.good is not None and rejection is None:
        good = facts.good
        last = facts.status.last_check
        told = f": {last.message}" if last and last.verdict == "Pass" and last.inputs_hash == good.inputs_hash else ""
        return Approval("Passed", reasons.CHECK_PASSED, f"{good.uri} has passed{told}", facts.served(good))
    # Breaking the glass overrules a check, also one that has refused; it does not repeat a rollout that has failed.
    tried = rejection is not None and rejection.stage == "Rollout"
    if facts.variant.skip_check and facts.variant.skip_check == facts.asked.digest and not tried:
        message = (
            f"{facts.asked.uri} is rolled out without a check, because the annotation assay.dev/skip-check says so"
        )
        return Approval("Passed", reasons.CHECK_BYPASSED, message, facts.served(facts.asked), bypassed=True)
    if problem := _yardstick_problem(facts):
        return Approval("Blocked", reasons.YARDSTICK_NOT_APPROVED, problem)
    finding = find(facts, facts.asked)
    if rejection is not None and rejection.stage == "Rollout":
        return Approval("Refused", rejection.reason, rejection.message, None, replace(finding, job=None, body=None))
    wanted = facts.served(finding.passed) if finding.passed is not None else None
    return Approval(finding.state, finding.reason, finding.message, wanted, finding)


def _yardstick_problem(facts: Facts) -> str | None:
    """Why the candidate may not be compared with spec.check.compareWith; None where it may."""
    wanted = facts.spec.check.compare_with
    if wanted is None:
        return None
    advice = "Name the base, or a pack that has passed here"
    yardstick = Pack(uri=wanted.uri, digest=wanted.digest or "")
    if (yardstick.digest and yardstick.digest == facts.asked.digest) or (
        yardstick.uri == facts.asked.uri and "" in (yardstick.digest, facts.asked.digest)
    ):
        return f"compareWith {wanted.uri} is the candidate itself, and a pack cannot vouch for itself. {advice}"
    if yardstick.uri == facts.base.uri and yardstick.digest in ("", facts.base.digest):
        return None
    for pack in passed_packs(facts):
        if yardstick.digest == pack.digest or (not yardstick.digest and yardstick.uri == pack.uri):
            return None
    return f"compareWith {wanted.uri} is neither the base ({facts.base.uri}) nor has it passed a check here. {advice}"


def fallback(facts: Facts) -> ServedModel:
    """Where a rollback goes: the last good pack, unless a check has refused it since, else the base."""
    good = facts.good
    if good is None or _refused_since(facts, good):
        return BASE
    return facts.served(good)


def desired(facts: Facts, approval: Approval) -> tuple[ServedModel, str]:
    """What the target shall be told to serve now, and why, in a few words for the history."""
    model = facts.target.model
    if approval.wanted is not None:
        return approval.wanted, approval.reason
    if model.is_base:
        return model, ""
    good, standing = facts.good, facts.standing
    if standing is not None and _refused_since(facts, standing):
        rejection = facts.status.rejection(str(facts.inputs_for(standing)))
        return fallback(facts), rejection.reason if rejection else reasons.UNVERIFIED
    if standing is not None:
        return model, ""
    if good is not None and same_pack(model, good):
        return facts.served(good), reasons.DRIFT_CORRECTED  # by whom it was asked for may have been edited
    if not facts.target.owned:
        return fallback(facts), reasons.DRIFT_CORRECTED
    return fallback(facts), approval.reason if approval.refused else reasons.CHECK_RUNNING


def _refused_since(facts: Facts, pack: Pack) -> bool:
    """Whether a check in this environment, or a rollout, has refused this pack. Used-up attempts refuse nothing."""
    good = facts.good
    if good is not None and same_pack(good, pack) and good.inputs_hash.endswith(facts.inputs.environment):
        return False  # it holds what it has proved; stricter wishes do not undo that
    rejection = facts.status.rejection(str(facts.inputs_for(pack)))
    return rejection is not None and rejection.stage != "Attempts"


def second(facts: Facts, approval: Approval) -> Finding | None:
    """The check of what the target already serves unproved, once the spec's own pack has had its turn."""
    standing = facts.standing
    if standing is None or facts.asks_for(standing) or not approval.refused or not standing.digest:
        return None
    return find(facts, standing)


def verified(facts: Facts, approval: Approval, model: ServedModel) -> bool:
    """Whether this model has passed in the present environment, or is the base."""
    if model.is_base:
        return True
    good = facts.good
    if good is not None and same_pack(good, model) and good.inputs_hash.endswith(facts.inputs.environment):
        return True
    wanted = approval.wanted
    return wanted is not None and not approval.bypassed and same_pack(wanted, pack_of(model))
