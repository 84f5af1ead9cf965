"""The service as a subprocess: it starts, is asked, its CPU time is read, and nothing of it stays."""

import os
import threading
from pathlib import Path

import pytest

from assay.bench.cores import Division, divide, on
from assay.bench.service import running, service_environment
from assay.bench.slowsink import slow_sink
from assay.bench.storage import IN_PATH
from assay.errors import BenchError
from support.small_packs import colour_pack


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/status").exists()


def test_it_answers_counts_its_cpu_time_and_is_gone_afterwards(colours, squares, monkeypatch):
    monkeypatch.setenv("ASSAY_DEADLINE", "a setting of the caller's shell that would end it")
    with running(colours / "pack.tar", {"cpu_limit_millicores": 1000, "cache_bytes": 1 << 20}) as service:
        before, loop_before = service.cpu_s(), service.loop_cpu_s()
        first, again = service.classify(squares[0]), service.classify(squares[0])
        assert first.body != b""
        assert {"decode", "infer", "respond"} <= set(first.stages_ms)
        assert set(again.stages_ms) == {"receive", "cache", "respond"}
        assert 0 < service.loop_cpu_s() - loop_before < service.cpu_s() - before
        assert service.metrics()["assay_cache_hits_total"] == 1
        with pytest.raises(BenchError, match="answered 415"):
            service.classify(b"no image")
    assert not alive(service.pid)


def test_its_own_core_is_its_own(colours):
    core = min(os.sched_getaffinity(0))
    mine = os.sched_getaffinity(0)
    with running(colours / "pack.tar", {"cpu_limit_millicores": 1000}, frozenset({core})) as service:
        for thread in Path(f"/proc/{service.pid}/task").iterdir():
            assert os.sched_getaffinity(int(thread.name)) == {core}
    assert os.sched_getaffinity(0) == mine


def test_what_ends_before_it_is_ready_is_told_with_its_reason(tmp_path):
    colour_pack(tmp_path / "pack.tar", requires_cpu=("no-such-feature",))
    with pytest.raises(BenchError, match=r"ended with 78 before it was ready; .*no-such-feature"):
        running(tmp_path / "pack.tar").__enter__()


def test_an_error_within_the_block_leaves_nothing_running(colours):
    with pytest.raises(ZeroDivisionError), running(colours / "pack.tar") as service:
        raise ZeroDivisionError
    assert not alive(service.pid)


def test_settings_are_its_own(colours, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE_BYTES", "1")
    found = service_environment(colours / "pack.tar", {"workers": 2})
    assert found["ASSAY_WORKERS"] == "2"
    assert "ASSAY_CACHE_BYTES" not in found
    assert found["ASSAY_MODEL_DIGEST"].startswith("sha256:")


def test_in_the_path_an_answer_leaves_once_its_objects_are_written(colours, squares, tmp_path):
    with running(colours / "pack.tar", {"store_uri": tmp_path.as_uri()}, program=IN_PATH) as service:
        answered = service.classify(squares[0])
        written = {path.suffix: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {".jpg": squares[0], ".json": answered.body}


def test_in_the_path_a_slow_store_is_waited_for_twice(colours, squares):
    pause_s = 0.05
    with (
        slow_sink(pause_s * 1000) as environment,
        running(colours / "pack.tar", {"store_uri": "s3://bench"}, None, environment, IN_PATH) as service,
    ):
        assert service.classify(squares[0]).seconds >= 2 * pause_s


def test_in_the_path_a_dead_store_fails_the_request(colours, squares):
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    with (
        running(colours / "pack.tar", {"store_uri": "s3://bench"}, None, nowhere | keys, IN_PATH) as service,
        pytest.raises(BenchError, match="answered 500"),
    ):
        service.classify(squares[0])


def test_cores_are_divided_where_there_are_enough():
    cores = sorted(os.sched_getaffinity(0))
    assert divide(1000 * len(cores)) == Division(None, None)
    found = divide(1)
    assert found == (Division(None, None) if len(cores) == 1 else Division(frozenset(cores[:1]), frozenset(cores[1:])))


def test_cores_are_given_back():
    before = os.sched_getaffinity(0)
    seen = []

    def look():
        with on(frozenset({min(before)})):
            seen.append(os.sched_getaffinity(0))
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [{min(before)}, before]
