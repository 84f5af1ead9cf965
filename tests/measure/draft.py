"""How far the reduced decode of large JPEG files is from the plain way: ``python tests/measure/draft.py --photos DIR``.

Every photo is brought to each size class (enlarged with fine noise on top, so that there is detail for the decoder to
lose), saved as JPEG, and taken to the model twice: decoded whole, resized, then cropped; and as the service does it,
for each margin. Prints, for each class and margin, how many top-1 labels are the same, the mean absolute difference of
pixels (of 255), and CPU-ms of the way to the model's input as a ratio to the plain one.
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from assay.bench.photos import ENCODINGS, at_size, encoded, noise
from assay.inference.engine import Engine
from assay.packs.archive import read_pack
from assay.platform.cpu import cpu_model, notable_features
from assay.vision import decode as decoding
from assay.vision.geometry import resized
from assay.vision.preprocess import load
from support.images import two_step

CLASSES_MP = (0.2, 0.5, 1.1, 2.0, 12.0)
MARGINS = (1.0, 1.5, 2.0, 3.0)
BASELINE = ENCODINGS["jpeg"][0]


def decoded(data: bytes) -> Image.Image:
    """The whole picture, as anybody would decode it."""
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="take every n-th photo")
    given = parser.parse_args()
    pack = read_pack(given.pack)
    engine, wanted = Engine(pack), pack.manifest.preprocess
    resample = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[wanted.interpolation]
    tile = noise(1)
    files = sorted(given.photos.glob("*.jpg"))[:: given.every]
    print(f"{len(files)} photos, {pack.manifest.name}, {cpu_model()}, {', '.join(notable_features())}")
    print("| class | margin | same top-1 | mean abs. pixel error, mean / worst photo | CPU, ratio to plain |")
    print("|---|---|---|---|---|")
    for megapixels in CLASSES_MP:
        same = dict.fromkeys(MARGINS, 0)
        errors: dict[float, list[float]] = {margin: [] for margin in MARGINS}
        cpu = dict.fromkeys(MARGINS, 0.0)
        reference_cpu, scores = 0.0, {}
        for file in files:
            with Image.open(file) as image:
                data = encoded(at_size(ImageOps.exif_transpose(image).convert("RGB"), megapixels, tile), BASELINE)
            started = time.thread_time()
            whole = decoded(data)
            size = resized(*whole.size, wanted.resize_short)
            whole.resize(size, resample).crop((0, 0, wanted.crop, wanted.crop))
            reference_cpu += time.thread_time() - started
            forms = two_step(whole, wanted.resize_short, wanted.crop, resample)
            labels = {int(engine.infer(form[None])[0].argmax()) for form in forms}
            for margin in MARGINS:
                decoding.DRAFT_MARGIN = margin
                started = time.thread_time()
                found = load(data, wanted)
                cpu[margin] += time.thread_time() - started
                errors[margin].append(min(float(np.abs(found.astype(int) - form).mean()) for form in forms))
                agrees = int(engine.infer(found[None])[0].argmax()) in labels
                same[margin] += agrees
                if not agrees:
                    scores.setdefault(margin, []).append(file.name)
        for margin in MARGINS:
            print(
                f"| {megapixels} MP | {margin} | {same[margin] / len(files):.1%} | {np.mean(errors[margin]):.2f} / "
                f"{np.max(errors[margin]):.2f} | {cpu[margin] / reference_cpu:.2f} |",
                flush=True,
            )
        print(f"<!-- other labels: {json.dumps(scores)} -->", flush=True)


if __name__ == "__main__":
    main()
