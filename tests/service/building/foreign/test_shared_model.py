"""A real model that somebody else exported, on photos that somebody else labelled."""

import pytest

from assay.building.folder import pack_folder
from assay.building.foreign.pack import Order, pack_onnx
from assay.measurement.compare import measure, select
from assay.packs.archive import read_pack
from assay.packs.dataset import read_dataset


@pytest.mark.shared_data
def test_mobilenet_v2_keeps_its_accuracy_in_a_pack(shared_data, tmp_path):
    order = Order(
        shared_data / "mobilenet_v2.onnx",
        shared_data / "imagenet_labels.txt",
        "mobilenet-v2-own",
        mean=(127.5,) * 3,
        std=(127.5,) * 3,
        layout="NCHW",
        resize=256,
        crop=224,
    )
    said = pack_onnx(order, tmp_path / "own.tar")
    assert said.notes == ()
    assert "cat" in said.labels[int(said.logits.argmax())]  # the photo of a cat
    pack = read_pack(tmp_path / "own.tar", said.digest)
    photos = shared_data / "photos"
    pack_folder(photos, photos / "labels.csv", "shared", tmp_path / "photos.tar", len(pack.labels))
    dataset = read_dataset(tmp_path / "photos.tar")
    found = measure(pack, pack, dataset, select(dataset, (pack,), 2000), cost_blocks=1)
    right = sum(bool(outcome.candidate_right) for outcome in found.outcomes)
    assert len(found.outcomes) == 200
    assert right >= 172  # 86 %
    print(f"top-1: {right} of 200")
