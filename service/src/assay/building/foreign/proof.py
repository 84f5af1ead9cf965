"""Runs a pack that was made of a stranger's model, as the service will, and says what is wrong with its answers."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.building.distributions import distribution_file
from assay.building.photos import JUDGING
from assay.errors import AssayError, BuildError, PackError
from assay.inference.engine import Engine
from assay.packs.archive import Pack
from assay.vision.geometry import Geometry
from assay.vision.preprocess import load

BATCH: Final = 4
"""Images that are run together and one by one; more than two, so that a first and a last one have neighbours."""

_TOLERANCE: Final = 0.01
"""Largest difference between a batch and one by one, as a share of the largest score.

Float16 rounds at 0.001, integer models move by a step where a sum falls on a boundary. Images that are mixed up, which
is what this is to find, differ by the size of the scores themselves.
"""

_ZEROS: Final = 0
"""Index of the black picture among the probes."""


class UnevenBatchError(BuildError):
    """A model does not take any number of images, or answers depend on what else is in the batch."""


def probes(photo: Path | None, geometry: Geometry) -> NDArray[np.uint8]:
    """Return pictures to try a model on, uint8 [4, crop, crop, 3]: black, a photo, its mirror image, noise.

    ``photo`` is the user's; by default the cat of the built-in photos. Raises ``BuildError`` for what is no image.
    """
    if photo is None:
        cat = JUDGING[0]
        photo = distribution_file(cat.distribution, f"{cat.folder}/{cat.file}", cat.sha256)
    try:
        seen = load(photo.read_bytes(), geometry)
    except OSError as error:
        raise BuildError(f"cannot read {photo}: {error.strerror or error}") from error
    except AssayError as error:
        raise BuildError(f"{photo} is not an image the service takes: {error}") from error
    noise = np.random.default_rng(0).integers(0, 256, seen.shape, np.uint8)
    return np.stack([np.zeros_like(seen), seen, seen[:, ::-1], noise])


def prove(pack: Pack, images: NDArray[np.uint8], fixed: int | None) -> NDArray[np.float32]:
    """Run a pack on the probes, one by one and together; return the logits [4, classes].

    ``fixed`` is the batch that the model was exported for, if for one: then one image may be too few.

    Raises ``UnevenBatchError`` where the two differ or the second fails, and ``BuildError`` for a model that does not
    load, fails on one image, returns NaN or infinities, or says the same of every picture.
    """
    crop = pack.manifest.preprocess.crop
    try:
        engine = Engine(pack, quiet=True)
    except PackError as error:
        raise BuildError(
            f"{error}; was it made for pictures of {crop} x {crop}? if not, pass --crop; if so, export it again for "
            "opset 17"
        ) from error
    try:
        single = np.concatenate([engine.infer(images[index : index + 1]) for index in range(len(images))])
    except PackError as error:
        if (fixed or 1) > 1:
            raise UnevenBatchError(str(error)) from error
        raise BuildError(f"{error}; was it made for pictures of {crop} x {crop}? if not, pass --crop") from error
    try:
        together = engine.infer(images)
    except PackError as error:
        raise UnevenBatchError(str(error)) from error
    for name, scores in (("a black picture", single[_ZEROS]), ("a photo", single[_ZEROS + 1 :])):
        if not np.isfinite(scores).all():
            raise BuildError(
                f"the model returns NaN or infinite scores for {name}: check --mean and --std, and try it where "
                "it was trained (float16 overflows beyond 65504)"
            )
    if np.abs(single - together).max() > _TOLERANCE * max(np.abs(single).max(), 1e-6):
        raise UnevenBatchError("an image's scores depend on the other images of its batch")
    if np.ptp(single, axis=0).max() == 0:
        raise BuildError(
            "the model gives a photo, black and noise the same scores: its input or its weights are not connected; "
            "export it again"
        )
    return single
