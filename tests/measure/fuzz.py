"""Fuzz the way from bytes to pixels for so many minutes: ``python tests/measure/fuzz.py --minutes 10 --seed 1``.

Hypothesis draws a valid file and a generator of mutations; a file may only give pixels or an error of
`assay.vision.errors`, within `SECONDS` and `MEGABYTES`, and nothing may be written to stderr. Every round has a seed of
its own, which is printed; a fault is shrunk and printed with it.
"""

import argparse
import collections
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from assay.vision.decode import decode, picture_bytes
from assay.vision.errors import ImageError, TooManyPixels
from assay.vision.header import read_header
from assay.vision.preprocess import preprocess
from support.corpus.mutation import mutated
from support.corpus.seeds import seeds
from support.geometry import Wanted

SECONDS = 3.0
"""CPU seconds of one file: 16 megapixels of the dearest format take 0.5 here, and the machine may be twice as slow."""
MEGABYTES = 60
"""Peak of memory above what there was: 48 MiB for the picture, the rest for the resize and copies of the file."""
LIMIT_BYTES = 48 << 20
EXAMPLES = 500  # of one round
outcomes: collections.Counter[str] = collections.Counter()
slowest = 0.0
tallest = 0


def _peak_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _answer(data: bytes) -> str:
    wanted = Wanted()
    try:
        header = read_header(data)
        if picture_bytes(header, wanted) > LIMIT_BYTES:
            raise TooManyPixels("beyond the memory for pictures")
        pixels = preprocess(decode(data, header, wanted), wanted, header.upright_size, header.decoded_orientation)
    except ImageError as error:
        return error.code
    assert pixels.shape == (224, 224, 3)
    return "pixels"


def _one(data: bytes) -> None:
    global slowest, tallest
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, started = _peak_kb(), time.thread_time()
    code = _answer(data)
    seconds, rise = time.thread_time() - started, _peak_kb() - before
    outcomes[code] += 1
    slowest, tallest = max(slowest, seconds), max(tallest, rise)
    assert seconds < SECONDS, f"{seconds:.1f} CPU seconds"
    assert rise < MEGABYTES << 10, f"{rise >> 10} MiB"


def _round(seed: int) -> None:
    names = sorted(seeds())

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(st.sampled_from(names), st.sampled_from(names), st.integers(0, 2**32 - 1))
    def run(name: str, other: str, mutation: int) -> None:
        _one(mutated(seeds()[name], seeds()[other], random.Random(mutation)))

    run()


def main() -> int:
    """Run until the time is over; 1 where a file did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    ends, rounds, failed = time.monotonic() + given.minutes * 60, 0, False
    with tempfile.TemporaryFile() as noise:
        real = os.dup(2)
        os.dup2(noise.fileno(), 2)
        try:
            while time.monotonic() < ends:
                _round(given.seed + rounds)
                rounds += 1
        except BaseException as error:
            failed = True
            print(f"seed {given.seed + rounds}: {error!r} {getattr(error, '__notes__', '')}")
        finally:
            os.dup2(real, 2)
        noise.seek(0)
        written = noise.read()
    print(f"seeds {given.seed} to {given.seed + rounds - 1}, {sum(outcomes.values())} files: {dict(outcomes)}")
    print(f"slowest {slowest:.2f} CPU s, highest rise {tallest >> 10} MiB")
    print(f"{len(written)} bytes on stderr {written[:500]!r}")
    return 1 if failed or written else 0


if __name__ == "__main__":
    sys.exit(main())
