"""The arrivals of the load tests are a Poisson process: shown on what k6 itself computes."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

K6 = Path(sys.executable).parent / "k6"

PRINT_TIMES = """
import {{ arrivals }} from '{root}/k6/lib/arrivals.js';
export const options = {{ iterations: 1 }};
const times = arrivals({{ rate: {rate}, seconds: {seconds}, seed: {seed} }});
export default function () {{}}
export function handleSummary() {{ return {{ stdout: JSON.stringify(times) }}; }}
"""


def k6_arrivals(root: Path, folder: Path, *, rate: float, seconds: float, seed: int) -> list[float]:
    script = folder / "print.js"
    script.write_text(PRINT_TIMES.format(root=root, rate=rate, seconds=seconds, seed=seed))
    done = subprocess.run(
        [K6, "run", "--quiet", "--no-usage-report", script], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_gaps_between_arrivals_are_exponential(root, tmp_path):
    rate = 50.0
    times = k6_arrivals(root, tmp_path, rate=rate, seconds=200, seed=7)
    gaps = sorted(later - earlier for earlier, later in zip([0.0, *times], times, strict=False))
    n = len(gaps)
    distance = max(
        max(abs((i + 1) / n - (1 - math.exp(-rate * gap))), abs(i / n - (1 - math.exp(-rate * gap))))
        for i, gap in enumerate(gaps)
    )
    # Kolmogorov-Smirnov at the 1 % level: 1.63 / sqrt(n) for large n.
    assert distance < 1.63 / math.sqrt(n)
    # The count is Poisson with mean rate x seconds: within four standard deviations.
    assert abs(n - rate * 200) < 4 * math.sqrt(rate * 200)


def test_gaps_do_not_depend_on_the_gap_before(root, tmp_path):
    times = k6_arrivals(root, tmp_path, rate=50, seconds=200, seed=11)
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    lagged = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(gaps)) / (len(gaps) - 1)
    # Independent gaps have a lag-1 correlation of about 0 with standard deviation 1 / sqrt(n).
    assert abs(lagged / variance) < 4 / math.sqrt(len(gaps))


def test_same_seed_gives_the_same_arrivals_and_another_seed_others(root, tmp_path):
    one = k6_arrivals(root, tmp_path, rate=20, seconds=10, seed=1)
    assert one == k6_arrivals(root, tmp_path, rate=20, seconds=10, seed=1)
    assert one != k6_arrivals(root, tmp_path, rate=20, seconds=10, seed=2)


@pytest.mark.parametrize(("rate", "seconds"), [(0, 10), (-1, 10), (10, 0)])
def test_a_run_without_arrivals_is_refused(root, tmp_path, rate, seconds):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        k6_arrivals(root, tmp_path, rate=rate, seconds=seconds, seed=1)
    assert "RATE and SECONDS must be above 0" in refused.value.stderr
