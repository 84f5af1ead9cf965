"""Batched answers are the unbatched ones, for each caller, whatever the others send or do."""

import asyncio
import time

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from assay.errors import PackError
from assay.inference.engine import Engine
from assay.serving.model import Model, batches_alike
from assay.serving.stages import classify
from assay.vision.errors import ImageBroken
from assay.vision.header import read_header
from support.images import jpeg
from support.paths import wired
from support.small_packs import COLOURS, CROP, LABELS, colour_jpeg, colour_model, colour_pack

RED, GREEN = colour_jpeg(COLOURS["red"]), colour_jpeg(COLOURS["green"])
BROKEN = jpeg("chelsea", (90, 60))[:-200]  # its header is whole: found out by decoding it


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return colour_pack(tmp_path_factory.mktemp("batcher") / "colours.tar", model=colour_model(work=30))


@pytest.fixture(scope="module")
def engine(pack):
    return Engine(pack)


def choosy_model() -> bytes:
    """A model that fails on a very bright image: its first pixel chooses one of 250 rows of the weights."""
    nodes = [
        helper.make_node("Slice", ["images", "from", "to", "axes"], ["pixel"]),
        helper.make_node("Reshape", ["pixel", "shape"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["index"], to=TensorProto.INT64),
        helper.make_node("Gather", ["rows", "index"], ["logits"], axis=0),
    ]
    constants = {
        "from": np.array([0, 0, 0]), "to": np.array([1, 1, 1]), "axes": np.array([1, 2, 3]), "shape": np.array([-1]),
        "rows": np.random.default_rng(0).normal(size=(250, len(LABELS))).astype(np.float32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "choosy",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, ["N", CROP, CROP, 3])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", len(LABELS)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def ask(made, image, top_k=3):
    return made.path.classify(image, top_k, time.perf_counter())


REQUESTS = st.lists(
    st.tuples(
        st.tuples(*[st.integers(0, 255)] * 3) | st.none(),  # a colour, or a broken image
        st.integers(20, 90),
        st.integers(1, 5),
        st.sampled_from([None, None, None, 0, 1, 3]),  # turns of the loop until it is cancelled
    ),
    min_size=1,
    max_size=24,
)


@settings(max_examples=40, deadline=None)
@given(
    requests=REQUESTS,
    batch_max=st.integers(1, 6),
    batch_window_ms=st.sampled_from([0, 1, 20]),
    workers=st.integers(1, 3),
    cache_bytes=st.sampled_from([0, 0, 100_000]),
)
def test_everybody_gets_the_unbatched_answer(pack, engine, requests, workers, **chosen):
    images = [BROKEN if colour is None else colour_jpeg(colour, side) for colour, side, _, _ in requests]

    async def main(made):
        tasks = [
            asyncio.create_task(ask(made, image, top_k))
            for image, (_, _, top_k, _) in zip(images, requests, strict=True)
        ]
        for turn in range(4):
            for task, (_, _, _, cancelled_at) in zip(tasks, requests, strict=True):
                if cancelled_at == turn:
                    task.cancel()
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            return await asyncio.gather(*tasks, return_exceptions=True)

    with wired(pack, workers=workers, batching=True, **chosen) as made:
        results = asyncio.run(main(made))
    for image, (colour, _, top_k, cancelled_at), result in zip(images, requests, results, strict=True):
        if isinstance(result, asyncio.CancelledError):
            assert cancelled_at is not None
        elif colour is None:
            assert isinstance(result, ImageBroken)
        else:
            alone = classify(image, read_header(image), pack, engine, top_k=top_k, started=0.0).predictions
            scores = dict(alone)
            assert [score for _, _, score in result.predictions] == pytest.approx([s for _, s in alone], abs=1e-6)
            for index, label, score in result.predictions:  # the same classes, but for ties
                assert label == LABELS[index]
                assert scores.get(index, alone[-1][1]) == pytest.approx(score, abs=1e-6)
    assert made.admission.waiting_ms == 0
    assert made.batcher._expected == 0


def test_image_that_the_model_fails_on_fails_alone(tmp_path):
    pack = colour_pack(tmp_path / "choosy.tar", model=choosy_model())
    shades = [10, 255, 40, 90, 253, 130]

    async def main():
        with wired(pack, workers=1, batching=True, batch_max=6, batch_window_ms=1000) as made:
            images = [colour_jpeg((shade,) * 3) for shade in shades]
            results = await asyncio.gather(*(ask(made, image) for image in images), return_exceptions=True)
            return results, made.count("assay_batch_size_count")

    results, batches = asyncio.run(main())
    assert [isinstance(result, PackError) for result in results] == [shade >= 250 for shade in shades]
    assert batches == 4  # each of the good ones alone
    engine = Engine(pack)
    for shade, result in zip(shades, results, strict=True):
        if shade < 250:
            image = colour_jpeg((shade,) * 3)
            alone = classify(image, read_header(image), pack, engine, top_k=3, started=0.0).predictions
            assert [(index, score) for index, _, score in result.predictions] == alone


def test_images_and_tensors_of_one_request_get_the_unbatched_answers(pack):
    pixels = np.random.default_rng(3).integers(0, 256, (CROP, CROP, 3), dtype=np.uint8)

    async def main(**chosen):
        with wired(pack, **chosen) as made:
            several = [made.path.classify_several([RED, pixels, GREEN], 2, time.perf_counter()) for _ in range(4)]
            answers = [answer for answers in await asyncio.gather(*several) for answer in answers]
            assert made.admission.waiting_ms == 0
            return [score for answer in answers for score in answer.predictions]

    batched, alone = asyncio.run(main(batching=True)), asyncio.run(main())
    assert [one[:2] for one in batched] == [one[:2] for one in alone]
    assert [one[2] for one in batched] == pytest.approx([one[2] for one in alone], abs=1e-6)


def test_lone_request_does_not_wait_for_the_window(pack):
    async def main():
        with wired(pack, batching=True, batch_window_ms=1000) as made:
            return [await ask(made, RED) for _ in range(3)]

    assert all(answer.stages["batch_wait"] < 0.5 for answer in asyncio.run(main()))


def test_request_does_not_wait_for_those_that_broke_or_came_too_late(pack):
    async def main():
        with wired(pack, workers=1, batching=True, batch_window_ms=1000) as made:
            results = await asyncio.gather(ask(made, RED), ask(made, BROKEN), return_exceptions=True)
            return results[0].stages["batch_wait"], made.batcher._expected

    waited, expected = asyncio.run(main())
    assert waited < 0.5
    assert expected == 0


def test_images_under_way_together_go_through_the_model_together(pack):
    async def main():
        with wired(pack, workers=1, batching=True, batch_max=4, batch_window_ms=1000) as made:
            answers = await asyncio.gather(*(ask(made, image) for image in (RED, GREEN) * 4))
            assert [answer.predictions[0][1] for answer in answers] == ["red", "green"] * 4
            return made.count("assay_batch_size_sum"), made.count("assay_batch_size_count")

    assert asyncio.run(main()) == (8, 2)


def test_stages_add_up_and_a_batch_is_paid_for_by_its_images_in_equal_parts(pack):
    async def main():
        with wired(pack, workers=1, batching=True, batch_max=4, batch_window_ms=1000) as made:
            started = time.perf_counter()
            answers = await asyncio.gather(
                *(made.path.classify(image, 3, started) for image in (RED, GREEN, RED, GREEN))
            )
            assert made.count("assay_batch_size_count") == 1
            threads = [*made.executor._threads, made.batcher._thread]
            used = sum(time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) for thread in threads)
        for answer in answers:
            assert sum(answer.stages.values()) == pytest.approx(answer.finished - started, abs=1e-6)
            assert "batch_wait" in answer.stages
            assert answer.cpu_s > 0
        assert len({answer.stages["infer"] for answer in answers}) == 1
        # The threads did a little more: queues and replies.
        assert 0.5 * used < sum(answer.cpu_s for answer in answers) < used

    asyncio.run(main())


def test_model_that_mixes_the_images_of_a_batch_is_found_out(pack, engine, tmp_path):
    assert batches_alike(Model("a test's", pack, engine), 4)
    (tmp_path / "plain.onnx").write_bytes(pack.model)
    quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType.QUInt8)
    model = onnx.load(tmp_path / "dynamic.onnx").SerializeToString()
    mixing = colour_pack(tmp_path / "dynamic.tar", model=model)
    assert not batches_alike(Model("a test's", mixing, Engine(mixing)), 4)
