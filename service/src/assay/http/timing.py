"""``Server-Timing`` (https://www.w3.org/TR/server-timing/): where the milliseconds of an answer went."""

import time

from assay.serving.request import Answer
from assay.telemetry import STAGES


def server_timing(answer: Answer) -> str:
    """Milliseconds of each stage that there was; ``respond`` ends where this header is written."""
    stages = {**answer.stages, "respond": time.perf_counter() - answer.finished}
    return ", ".join(f"{name};dur={stages[name] * 1000:.3f}" for name in STAGES if name in stages)
