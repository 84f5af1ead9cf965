"""What the observation means: which pack is the base, which has passed, which serves. Looked up anew in every pass."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from assay_operator.builders.inputs import Inputs, environment_of, inputs_of
from assay_operator.builders.pod_template import base_model, serving_container
from assay_operator.models.observed import Observed, ServedModel, Target, Variant
from assay_operator.models.spec import Spec
from assay_operator.models.status import LastGood, Pack, Status
from assay_operator.plan.steps import Limits


def same_pack(one: ServedModel | Pack, other: ServedModel | Pack) -> bool:
    """Whether both name the same pack. Who asked for it does not matter: a new name is no rollout."""
    return (one.uri, one.digest, one.precision) == (other.uri, other.digest, other.precision)


def pack_of(model: ServedModel) -> Pack:
    """The pack of annotations."""
    return Pack(uri=model.uri, digest=model.digest, precision=model.precision)


@dataclass(frozen=True)
class Facts:
    """One pass's view of a variant whose spec is valid and whose target is there."""

    variant: Variant
    spec: Spec
    observed: Observed
    target: Target
    limits: Limits
    base: Pack
    inputs: Inputs
    image: str
    image_id: str

    @property
    def now(self) -> datetime:
        """The API server's clock."""
        return self.observed.now

    @property
    def status(self) -> Status:
        """What the previous pass wrote."""
        return self.variant.status

    @property
    def asked(self) -> Pack:
        """What the spec asks for; its digest and precision are empty where it does not say."""
        model = self.spec.model
        return Pack(uri=model.uri, digest=model.digest or "", precision=model.precision or "")

    @property
    def asks_base(self) -> bool:
        """Whether the spec asks for the base: same URI, and no digest but the known one."""
        measured = self.status.base.digest if self.status.base and self.status.base.uri == self.base.uri else ""
        known = self.base.digest or measured
        return self.asked.uri == self.base.uri and self.asked.digest in ("", known)

    @cached_property
    def good(self) -> LastGood | None:
        """The pack that passed and soaked; believed only while a revision of the target still carries it."""
        good = self.status.last_good
        return good if good is not None and good.digest and self._carries(good) else None

    def _carries(self, pack: Pack) -> bool:
        """Whether a revision of the target names this pack."""
        return any(same_pack(model, pack) for model in (self.target.model, *self.observed.revisions))

    @property
    def adopted(self) -> bool:
        """Whether this variant has taken note of what its target served at the beginning.

        What it noted counts while there is evidence of it. Without (an old backup of the status, a forged one) what
        the operator itself has rolled out is taken note of anew, rather than taken down.
        """
        noted = [pack for pack in (self.status.last_good, self.status.incumbent) if pack is not None]
        if not noted or self.target.model.is_base or not (self.target.owned and self.target.rolled):
            return bool(noted)
        return any(pack.uri == self.base.uri or self._carries(pack) for pack in noted)

    @cached_property
    def asks_good(self) -> bool:
        """Whether the spec asks for the pack that passed last, under the very inputs under which it passed."""
        good = self.good
        return (
            good is not None
            and good.inputs_hash == str(self.inputs)
            and good.uri == self.asked.uri
            and self.asked.digest in ("", good.digest)
        )

    @cached_property
    def standing(self) -> Pack | None:
        """What the target is told to serve and nobody has proved in the present environment, if that is so."""
        model, good = self.target.model, self.good
        if model.is_base:
            return None
        if good is not None and same_pack(model, good):
            return None if environment_of(good.inputs_hash) == self.inputs.environment else pack_of(model)
        incumbent = self.status.incumbent
        if incumbent is not None and same_pack(model, incumbent):
            return incumbent
        return None if self.adopted else pack_of(model)

    @property
    def crowded(self) -> bool:
        """Whether as many checks run in this namespace as may."""
        return self.observed.running_checks >= self.limits.running_checks

    def asks_for(self, pack: Pack) -> bool:
        """Whether the spec asks for this pack."""
        return self.asked.uri == pack.uri and self.asked.digest in ("", pack.digest)

    def inputs_for(self, pack: Pack) -> Inputs:
        """The inputs of a check of this pack."""
        return self.inputs if self.asks_for(pack) else inputs_of(self.spec, pack, self.target.template, self.image_id)

    def carries(self, model: ServedModel) -> bool:
        """Whether the target's template tells to serve this model, as the operator wrote it.

        A ModelVariant's new name is no rollout: pods keep the name under which they were made. One that somebody else
        has put there, or taken away, since the operator wrote is a foreign edit like any other.
        """
        target = self.target
        if not same_pack(target.model, model):
            return False
        ours = target.owned and target.model.variant != ""
        return model.is_base or target.applied is None or ours or target.model.variant == model.variant

    def served(self, pack: Pack) -> ServedModel:
        """The annotations that make the target serve this pack."""
        return ServedModel(pack.uri, pack.digest, pack.precision, self.variant.name)


def facts_of(variant: Variant, spec: Spec, observed: Observed, target: Target, limits: Limits) -> Facts:
    """The facts. RenderError where the target's template does not name a base or has no such container."""
    base = base_model(target.template, spec.container)
    asked = Pack(uri=spec.model.uri, digest=spec.model.digest or "", precision=spec.model.precision or "")
    image = str(serving_container(target.template, spec.container).get("image", ""))
    image_id = _image_id(variant, observed, image)
    inputs = inputs_of(spec, asked, target.template, image_id)
    return Facts(variant, spec, observed, target, limits, base, inputs, image, image_id)


def _image_id(variant: Variant, observed: Observed, image: str) -> str:
    """What the ready pods of this image run; where they disagree, or there are none, what they were last seen to."""
    seen = {pod.image_id for pod in observed.pods if pod.ready and not pod.deleting and pod.image == image}
    known = variant.status.target
    return seen.pop() if len(seen) == 1 else known.image_id if known.image == image else ""
