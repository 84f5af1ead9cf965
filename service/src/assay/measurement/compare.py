"""Runs a candidate and a yardstick over a dataset: outcomes of every image, and interleaved CPU timings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.check.agreement import Outcome, compare
from assay.check.cost import MIN_BLOCKS, Block, order
from assay.errors import AssayError, DatasetError, PackError
from assay.inference.engine import Engine
from assay.measurement.timing import timed_block, warm_up
from assay.packs.archive import Pack
from assay.packs.dataset import Dataset, Image, ImageEntry
from assay.vision.preprocess import load

Progress = Callable[[int, int], None]
"""Called with images done and images in total."""

COST_BLOCKS: Final = 200
"""Blocks timed: the interval of the median then spans the middle eighth of them, two to three permille here."""


@dataclass(frozen=True)
class Selection:
    """The images to judge, and how many were left out because a pack was calibrated on their group."""

    entries: tuple[ImageEntry, ...]
    left_out: int

    @property
    def labelled(self) -> bool:
        """Whether every image has a label."""
        return all(entry.label is not None or entry.class_index is not None for entry in self.entries)


@dataclass(frozen=True)
class Measurement:
    """What was seen: one outcome per image, and the blocks of timings."""

    outcomes: tuple[Outcome, ...]
    blocks: tuple[Block, ...]


def select(dataset: Dataset, packs: Sequence[Pack], max_images: int) -> Selection:
    """Choose the images to judge: no group that calibrated one of the packs, and at most ``max_images``.

    A larger dataset is thinned evenly, so that every group keeps its share. Raises ``DatasetError`` if none is left.
    """
    used = {
        group for pack in packs if pack.manifest.quantization for group in pack.manifest.quantization.calibration_groups
    }
    entries = [entry for entry in dataset.manifest.images if entry.group not in used]
    left_out = len(dataset.manifest.images) - len(entries)
    if not entries:
        raise DatasetError(
            f"all {left_out} images of {dataset.manifest.name} come from photos that calibrated a pack: "
            "a pack is not judged by what it was made from; use another dataset"
        )
    if len(entries) > max_images:
        # By group first: in the manifest's order, every tenth of images that take turns would be of one group only.
        by_group = sorted(range(len(entries)), key=lambda index: entries[index].group)
        kept = sorted(by_group[index * len(entries) // max_images] for index in range(max_images))
        entries = [entries[index] for index in kept]
    return Selection(tuple(entries), left_out)


def measure(
    candidate: Pack,
    yardstick: Pack,
    dataset: Dataset,
    selection: Selection,
    progress: Progress | None = None,
    cost_blocks: int = COST_BLOCKS,
) -> Measurement:
    """Run both packs over the selected images, one image at a time, one thread each.

    Each image is decoded once per geometry (packs usually share it); up to ``cost_blocks`` of them, spread over the
    dataset, are timed as well. Raises ``DatasetError`` for an image that does
    not decode or a label out of range, ``PackError`` for a model that fails or a yardstick that gives NaN, and
    ``CpuFeatureMissingError``.
    """
    pair = _Pair(candidate, yardstick)
    total = len(selection.entries)
    # Spread over the whole dataset: whatever the machine does meanwhile, all of it is sampled.
    timed_at = {index * total // cost_blocks for index in range(cost_blocks)}
    outcomes: list[Outcome] = []
    blocks: list[Block] = []
    timed: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []
    for number, image in enumerate(dataset.read(selection.entries)):
        inputs = pair.inputs(image)
        if number == 0:
            pair.warm_up(inputs)
        outcomes.append(pair.outcome(image.entry, inputs, len(blocks)))
        if number in timed_at:
            blocks.append(pair.block(inputs, len(blocks)))
            timed = [*timed, inputs][:MIN_BLOCKS]
        if progress:
            progress(number + 1, total)
    # A small dataset is timed again from its first image, until there are blocks enough for an interval.
    for number in range(len(blocks), MIN_BLOCKS):
        blocks.append(pair.block(timed[number % len(timed)], number))  # noqa: PERF401 - each waits for the one before
    return Measurement(tuple(outcomes), tuple(blocks))


class _Pair:
    """Both packs with their engines."""

    def __init__(self, candidate: Pack, yardstick: Pack) -> None:
        self._candidate, self._yardstick = candidate, yardstick
        self._known = frozenset(yardstick.labels)
        self._calls = 1
        self._engines = Engine(candidate), Engine(yardstick)
        self._same_geometry = candidate.manifest.preprocess == yardstick.manifest.preprocess

    def inputs(self, image: Image) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return what each model is given for an image, uint8 [1, crop, crop, 3]."""
        first = _decoded(image, self._candidate)
        return first, first if self._same_geometry else _decoded(image, self._yardstick)

    def warm_up(self, inputs: tuple[NDArray[np.uint8], NDArray[np.uint8]]) -> None:
        """Run both until they are at their usual speed, and see how many calls make a timing."""
        (ours, theirs), (a, b) = self._engines, inputs
        self._calls = warm_up((ours, a), (theirs, b))

    def block(self, inputs: tuple[NDArray[np.uint8], NDArray[np.uint8]], number: int) -> Block:
        """Time both in one block; see ``timing.timed_block``."""
        (ours, theirs), (a, b) = self._engines, inputs
        return timed_block((ours, a), (theirs, b), number, self._calls)

    def outcome(self, entry: ImageEntry, inputs: tuple[NDArray[np.uint8], NDArray[np.uint8]], block: int) -> Outcome:
        """Run both once and compare; the inner pack of the block that may follow runs last, as in a block."""
        first, second, *_ = order(block)
        logits = {each: self._engines[each].infer(inputs[each])[0] for each in (first, second)}
        ours, theirs = logits[0], logits[1]
        labels = self._yardstick.labels
        try:
            label = entry.label if entry.label is not None or entry.class_index is None else labels[entry.class_index]
            if label is not None and label not in self._known:
                raise DatasetError(
                    f"{entry.file} is labelled {label!r}, which neither pack can ever answer: label it as the packs do"
                )
            return compare(ours, self._candidate.labels, theirs, labels, entry.group, label)
        except IndexError as error:
            raise DatasetError(f"{entry.file} has class {entry.class_index}; there are {len(labels)}") from error
        except ValueError as error:
            raise PackError(f"{self._yardstick.manifest.name} on {entry.file}: {error}") from error


def decoded(images: Iterator[Image], pack: Pack) -> Iterator[NDArray[np.uint8]]:
    """Yield each image as the pack's model takes it, uint8 [1, crop, crop, 3], through the production path."""
    for image in images:
        yield _decoded(image, pack)


def _decoded(image: Image, pack: Pack) -> NDArray[np.uint8]:
    try:
        pixels: NDArray[Any] = load(image.data, pack.manifest.preprocess)
    except AssayError as error:
        raise DatasetError(f"{image.entry.file} of the dataset does not decode: {error}") from error
    return pixels[np.newaxis]
