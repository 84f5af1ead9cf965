"""Large pictures take turns, so that their memory is bounded and others find a worker."""

import asyncio

import pytest

from assay.serving.pictures import PictureMemory
from assay.vision.errors import TooManyPixels
from assay.vision.header import ImageHeader

HEADER = ImageHeader("PNG", 4000, 3000, progressive=False, orientation=1)


def test_picture_beyond_the_limit_is_refused_with_the_way_out():
    memory = PictureMemory(48 << 20, workers=2)
    with pytest.raises(TooManyPixels, match=r"takes 49 MiB of memory; 48 are allowed: scale it down, or send it as a"):
        memory.check(HEADER, 49 << 20)


def test_small_pictures_need_no_turn():
    memory = PictureMemory(48 << 20, workers=2)
    assert not memory.is_large(6 << 20)
    assert memory.is_large(7 << 20)


@pytest.mark.parametrize(("workers", "together"), [(1, 1), (2, 1), (3, 2), (9, 4)])
def test_one_worker_is_left_to_others_and_the_bytes_are_bounded(workers, together):
    async def main() -> int:
        memory, inside, most = PictureMemory(40, workers), 0, 0

        async def decode() -> None:
            nonlocal inside, most
            await memory.enter(10)
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            memory.leave(10)

        await asyncio.gather(*(decode() for _ in range(30)))
        return most

    assert asyncio.run(main()) == together


def test_turns_come_in_order_and_a_cancelled_one_is_passed_on():
    async def main() -> list[str]:
        memory, served = PictureMemory(10, 2), []

        async def decode(name: str) -> None:
            await memory.enter(10)
            served.append(name)
            await asyncio.sleep(0)
            memory.leave(10)

        tasks = [asyncio.create_task(decode(name)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await decode("e")
        return served

    assert asyncio.run(main()) == ["a", "c", "d", "e"]


def test_turn_that_comes_while_it_is_cancelled_is_given_back():
    async def main() -> None:
        memory = PictureMemory(10, 2)
        await memory.enter(10)
        waiting = asyncio.create_task(memory.enter(10))
        await asyncio.sleep(0)
        memory.leave(10)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(5):
            await memory.enter(10)

    asyncio.run(main())
