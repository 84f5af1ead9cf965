"""Breaking a valid file: bytes flipped, set, cut out, repeated, moved, spliced with another file, or cut off."""

import random
from collections.abc import Callable

INTERESTING = (0, 1, 2, 4, 8, 16, 64, 127, 128, 254, 255)
"""Bytes at the edges of what counts and lengths may be."""

MAX_GROWTH = 1 << 20  # a mutation that repeats must not make a file larger than what a test wants to read


def _somewhere(data: bytearray, rng: random.Random) -> int:
    """A position; every second time in the first kilobyte, where headers are."""
    return rng.randrange(min(len(data), 1024)) if rng.random() < 0.5 else rng.randrange(len(data))


def _flip(data: bytearray, rng: random.Random) -> None:
    data[_somewhere(data, rng)] ^= 1 << rng.randrange(8)


def _put(data: bytearray, rng: random.Random) -> None:
    data[_somewhere(data, rng)] = rng.choice(INTERESTING)


def _put_number(data: bytearray, rng: random.Random) -> None:
    """Two or four bytes, in either order: a length, an offset, a side."""
    width = rng.choice((2, 4))
    value = rng.choice((0, 1, 255, 65500, 65535, 1 << 20, 1 << 31, (1 << 32) - 1)) % (1 << 8 * width)
    at = _somewhere(data, rng)
    data[at : at + width] = value.to_bytes(width, rng.choice(("big", "little")))


def _cut_out(data: bytearray, rng: random.Random) -> None:
    at = _somewhere(data, rng)
    del data[at : at + rng.randint(1, 64)]


def _repeat(data: bytearray, rng: random.Random) -> None:
    at = _somewhere(data, rng)
    part = bytes(data[at : at + rng.randint(1, 256)])
    data[at:at] = part * min(rng.choice((1, 2, 50, 1000)), 1 + MAX_GROWTH // max(1, len(part)))


def _move(data: bytearray, rng: random.Random) -> None:
    at, to = _somewhere(data, rng), _somewhere(data, rng)
    part = bytes(data[at : at + rng.randint(1, 128)])
    data[to : to + len(part)] = part


def _cut_off(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


_MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip, _flip, _flip, _put, _put, _put_number, _put_number, _cut_out, _repeat, _move, _cut_off,
)  # fmt: skip


def mutated(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """A file broken in one to eight places; one in twenty continues as ``other`` does."""
    broken = bytearray(data)
    if rng.random() < 0.05:
        at = rng.randrange(len(broken))
        broken[at:] = other[min(at, len(other)) :]
    for _ in range(rng.randint(1, 8)):
        if not broken:
            break
        rng.choice(_MUTATIONS)(broken, rng)
    return bytes(broken)
