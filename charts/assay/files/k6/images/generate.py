"""Make the images of a load test, and write down what the model says of each.

    python k6/images/generate.py --out /tmp/images --service http://127.0.0.1:8000
    python k6/images/generate.py --out /tmp/images --model builtin:efficientnet-lite0-fp32

Ordinary uploads (0.2 to 1.1 megapixels, views of the built-in dataset), photos as a phone takes them (12 megapixels),
and files that do harm. Labels come from `assay classify` with the very packs that may answer, so a load test also finds
answers that are quick and wrong. The same versions make the same bytes.
"""

import argparse
import io
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from assay.building.photos import find
from assay.errors import AssayError
from assay.packs.dataset import Dataset, read_dataset
from assay.settings import load_settings
from assay.vision.errors import ImageError
from assay.vision.preprocess import load

ORDINARY = 60
"""As many as the measurements of the design: more than a CPU's caches hold, quick to classify beforehand."""

MARGIN = 0.02
"""Least lead of the first label over the second: below it another CPU's rounding could change the order."""

PHONE = (4000, 3000)
"""12 megapixels, what phones take."""

PHONE_PHOTOS = 4
"""Three baseline and one progressive: browsers recompress, phones do not, so progressive ones are the fewer."""

GRAIN = 14
"""Noise added to an enlarged photo, in steps of 256: without a sensor's grain 12 megapixels would compress to a third
of what a phone writes, and decode faster than any real photo."""

OK = 200
TIMEOUT_S = 30.0
POLL_S = 1.0
BOMB_SIDE = 20_000
"""Side of a picture of one colour: 50 KB to send, 400 megapixels to decode."""


@dataclass(frozen=True)
class AnyModel:
    """Geometry of an input; whether a file can be read does not depend on it."""

    resize_short: int = 256
    crop: int = 224
    interpolation: str = "bilinear"


def ordinary(dataset: Dataset, count: int) -> dict[str, bytes]:
    """Return as many photos, spread evenly over the dataset."""
    entries = dataset.manifest.images
    chosen = [entries[index * len(entries) // count] for index in range(min(count, len(entries)))]
    return {Path(image.entry.file).name: image.data for image in dataset.read(chosen)}


def _grain(seed: int) -> NDArray[np.int16]:
    # RandomState: its sequence is frozen, that of newer generators is not.
    tile = np.random.RandomState(seed).randint(-GRAIN, GRAIN + 1, (PHONE[1] // 4, PHONE[0] // 4, 3))
    return np.tile(tile.astype(np.int16), (4, 4, 1))


def phone_photos(photos: dict[str, bytes]) -> dict[str, bytes]:
    """Return photos enlarged to 12 megapixels, with grain; the last one progressive."""
    names = sorted(photos)
    made = {}
    for number in range(PHONE_PHOTOS):
        with Image.open(io.BytesIO(photos[names[number * len(names) // PHONE_PHOTOS]])) as small:
            large = np.asarray(small.convert("RGB").resize(PHONE, Image.Resampling.BICUBIC), np.int16)
        picture = Image.fromarray(np.clip(large + _grain(number), 0, 255).astype(np.uint8))
        progressive = number == PHONE_PHOTOS - 1
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=88, progressive=progressive)
        made[f"phone-{number}{'-progressive' if progressive else ''}.jpg"] = file.getvalue()
    return made


def hostile(photos: dict[str, bytes]) -> dict[str, bytes]:
    """Return files that nobody should have to take, each for another reason."""
    photo = photos[min(photos)]
    bomb = io.BytesIO()
    Image.new("1", (BOMB_SIDE, BOMB_SIDE)).save(bomb, "PNG")
    frame = photo.index(b"\xff\xc0") if b"\xff\xc0" in photo else photo.index(b"\xff\xc2")
    # The header's height and width (bytes 5 to 8 after the marker) say 65500 x 65500.
    vast = photo[: frame + 5] + b"\xff\xdc\xff\xdc" + photo[frame + 9 :]
    return {
        "bomb.png": bomb.getvalue(),
        "vast.jpg": vast,
        "headless.jpg": photo[:20],
        "cut.jpg": photo[: len(photo) // 2],
        "text.jpg": b"<!DOCTYPE html><p>not a picture</p>" * 100,
        "script.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "archive.zip": b"PK\x03\x04" + bytes(5000),
        "noise.bin": np.random.RandomState(1).bytes(100_000),
        "empty-picture.gif": b"GIF89a" + bytes(7) + b";",
    }


def status_of(data: bytes, max_pixels: int) -> int:
    """Return the status that the service answers to a file: that of the error its own decoder raises."""
    try:
        load(data, AnyModel(), max_pixels)
    except ImageError as error:
        return error.status
    return OK


def classify(files: Sequence[Path], uri: str, digest: str) -> tuple[str, dict[str, tuple[str, float]]]:
    """Return a pack's digest, and for each file its label and how far that leads the second."""
    command = [sys.executable, "-m", "assay", "classify", "--json", "--top-k=2", "--model", uri]
    if digest:
        command += ["--digest", digest]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        raise SystemExit(f"{uri} cannot say what is right:\n{done.stderr}")
    found: dict[str, tuple[str, float]] = {}
    seen = ""
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        first, *others = answer["predictions"]
        found[Path(answer["file"]).name] = first["label"], first["score"] - (others[0]["score"] if others else 0)
        seen = answer["model"]["digest"]
    return seen, found


def served(url: str, patience_s: float) -> tuple[str, str]:
    """Return URI and digest of the pack that a service serves; it may take so many seconds to come up."""
    if not url.startswith(("http://", "https://")):
        raise SystemExit(f"--service must be http://... or https://..., not {url}")
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/v1/model", timeout=TIMEOUT_S) as response:  # noqa: S310 - checked above
                model = json.load(response)
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{url} does not say which model it serves: {error}") from error
            time.sleep(POLL_S)
        else:
            return model["uri"], model["digest"]


def generate(
    out: Path, dataset: Dataset, packs: Sequence[tuple[str, str]], count: int, max_pixels: int
) -> dict[str, Any]:
    """Write the images and set.json; return what the latter holds."""
    photos = ordinary(dataset, count)
    kinds = {"ordinary": photos, "large": phone_photos(photos), "hostile": hostile(photos)}
    out.mkdir(parents=True, exist_ok=True)
    for files in kinds.values():
        for name, data in files.items():
            (out / name).write_bytes(data)
    pictures = [out / name for kind in ("ordinary", "large") for name in kinds[kind]]
    answers = [classify(pictures, uri, digest) for uri, digest in packs]
    images = []
    for kind, files in kinds.items():
        for name, data in files.items():
            if kind == "hostile":
                labels, status = None, status_of(data, max_pixels)
            elif min(found[name][1] for _, found in answers) < MARGIN:
                continue
            else:
                labels, status = {digest: found[name][0] for digest, found in answers}, OK
            kind_of_file = "image/jpeg" if name.endswith(".jpg") else "application/octet-stream"
            images.append({"file": name, "kind": kind, "type": kind_of_file, "status": status, "labels": labels})
    described = {
        "format": 1,
        "dataset": dataset.digest,
        "packs": [{"uri": uri, "digest": digest} for (uri, _), (digest, _) in zip(packs, answers, strict=True)],
        "images": images,
    }
    (out / "set.json").write_text(json.dumps(described, indent=1) + "\n")
    return described


def main() -> None:
    """Parse the command line, and make the set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--service", action="append", default=[], metavar="URL", help="expect what this one serves")
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="how long it may take to come up")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="URI[@DIGEST]",
        help="expect this pack's answers too; repeatable",
    )
    parser.add_argument("--dataset", default="builtin:photos", help="dataset to take photos from (a file, or built in)")
    parser.add_argument("--count", type=int, default=ORDINARY, help=f"ordinary photos (default {ORDINARY})")
    options = parser.parse_args()
    try:
        settings = load_settings()
        packs = [served(url, options.wait) for url in options.service]
        packs += [(uri, digest) for uri, _, digest in (model.partition("@") for model in options.model)]
        packs = list(dict.fromkeys(packs)) or [(settings.base_model_uri, settings.base_model_digest)]
        options.out.mkdir(parents=True, exist_ok=True)
        path = find(options.dataset, options.out, lambda _: None) or Path(options.dataset)
        described = generate(options.out, read_dataset(path), packs, options.count, settings.max_pixels)
    except AssayError as error:
        raise SystemExit(f"generate.py: {error}") from error
    kinds = [image["kind"] for image in described["images"]]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{options.out / 'set.json'}: {told}; right is what {', '.join(uri for uri, _ in packs)} says")


if __name__ == "__main__":
    main()
