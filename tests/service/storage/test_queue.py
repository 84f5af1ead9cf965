"""The queue to the sink: what it takes, what it drops and counts, what it repeats, and how it ends."""

import asyncio
import json
import threading
import time

import pytest

from assay.storage import queue
from assay.storage.queue import OVERHEAD_BYTES, StoreQueue
from assay.storage.sinks import Sink, SinkError
from assay.telemetry import Telemetry
from support.server import wait_until

IMAGE = b"\xff\xd8\xff" + bytes(997)
RESULT = b'{"request_id": "a"}'
ANSWER = len(IMAGE) + len(RESULT) + OVERHEAD_BYTES


class Gate(Sink):
    """A folder that takes nothing while it is shut, nor ever an object with a word in its name or its bytes."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.open = threading.Event()
        self.never = b"\0never"
        self.attempts = 0

    async def put(self, name: str, data: bytes) -> None:
        self.attempts += 1
        if not self.open.is_set() or self.never in data:
            raise SinkError("shut")
        await super().put(name, data)


@pytest.fixture
def gate(tmp_path):
    return Gate(tmp_path.as_uri())


@pytest.fixture
def telemetry():
    return Telemetry()


@pytest.fixture
def make(gate, telemetry, monkeypatch):
    """Makes queues with short pauses, and ends them."""
    monkeypatch.setattr(queue, "FIRST_PAUSE_S", 0.005)
    monkeypatch.setattr(queue, "LONGEST_PAUSE_S", 0.02)
    made = []

    def make(answers=100):
        made.append(StoreQueue(gate, answers * ANSWER, telemetry))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def counted(telemetry):
    def counted(name):
        return telemetry.registry.get_sample_value(f"assay_store_{name}_total")

    return counted


def dropped(telemetry, reason):
    return telemetry.registry.get_sample_value("assay_store_dropped_total", {"reason": reason})


def files(tmp_path):
    return sorted(path for path in tmp_path.rglob("*") if path.is_file())


def test_answer_is_stored_as_image_and_result_of_one_name(make, gate, tmp_path, counted):
    gate.open.set()
    store = make()
    store.offer("a", IMAGE, RESULT)
    wait_until("the answer to be stored", lambda: counted("written") == 1)
    image, result = files(tmp_path)
    assert (image.suffix, result.suffix) == (".jpg", ".json")
    assert image.stem == result.stem
    assert image.read_bytes() == IMAGE
    assert json.loads(result.read_bytes()) == {"request_id": "a"}
    assert store.held_bytes == 0


def test_the_newest_is_dropped_when_the_queue_is_full(make, gate, tmp_path, telemetry, counted):
    store = make(answers=5)
    for number in range(8):
        store.offer(f"n{number}", IMAGE, RESULT)
    assert store.held_bytes == 5 * ANSWER
    assert dropped(telemetry, "QueueFull") == 3
    gate.open.set()
    wait_until("five answers", lambda: counted("written") == 5)
    stored = {path.stem.split("-")[1] for path in files(tmp_path)}
    assert stored == {"n0", "n1", "n2", "n3", "n4"}


def test_answer_larger_than_the_queue_is_dropped(make, telemetry):
    store = make(answers=1)
    store.offer("a", IMAGE + b"1", RESULT)
    assert (store.held_bytes, dropped(telemetry, "QueueFull")) == (0, 1)


def test_client_cannot_overwrite_by_its_request_id(make, gate, tmp_path, counted):
    gate.open.set()
    store = make()
    for number in range(20):
        store.offer("mine", IMAGE, b"%d" % number)
    wait_until("all of them", lambda: counted("written") == 20)
    assert {path.read_bytes() for path in files(tmp_path) if path.suffix == ".json"} == {b"%d" % n for n in range(20)}


def test_nothing_is_given_up_while_the_sink_takes_nothing(make, gate, counted, telemetry):
    store = make()
    store.offer("a", IMAGE, RESULT)
    wait_until("many attempts", lambda: gate.attempts > 2 * queue.ATTEMPTS)
    assert (store.held_bytes, dropped(telemetry, "SinkFailed")) == (ANSWER, 0)
    gate.open.set()
    wait_until("the answer to be stored", lambda: counted("written") == 1)


def test_answer_that_the_sink_never_takes_does_not_stand_in_the_way(make, gate, counted, telemetry):
    gate.open.set()
    store = make()
    for _ in range(2 * queue.WRITERS):
        store.offer("bad", gate.never, RESULT)
    offered = 0

    def all_given_up():
        nonlocal offered
        store.offer("good", IMAGE, RESULT)
        offered += 1
        return dropped(telemetry, "SinkFailed") == 2 * queue.WRITERS

    wait_until("the bad ones to be given up", all_given_up)
    wait_until("the good ones", lambda: counted("written") + dropped(telemetry, "QueueFull") == offered)
    assert counted("written") > 0
    assert store.held_bytes == 0


def test_flush_writes_what_waits_and_takes_nothing_more(make, gate, counted, telemetry):
    store = make()
    for _ in range(50):
        store.offer("a", IMAGE, RESULT)
    threading.Timer(0.1, gate.open.set).start()
    assert asyncio.run(store.flush(30)) == 0
    assert counted("written") == 50
    store.offer("late", IMAGE, RESULT)
    assert dropped(telemetry, "DrainDeadline") == 1


def test_flush_does_not_wait_out_a_long_pause(make, gate, counted, monkeypatch):
    monkeypatch.setattr(queue, "FIRST_PAUSE_S", 600)
    monkeypatch.setattr(queue, "LONGEST_PAUSE_S", 600)
    store = make()
    store.offer("a", IMAGE, RESULT)
    wait_until("a first attempt", lambda: gate.attempts == 1)
    gate.open.set()
    assert asyncio.run(store.flush(30)) == 0
    assert counted("written") == 1


def test_flush_of_a_dead_sink_ends_at_its_deadline_and_counts_the_loss(make, telemetry):
    store = make()
    for _ in range(50):
        store.offer("a", IMAGE, RESULT)
    began = time.monotonic()
    assert asyncio.run(store.flush(0.2)) == 50
    assert 0.2 <= time.monotonic() - began < 5
    assert dropped(telemetry, "DrainDeadline") == 50
    assert asyncio.run(store.flush(30)) == 0  # it has ended


def test_fault_in_one_answer_ends_no_writer(make, gate, counted, telemetry, monkeypatch):
    monkeypatch.setattr(queue, "WRITERS", 1)
    gate.open.set()
    store = make()
    store.offer(None, IMAGE, RESULT)  # no request has such an id
    store.offer("a", IMAGE, RESULT)
    wait_until("the one after it", lambda: counted("written") == 1)
    assert dropped(telemetry, "SinkFailed") == 1
