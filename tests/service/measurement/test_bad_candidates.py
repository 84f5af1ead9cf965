"""What must never pass: the real model, spoilt in one way each, in a real check against itself.

A few photos are enough: what is broken shows at once. The noise of a busy machine is allowed for, so that no candidate
is stopped by it: what stops one here is what is wrong with it.
"""

import random

import numpy as np
import pytest
from PIL import Image

from assay.building import photos
from assay.building.distributions import distribution_file
from assay.check.verdict import Criteria
from assay.inference.engine import Engine
from assay.measurement.compare import decoded
from assay.measurement.run import CheckRequest, Reference, run_check
from assay.packs.archive import write_pack
from assay.packs.dataset import ImageEntry, read_dataset, write_dataset
from support import spoilt_models
from support.bad_packs import scramble
from support.small_packs import quantization

VIEWS = 8  # of each of the four photos
NOISY, ANY_COST = 10_000, 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory, base_pack):
    """A folder with ``base.tar``, and ``photos.tar`` with a few views of the built-in photos."""
    made = tmp_path_factory.mktemp("bad")
    write_pack(made / "base.tar", base_pack.manifest, base_pack.model, base_pack.labels)
    entries, bodies = [], []
    for photo in photos.JUDGING:
        with Image.open(distribution_file(photo.distribution, f"{photo.folder}/{photo.file}", photo.sha256)) as opened:
            source = opened.convert("RGB")
        for number in range(VIEWS):
            entries.append(ImageEntry(file=f"images/{len(entries):02d}.jpg", group=photo.group))
            bodies.append(photos.view(source, random.Random(number)))
    write_dataset(made / "photos.tar", "few", "", entries, bodies)
    return made


@pytest.fixture(scope="module")
def images(folder, base_pack):
    return list(decoded(iter(read_dataset(folder / "photos.tar")), base_pack))


@pytest.fixture(scope="module")
def above(images):
    """A brightness that five of the 32 images exceed."""
    return float(np.sort([image.mean() for image in images])[-6]) + 1e-3


@pytest.fixture
def check(folder, base_pack):
    def run(model=None, labels=None, *, cost=ANY_COST, contained=900, blocks=20, **manifest):
        pack = base_pack.manifest.model_copy(update={"name": "candidate", **manifest})
        write_pack(folder / "candidate.tar", pack, model or base_pack.model, tuple(labels or base_pack.labels))
        return run_check(
            CheckRequest(
                candidate=Reference(str(folder / "candidate.tar")),
                yardstick=Reference(str(folder / "base.tar")),
                dataset=Reference(str(folder / "photos.tar")),
                cache_dir=folder / "cache",
                # 32 images prove 0.05 ** (1 / 32), 91 %, and no more.
                criteria=Criteria(min_top3_containment=contained, max_noise=NOISY),
                max_cost_ratio=cost,
                cost_blocks=blocks,
            )
        )

    return run


def told(result):
    return result.verdict, result.reason


def test_a_repack_of_the_yardstick_is_right_and_known_by_another_digest(check):
    result = check()
    assert told(result) == ("Pass", "CheckPassed"), result.message
    assert (result.top1_agreed, result.top3_contained) == (32, 32)
    assert result.candidate.digest != result.yardstick.digest


def test_scrambled_weights_fail(check, base_pack):
    result = check(scramble(base_pack.model))
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert "below the 900 required" in result.message


def test_weights_quantised_with_one_scale_per_layer_fail(check, base_pack, images):
    made = quantization()
    model = spoilt_models.per_tensor(base_pack.model, images[::8])
    result = check(model, precision="INT8", quantization=made, contained=980)
    assert told(result) == ("Fail", "AccuracyBelowThreshold"), result.message


def test_permuted_labels_fail(check, base_pack):
    labels = list(base_pack.labels)
    random.Random(0).shuffle(labels)
    assert told(check(labels=labels)) == ("Fail", "AccuracyBelowThreshold")


def test_classes_off_by_one_fail(check, base_pack):
    assert told(check(spoilt_models.off_by_one(base_pack.model))) == ("Fail", "AccuracyBelowThreshold")


def test_a_background_class_is_another_set_of_labels(check, base_pack):
    result = check(spoilt_models.with_background(base_pack.model), ("background", *base_pack.labels))
    assert told(result) == ("Fail", "LabelsDiffer")
    assert "1001 and 1000 of them; only the candidate knows 'background'" in result.message


def test_a_model_of_1001_classes_with_1000_labels_is_no_pack(check, base_pack):
    result = check(spoilt_models.with_background(base_pack.model))
    assert told(result) == ("Error", "PackInvalid")
    assert "1001" in result.message


@pytest.mark.parametrize(
    "spoil", [lambda label: label.upper(), lambda label: f" {label}", lambda label: label.replace(" ", "  ")]
)
def test_labels_that_differ_in_case_or_white_space_are_other_labels(check, base_pack, spoil):
    result = check(labels=[spoil(label) for label in base_pack.labels])
    assert told(result) == ("Fail", "LabelsDiffer")
    assert "in case or white space only" in result.message


def test_nan_on_a_few_photos_fails(check, base_pack, above):
    result = check(spoilt_models.nan_where_bright(base_pack.model, above))
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert "NaN or infinity for 5 of 32 images" in result.message


def test_one_score_for_every_class_agrees_with_nothing(check, base_pack):
    result = check(spoilt_models.fixed(base_pack.model, np.zeros(len(base_pack.labels))))
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert (result.top1_agreed, result.top3_contained) == (0, 0)


def test_a_fixed_answer_fails_even_if_it_names_what_the_photos_show(check, base_pack, folder, images):
    engine = Engine(base_pack)
    winners = [int(engine.infer(image)[0].argmax()) for image in images]
    common = sorted(set(winners), key=winners.count)[-3:]
    scores = np.zeros(len(base_pack.labels))
    scores[common] = 1, 2, 3
    result = check(spoilt_models.fixed(base_pack.model, scores))
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert result.top3_contained == sum(winner in common for winner in winners) > 0


def test_the_same_answers_for_three_times_the_work_fail_on_cost(check, base_pack):
    result = check(spoilt_models.slow(base_pack.model, 30), cost=1100)
    assert told(result) == ("Fail", "CostAboveThreshold"), result.message
    assert result.top3_contained == 32
    assert "above the limit of 1100 permille" in result.message


def test_a_candidate_that_is_slow_on_few_photos_fails_on_cost(check, base_pack, above):
    # Five of 32 photos: the median does not see them, all photos together do.
    result = check(spoilt_models.slow(base_pack.model, 150, above), cost=1100, blocks=32)
    assert told(result) == ("Fail", "CostAboveThreshold"), result.message
    assert result.cost_ratio_permille > 1500
