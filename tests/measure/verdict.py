"""How often the verdict of a check is wrong, how much it can prove, and whether a model passes against itself.

    PYTHONPATH=tests python tests/measure/verdict.py simulate [--runs 10000]
    PYTHONPATH=tests python tests/measure/verdict.py itself [--small 60] [--real 10] [--busy]

``simulate`` draws samples whose truth is known; ``itself`` measures this machine, with real packs, alone or
(``--busy``) with a process beside it on every core.
"""

import argparse
import multiprocessing
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from assay.building import photos
from assay.building.models import build
from assay.check.verdict import Criteria
from assay.measurement.run import CheckRequest, Reference, run_check
from assay.platform.cpu import cpu_model, notable_features
from support.small_packs import colour_dataset, colour_model, colour_pack
from support.verdict_samples import (
    DRIFTS,
    ORDERS,
    THRESHOLD,
    containments,
    cost_passes,
    cost_verdicts,
    drop_passes,
    passes,
)

SIZES = {
    "200 groups of 3": [3] * 200,
    "201 groups of 1 to 3": [1, 2, 3] * 67,
    "666 groups of 3": [3] * 666,
    "4 groups of 150": [150] * 4,
    "30 groups of 20": [20] * 30,
    "100 groups of 6": [6] * 100,
}
SMALL_WORK = 40  # convolutions of the small pack: some two milliseconds, so that a check is a second


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print("|", " | ".join(f"{cell:.1%}" if isinstance(cell, float) else str(cell) for cell in cells), "|", flush=True)


def simulate(runs: int) -> None:
    """Print the tables."""
    error = 3 * (0.05 * 0.95 / runs) ** 0.5
    print(f"share that passes; {runs} samples each: 5 % has a simulation error of {error:.2%} (three deviations)")
    print(f"\ntrue containment {THRESHOLD:.0%}, threshold {THRESHOLD:.0%}: a Pass is false")
    for images in (200, 600, 2000):
        row(f"{images} independent images", passes(containments(images, runs, [1] * images, THRESHOLD, 0)))
    for name, sizes in SIZES.items():
        shares = [passes(containments(5, runs, sizes, THRESHOLD, rho)) for rho in (0.0, 0.1, 0.2, 0.3)]
        row(f"{name}, correlation 0, 0.1, 0.2, 0.3", *shares)
    print("\npower: true containment against the same threshold, independent images")
    for contained in (0.985, 0.99, 0.995, 0.999):
        found = [passes(containments(6, runs, [1] * n, contained, 0)) for n in (200, 600, 2000)]
        row(f"{contained:.1%}", *found)
    print("\na drop of 20 permille against a limit of 20: a Pass is false; then no drop at all")
    for images in (200, 600, 2000):
        row(images, *(drop_passes(8, runs // 10, images, lost, 0.03, 20) for lost in (0.05, 0.03)))
    print("\ntrue cost ratio at the limit: a Pass is false; by drift and order")
    row("drift", *ORDERS)
    few = max(200, runs // 20)
    for drift in DRIFTS:
        found = [cost_verdicts(9, few, 1.0, drift=DRIFTS[drift], order=order) for order in ORDERS.values()]
        row(drift, *(f"{each['Pass'] / few:.1%} Pass, {each['Fail'] / few:.1%} Fail" for each in found))
    print(f"({few} samples each)\n\nthe same cost, limit 1100: should pass; then slow on some images: should not")
    row("noise of a call 1.5 %, 4 %, 8 %", *(cost_passes(10, few, 1.0, 1100, noise=n) for n in (0.015, 0.04, 0.08)))
    for share, slower in ((0.005, 50), (0.01, 25), (0.02, 10), (0.05, 5), (0.1, 3), (0.4, 2)):
        seen = cost_passes(11, few, 1.0, 1100, slow=share, slower=slower)
        row(f"{slower} times slower on {share:.1%} of images, {1 + share * (slower - 1):.2f} on average", seen)


def check(folder: Path, candidate: str, yardstick: str, dataset: str, images: int) -> tuple[str, int, int, int, str]:
    """One real check of two copies of one model; FP32 against FP32: the limit is 1100."""
    result = run_check(
        CheckRequest(
            candidate=Reference(str(folder / candidate)),
            yardstick=Reference(str(folder / yardstick)),
            dataset=Reference(str(folder / dataset)),
            cache_dir=folder / "cache",
            criteria=Criteria(min_top3_containment=0, min_top1_agreement=900),
            max_images=images,
        )
    )
    assert result.verdict != "Error", result.message
    low, high = result.cost_ratio_lower_permille or 0, result.cost_ratio_upper_permille or 0
    return result.verdict, low, high, result.noise_permille or 0, result.message


def repeat(name: str, times: int, once: Callable[[], tuple[str, int, int, int, str]]) -> None:
    """Print what many checks said."""
    found = [once() for _ in range(times)]
    verdicts = Counter(verdict for verdict, *_ in found)
    lows, highs, noises = ([figures[index] for figures in found] for index in (1, 2, 3))
    row(
        name, times, dict(verdicts), verdicts["Pass"] / times,
        f"lower {min(lows)} to {max(lows)}", f"upper {min(highs)} to {max(highs)}",
        f"noise median {statistics.median(noises):.0f}, most {max(noises)}",
    )  # fmt: skip
    for verdict, *_, message in found:
        if verdict != "Pass":
            print("   ", message)


def burn(_: int) -> None:
    """A neighbour that computes and walks over memory until it is ended."""
    data = list(range(3_000_000))
    while True:
        sum(data)
        data.reverse()


def itself(small: int, real: int, busy: bool) -> None:
    """Check models against copies of themselves."""
    neighbours = [multiprocessing.Process(target=burn, args=(n,), daemon=True) for n in range(2)] if busy else []
    print(f"{cpu_model()} ({', '.join(notable_features())}){', with two busy neighbours' if busy else ''}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in ("a", "b"):
            colour_pack(folder / f"{side}.tar", name=side, model=colour_model(work=SMALL_WORK))
        colour_dataset(folder / "colours.tar", 100, groups=100)
        build("efficientnet-lite0", folder / "net.tar")
        photos.build("photos", folder / "photos.tar")
        for neighbour in neighbours:
            neighbour.start()
        try:
            repeat("small pack, 100 images", small, partial(check, folder, "a.tar", "b.tar", "colours.tar", 100))
            repeat(
                "EfficientNet-Lite0, 60 images", real, partial(check, folder, "net.tar", "net.tar", "photos.tar", 60)
            )
        finally:
            for neighbour in neighbours:
                neighbour.terminate()
                neighbour.join()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("simulate", "itself"))
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--small", type=int, default=60)
    parser.add_argument("--real", type=int, default=10)
    parser.add_argument("--busy", action="store_true")
    asked = parser.parse_args()
    if asked.what == "simulate":
        simulate(asked.runs)
    else:
        itself(asked.small, asked.real, asked.busy)


if __name__ == "__main__":
    main()
