"""Whose check begins next."""

import asyncio

from assay_operator.turns import Turns

FIRST, SECOND, ELSEWHERE = ("ns", "first"), ("ns", "second"), ("other", "first")


def test_who_waits_longest_is_called_first_and_keeps_the_place_when_it_asks_again():
    turns = Turns()
    for key in (FIRST, SECOND, FIRST, ELSEWHERE):
        turns.wait(key)
    assert [turns.call("ns") for _ in range(3)] == [FIRST, SECOND, None]
    assert turns.call("other") == ELSEWHERE


def test_who_left_is_not_called():
    turns = Turns()
    turns.wait(FIRST)
    turns.leave(FIRST)
    turns.leave(SECOND)
    assert turns.call("ns") is None


def test_one_pass_at_a_time_counts_in_a_namespace():
    async def play():
        turns, counted = Turns(), []

        async def count(namespace, number):
            async with turns.counting(namespace):
                counted.append(("began", namespace, number))
                await asyncio.sleep(0)
                counted.append(("ended", namespace, number))

        await asyncio.gather(count("ns", 1), count("ns", 2), count("other", 3))
        mine = [entry for entry in counted if entry[1] == "ns"]
        assert [entry[0] for entry in mine] == ["began", "ended"] * 2
        assert counted.index(("began", "other", 3)) < counted.index(("ended", "ns", 1))

    asyncio.run(play())
