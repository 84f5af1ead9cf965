"""A whole check: fetch, select, measure, judge; whatever happens, a result comes out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, get_args

from assay.check import agreement, cost
from assay.check.report import RELEVANT_FEATURES, CheckResult, DatasetResult, PackResult, figures
from assay.check.verdict import Criteria, Reason, Verdict, default_cost_ratio, judge, labels_differ
from assay.errors import AssayError, DatasetError, PrecisionMismatchError
from assay.measurement.compare import COST_BLOCKS, Measurement, Progress, Selection, measure, select
from assay.packs.archive import MAX_PACK_BYTES, Pack, read_pack
from assay.packs.dataset import MAX_DATASET_BYTES, Dataset, read_dataset
from assay.packs.fetch import fetch
from assay.platform.cpu import cpu_features, cpu_limit_millicores, cpu_model

DEFAULT_MAX_IMAGES: Final = 2000
"""At 20 ms of decoding and two inferences each, a minute's work; the bounds hardly gain from more."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reference:
    """A pack or dataset as asked for; ``digest`` and ``precision`` are expectations, or None."""

    uri: str
    digest: str | None = None
    precision: str | None = None


@dataclass(frozen=True)
class CheckRequest:
    """What to check. ``max_cost_ratio`` None takes the default of the pair's precisions."""

    candidate: Reference
    yardstick: Reference
    dataset: Reference
    cache_dir: Path
    criteria: Criteria = field(default_factory=Criteria)
    max_cost_ratio: int | None = None
    max_images: int = DEFAULT_MAX_IMAGES
    job_uid: str = ""
    inputs_hash: str = ""
    cpu_limit_millicores: int | None = None
    cost_blocks: int = COST_BLOCKS


def run_check(request: CheckRequest, progress: Callable[[str], Progress | None] | None = None) -> CheckResult:
    """Run a check and return its result; a failure of any kind becomes verdict Error with a reason.

    ``progress`` is asked for a callback at the start of each step, by the step's name.
    """
    check = _Check(request, progress or (lambda _step: None))
    try:
        verdict = check.run()
    except AssayError as error:
        verdict = Verdict("Error", _reason(error), str(error))
    except Exception as error:
        _log.exception("the check crashed")
        verdict = Verdict("Error", "CheckCrashed", f"{type(error).__name__}: {error}; see the log of the check")
    return check.result(verdict)


def failed(request: CheckRequest, error: AssayError) -> CheckResult:
    """Return the result of a check that could not even begin."""
    return _Check(request, lambda _step: None).result(Verdict("Error", _reason(error), str(error)))


def load_reference(reference: Reference, cache_dir: Path, progress: Progress | None = None) -> Pack:
    """Fetch, verify and read a pack. Raises as ``fetch`` and ``read_pack`` do, and ``PrecisionMismatchError``."""
    path = fetch(reference.uri, reference.digest, cache_dir=cache_dir, max_bytes=MAX_PACK_BYTES, progress=progress)
    pack = read_pack(path, reference.digest)
    if reference.precision and pack.manifest.precision != reference.precision:
        raise PrecisionMismatchError(
            f"{reference.uri} is {pack.manifest.precision}, but {reference.precision} was asked for"
        )
    return pack


class _Check:
    """The steps in order; each leaves behind what it learned, for the result of a check that ends early."""

    def __init__(self, request: CheckRequest, progress: Callable[[str], Progress | None]) -> None:
        self._request, self._progress = request, progress
        self._started = _now()
        self._candidate: Pack | None = None
        self._yardstick: Pack | None = None
        self._dataset: Dataset | None = None
        self._selection: Selection | None = None
        self._figures: dict[str, Any] = {}
        self._costs: tuple[int | None, int | None] = None, None

    def run(self) -> Verdict:
        """Fetch, select, measure, judge."""
        request = self._request
        self._candidate = candidate = self._pack("candidate", request.candidate)
        self._yardstick = yardstick = self._pack("yardstick", request.yardstick)
        self._dataset = dataset = self._load_dataset()
        if differ := labels_differ(candidate.labels, yardstick.labels):
            return differ
        self._selection = selection = select(dataset, (candidate, yardstick), request.max_images)
        if request.criteria.max_top1_drop is not None and not selection.labelled:
            raise DatasetError(
                f"{request.dataset.uri} has no labels: a limit on the top-1 drop needs them on every image"
            )
        step, blocks = self._progress("measuring"), request.cost_blocks
        measured = measure(candidate, yardstick, dataset, selection, step, blocks)
        return self._judge(measured, candidate, yardstick)

    def _pack(self, role: str, reference: Reference) -> Pack:
        return load_reference(reference, self._request.cache_dir, self._progress(f"fetching the {role}"))

    def _load_dataset(self) -> Dataset:
        wanted = self._request.dataset
        path = fetch(
            wanted.uri,
            wanted.digest,
            cache_dir=self._request.cache_dir,
            max_bytes=MAX_DATASET_BYTES,
            progress=self._progress("fetching the dataset"),
        )
        return read_dataset(path, wanted.digest)

    def _judge(self, measured: Measurement, candidate: Pack, yardstick: Pack) -> Verdict:
        criteria = self._request.criteria
        limit = self._request.max_cost_ratio
        if limit is None:
            limit = default_cost_ratio(candidate.manifest.precision, yardstick.manifest.precision)
        criteria = replace(criteria, max_cost_ratio=limit)
        accuracy = agreement.summarise(measured.outcomes, criteria.confidence)
        price = cost.summarise(measured.blocks, criteria.confidence)
        self._figures = figures(accuracy, price)
        self._costs = round(price.candidate_s * 1e6), round(price.yardstick_s * 1e6)
        return judge(criteria, accuracy, price)

    def result(self, verdict: Verdict) -> CheckResult:
        """Put together what is known."""
        request, selection = self._request, self._selection
        return CheckResult(
            verdict=verdict.verdict,
            reason=verdict.reason,
            message=verdict.message,
            job_uid=request.job_uid,
            inputs_hash=request.inputs_hash,
            candidate=_pack_result(request.candidate, self._candidate, self._costs[0]),
            yardstick=_pack_result(request.yardstick, self._yardstick, self._costs[1]),
            dataset=DatasetResult(
                uri=request.dataset.uri,
                digest=self._dataset.digest if self._dataset else None,
                images=len(selection.entries) if selection else None,
                groups=len({entry.group for entry in selection.entries}) if selection else None,
                left_out=selection.left_out if selection else None,
                labelled=selection.labelled if selection else None,
            ),
            **self._figures,
            cpu_model=cpu_model(),
            cpu_features=tuple(name for name in RELEVANT_FEATURES if name in cpu_features()),
            cpu_limit_millicores=cpu_limit_millicores(request.cpu_limit_millicores),
            started_at=self._started,
            completed_at=_now(),
        )


def _pack_result(wanted: Reference, pack: Pack | None, cost_micros: int | None) -> PackResult:
    if pack is None:
        return PackResult(uri=wanted.uri, digest=None, precision=None, cost_micros=None)
    return PackResult(uri=wanted.uri, digest=pack.digest, precision=pack.manifest.precision, cost_micros=cost_micros)


def _reason(error: AssayError) -> Reason:
    """Return the error's own code where the contract has it."""
    known: tuple[Reason, ...] = get_args(Reason)
    return next((reason for reason in known if reason == error.code), "CheckCrashed")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
