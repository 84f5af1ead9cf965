"""One pass over one ModelVariant: observe, plan, take the steps, write the status, tell."""

import time
from dataclasses import replace

import structlog

from assay_operator.cluster.api import Api
from assay_operator.cluster.apply import NameTakenError, take, write_status
from assay_operator.cluster.events import post
from assay_operator.cluster.observe import observe, read_variant, running_checks
from assay_operator.cluster.rivals import Roster
from assay_operator.errors import ApiError, ConflictError, DeniedError, InvalidError
from assay_operator.models.observed import Observed, Variant
from assay_operator.plan import CreateJob, Limits, Plan, plan, reasons
from assay_operator.plan.report import Trouble, trouble
from assay_operator.telemetry import Telemetry
from assay_operator.turns import Turns
from assay_operator.workqueue import Key

DENIED_AGAIN_S = 60.0  # a right that was granted since takes effect within a resync

log = structlog.get_logger(__name__)


class Reconciler:
    """Knows how to do a pass. What it decides by is read in that pass, but for the roster, which knows its limits."""

    def __init__(self, api: Api, roster: Roster, turns: Turns, telemetry: Telemetry, limits: Limits) -> None:
        self._api = api
        self._roster = roster
        self._turns = turns
        self._telemetry = telemetry
        self._limits = limits

    async def reconcile(self, key: Key) -> float | None:
        """Do a pass. Returns after how many seconds to come back; ApiError where the pass could not be done."""
        began = time.monotonic()
        try:
            return await self._pass(key)
        except ApiError as error:
            self._telemetry.reconcile_errors.labels(type(error).__name__).inc()
            raise
        finally:
            self._telemetry.reconcile_duration.observe(time.monotonic() - began)

    async def _pass(self, key: Key) -> float | None:
        variant = await read_variant(self._api, *key)
        if variant is None:
            self._telemetry.forget(*key)
            self._turns.leave(key)
            return None
        observed = Observed(now=self._api.now)
        try:
            observed = await observe(self._api, self._roster, variant)
            made = plan(variant, observed, self._limits)
            if any(isinstance(step, CreateJob) for step in made.steps):
                made = await self._begin_check(key, variant, observed)
            else:
                self._turns.leave(key)
                made = await self._steps(variant, observed, made)
        except DeniedError as error:
            message = f"the operator may not {error.what}: {error}"
            problem = Trouble(reasons.INSUFFICIENT_PERMISSIONS, message, "Grant it the chart's Role")
            made = trouble(variant, observed, problem)
            made = Plan(made.status, events=made.events, again_s=DENIED_AGAIN_S)
        await self._finish(variant, made)
        return made.again_s

    async def _begin_check(self, key: Key, variant: Variant, observed: Observed) -> Plan:
        """Plan once more, with a count of the checks that no other pass of this process can make wrong meanwhile."""
        async with self._turns.counting(variant.namespace):
            self._turns.wait(key)  # before it counts: a check that ends meanwhile calls who is in the line
            running = await running_checks(self._api, variant)
            if running < self._limits.running_checks:
                self._turns.leave(key)
            observed = replace(observed, running_checks=running)
            return await self._steps(variant, observed, plan(variant, observed, self._limits))

    async def _steps(self, variant: Variant, observed: Observed, made: Plan) -> Plan:
        try:
            for step in made.steps:
                log.info(
                    "taking a step",
                    namespace=variant.namespace,
                    name=variant.name,
                    step=type(step).__name__,
                    why=getattr(step, "why", ""),
                )
                await take(self._api, variant, step)
        except NameTakenError:
            return plan(variant, await observe(self._api, self._roster, variant, name_taken=True), self._limits)
        except InvalidError as error:
            message = f"the API server does not take what the operator writes: {error}"
            remedy = "Change what it names: spec, the Deployment's pod template, or a quota or policy of the namespace"
            return trouble(variant, observed, Trouble(reasons.API_REFUSED, message, remedy))
        return made

    async def _finish(self, variant: Variant, made: Plan) -> None:
        if made.status.to_json() != variant.status.to_json():
            await write_status(self._api, variant, made.status)
        self._telemetry.tell(variant, made.status)
        for event in made.events:
            log.info("transition", namespace=variant.namespace, name=variant.name, reason=event.reason, note=event.note)
            try:
                await post(self._api, variant, event)
            except ConflictError:
                continue
            except ApiError as error:
                log.warning("an event could not be posted", reason=event.reason, error=str(error))
