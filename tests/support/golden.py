"""Targets as they come in the wild, with the check Jobs that are made for them: the pairs of tests/operator."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from assay_operator.builders.check_job import check_job
from assay_operator.builders.inputs import inputs_of
from assay_operator.models.observed import ServedModel, Target, Variant
from assay_operator.models.spec import Spec
from assay_operator.models.status import Pack, Status

PAIRS = Path(__file__).resolve().parents[1] / "operator"
NAMES = sorted(path.stem for path in (PAIRS / "input").glob("*.yaml"))


@cache
def written(name: str) -> dict[str, Any]:
    """`deployment`: its pod template; `variant`: the spec of a ModelVariant."""
    return yaml.safe_load((PAIRS / "input" / f"{name}.yaml").read_text())


def output(name: str) -> Path:
    """Where the Job is written down."""
    return PAIRS / "output" / f"{name}.yaml"


def rendered(name: str, template: dict[str, Any] | None = None) -> dict[str, Any]:
    """The Job for this target; `template` takes the place of the written one."""
    wanted = Spec.model_validate(written(name)["variant"])
    variant = Variant("shop", "assay", "uid-1", 1, "1", datetime(2026, 1, 1, tzinfo=UTC), wanted, Status())
    source = template or written(name)["deployment"]
    target = Target("assay", "uid-2", "1", 1, True, source, ServedModel(), True, 1, 2, 2, 2, 2, 2)
    pack = Pack(uri=wanted.model.uri, digest=wanted.model.digest or "", precision=wanted.model.precision or "")
    return check_job(variant, wanted, target, pack, inputs_of(wanted, pack, target.template), 1)
