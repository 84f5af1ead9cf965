"""Images that are under way together go through the model together, on one thread of its own.

Decoding stays on the workers: a worker puts its picture here and takes the next request; it never waits for an answer,
only for room. The thread takes what there is. It waits for more only while more is on its way, and for no longer than
the window: a lone request never waits.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.inference.engine import Engine
from assay.serving.errors import DeadlineExceededError
from assay.serving.executor import Reply
from assay.serving.stages import Classified, Prepared, rank
from assay.telemetry import Telemetry

_BATCHES_WAITING = 2
"""Batches that may wait. With one computed and two waiting the thread never lacks work; more would only hold memory,
0.15 MB a picture, while the same requests can wait as encoded files for a worker."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A picture that waits for the model. ``leave`` is called when it waits no longer, whatever becomes of it.

    ``deadline``: `time.perf_counter` after which nobody wants the answer.
    """

    prepared: Prepared
    top_k: int
    deadline: float
    leave: Callable[[], None]
    reply: Reply[Classified]


class Batcher:
    """The queue of one engine, and the thread that works it off.

    Whoever will put a picture says so before by `expect`, and takes it back by `forgo` when there will be none. The
    thread is a daemon like the workers; every reply is settled, whatever happens to a batch.
    """

    def __init__(self, engine: Engine, batch_max: int, window_s: float, telemetry: Telemetry) -> None:
        self._engine = engine
        self._max = batch_max
        self._window_s = window_s
        self._sizes = telemetry.batch_size
        self._queue: deque[Waiting] = deque()
        self._expected = 0
        self._closed = False
        lock = threading.Lock()
        self._changed = threading.Condition(lock)  # awaited by the thread
        self._room = threading.Condition(lock)  # awaited by workers
        self._thread = threading.Thread(target=self._work, name="batcher", daemon=True)
        self._thread.start()

    def expect(self) -> None:
        """A picture is on its way: waiting for it may be worth it."""
        with self._changed:
            self._expected += 1

    def forgo(self) -> None:
        """A picture that was expected will not come: it was too late, or broken."""
        with self._changed:
            self._expected -= 1
            self._changed.notify()

    def put(self, waiting: Waiting) -> None:
        """Hand over a picture that was expected; blocks while as many wait as may."""
        with self._room:
            self._expected -= 1
            while len(self._queue) >= _BATCHES_WAITING * self._max and not self._closed:
                self._room.wait()
            if self._closed:
                raise RuntimeError("the batcher was closed before all requests had come")
            self._queue.append(waiting)
            self._changed.notify()

    def close(self) -> None:
        """Let the thread end once it has worked off what waits; does not wait for it."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            self._room.notify_all()

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._serve(batch)
            except BaseException as error:  # a thread that ended would leave every later request without an answer
                for waiting in batch:
                    waiting.reply.fail(error)
            del batch  # keeps no picture while waiting for the next

    def _next(self) -> list[Waiting]:
        """The next batch; empty when there will be none."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return []
                self._changed.wait()
            closes = self._queue[0].prepared.finished + self._window_s
            while self._expected > 0 and len(self._queue) < self._max and not self._closed:
                left = closes - time.perf_counter()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch = [self._queue.popleft() for _ in range(min(self._max, len(self._queue)))]
            self._room.notify_all()
        return batch

    def _serve(self, batch: list[Waiting]) -> None:
        begun = time.perf_counter()
        for waiting in batch:
            waiting.leave()
            if begun > waiting.deadline:
                waiting.reply.fail(DeadlineExceededError("The request waited for the model beyond its deadline."))
        wanted = [waiting for waiting in batch if begun <= waiting.deadline and not waiting.reply.abandoned]
        if wanted:
            self._infer(wanted, begun, 0.0)

    def _infer(self, batch: list[Waiting], begun: float, lost_cpu_s: float) -> None:
        """Compute a batch. ``lost_cpu_s``: CPU seconds that each of its images has cost in the model before."""
        first = batch[0].prepared.pixels[None]
        cpu_started = time.thread_time()
        try:
            logits = self._engine.infer(
                first if len(batch) == 1 else np.stack([waiting.prepared.pixels for waiting in batch])
            )
        except Exception as error:
            if len(batch) == 1:
                batch[0].reply.fail(error)
                return
            # Which image the model fails on is not told: each alone, so that only that one fails.
            lost_cpu_s += (time.thread_time() - cpu_started) / len(batch)
            for waiting in batch:
                self._infer([waiting], begun, lost_cpu_s)
            return
        inferred = time.perf_counter()
        share_cpu_s = (time.thread_time() - cpu_started) / len(batch) + lost_cpu_s
        self._sizes.observe(len(batch))
        for waiting, row in zip(batch, logits, strict=True):
            prepared = waiting.prepared
            prepared.stages["batch_wait"] = begun - prepared.finished
            prepared.stages["infer"] = inferred - begun
            waiting.reply.settle(rank(row, waiting.top_k, prepared, share_cpu_s, inferred))
