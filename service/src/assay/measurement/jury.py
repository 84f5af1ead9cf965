"""Judges many candidates against one FP32 pack: photos are decoded, and answered by the FP32 pack, only once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.check import agreement, cost
from assay.check.agreement import Accuracy, Outcome, compare
from assay.check.cost import MIN_BLOCKS, Block, Cost
from assay.errors import PackError
from assay.inference.engine import Engine
from assay.measurement.compare import Progress, Selection, decoded
from assay.measurement.timing import timed_block, warm_up
from assay.packs.archive import Pack
from assay.packs.dataset import Dataset


@dataclass(frozen=True)
class _Exhibit:
    """One photo: its pixels, uint8 [1, crop, crop, 3], the yardstick's logits, float32 [classes], and its group."""

    pixels: NDArray[np.uint8]
    logits: NDArray[np.float32]
    group: str


class Jury:
    """Holds the photos and the yardstick; 150 KB a photo at 224 pixels.

    Candidates must have the yardstick's preprocessing and labels, as what is quantised from it has. Raises
    ``DatasetError`` for a photo that does not decode.
    """

    def __init__(
        self, yardstick: Pack, dataset: Dataset, selection: Selection, progress: Progress | None = None
    ) -> None:
        self._yardstick = yardstick
        self._engine = Engine(yardstick)
        self._exhibits: list[_Exhibit] = []
        images = decoded(dataset.read(selection.entries), yardstick)
        for entry, pixels in zip(selection.entries, images, strict=True):
            self._exhibits.append(_Exhibit(pixels, self._engine.infer(pixels)[0], entry.group))
            if progress:
                progress(len(self._exhibits), len(selection.entries))

    def judge(
        self, candidate: Pack, blocks: int, confidence: float, progress: Progress | None = None
    ) -> tuple[Accuracy, Cost]:
        """Return what a candidate agrees on, and its cost from ``blocks`` interleaved timings.

        Photos are spread over the blocks, and blocks over the time that judging takes. Raises ``PackError`` when the
        model does not load or fails, or the yardstick gives NaN, and ``CpuFeatureMissingError``.
        """
        engine, blocks = Engine(candidate), max(blocks, MIN_BLOCKS)
        total = len(self._exhibits)
        calls = warm_up((engine, self._exhibits[0].pixels), (self._engine, self._exhibits[0].pixels))
        outcomes: list[Outcome] = []
        timings: list[Block] = []
        for number, exhibit in enumerate(self._exhibits):
            outcomes.append(self._outcome(candidate, engine, exhibit))
            while len(timings) * total < (number + 1) * blocks:
                timed = self._exhibits[len(timings) * total // blocks].pixels
                timings.append(timed_block((engine, timed), (self._engine, timed), len(timings), calls))
            if progress:
                progress(number + 1, total)
        return agreement.summarise(outcomes, confidence), cost.summarise(timings, confidence)

    def _outcome(self, candidate: Pack, engine: Engine, exhibit: _Exhibit) -> Outcome:
        logits = engine.infer(exhibit.pixels)[0]
        try:
            return compare(logits, candidate.labels, exhibit.logits, self._yardstick.labels, exhibit.group, label=None)
        except ValueError as error:
            raise PackError(f"{self._yardstick.manifest.name}: {error}") from error
