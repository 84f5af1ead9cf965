"""A real Prometheus, and a k6 that writes to it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from pictures.source import Series, Source
from support.apiserver import free_port
from support.server import wait_until

SCRAPE_S = 1
RATE_INTERVAL = "5s"  # four scrape intervals, and one for a machine that is busy
K6 = Path(sys.executable).with_name("k6")
SMOKE = Path(__file__).resolve().parents[2] / "k6" / "scenarios" / "smoke.js"


class Prometheus:
    """Scrapes what it is told of, once a second, and evaluates rules as often."""

    def __init__(self, folder: Path, rules: str) -> None:
        self._folder = folder
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._targets: dict[str, dict] = {}
        self._tell()
        (folder / "rules.yaml").write_text(rules)
        config = {
            "global": {
                "scrape_interval": f"{SCRAPE_S}s",
                "scrape_timeout": "1s",
                "evaluation_interval": f"{SCRAPE_S}s",
            },
            "rule_files": [str(folder / "rules.yaml")],
            "scrape_configs": [
                {
                    "job_name": "assay",
                    "honor_labels": True,  # as the chart's PodMonitor of the operator says
                    "file_sd_configs": [{"files": [str(folder / "targets.json")], "refresh_interval": "1s"}],
                }
            ],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yaml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--web.enable-remote-write-receiver",  # for k6
                "--enable-feature=exemplar-storage",
                "--query.lookback-delta=4s",  # what was not seen for four scrapes is gone, k6's series among it
            ],
            stdout=self._log,
            stderr=self._log,
        )
        self.started = time.time()
        wait_until(f"Prometheus to be ready; see {folder}/prometheus.log", self._ready)

    def _ready(self) -> bool:
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()[-2000:]
        try:
            return httpx.get(f"{self.url}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def _tell(self) -> None:
        targets = [{"targets": [address], "labels": labels} for address, labels in self._targets.items()]
        new = self._folder / "targets.json.new"
        new.write_text(json.dumps(targets))
        new.rename(self._folder / "targets.json")  # never read half written

    def scrape(self, address: str, **labels: str) -> None:
        """Scrape `host:port` from now on, with the labels that a PodMonitor would give; wait for the first sample."""
        self._targets[address] = labels
        self._tell()
        wait_until(f"{labels} to be scraped", lambda: self.now(f'up{{pod="{labels["pod"]}"}} == 1'))

    def forget(self, address: str) -> None:
        """Scrape it no more."""
        del self._targets[address]
        self._tell()

    def source(self, start: float, end: float, step_s: float = 1.0) -> Source:
        """What panels would show of a range."""
        return Source(self.url, start, end, step_s, RATE_INTERVAL, {})

    def now(self, expr: str) -> Sequence[Series]:
        """An expression, now."""
        at = time.time()
        return self.source(at, at).instant(expr)

    def exemplars(self, expr: str, start: float, end: float) -> list[dict]:
        """Exemplars of the series in an expression, as Grafana asks for them: each with its series' labels."""
        asked = {"query": self.source(start, end).filled(expr), "start": start, "end": end}
        told = httpx.get(f"{self.url}/api/v1/query_exemplars", params=asked).raise_for_status().json()["data"]
        return [{**one, "series": group["seriesLabels"]} for group in told for one in group["exemplars"]]

    def wait_for(self, expr: str, what: str, timeout_s: float = 60) -> None:
        """Wait until an expression has a value."""
        wait_until(what, lambda: self.now(expr), timeout_s)

    def wait_firing(self, alert: str, timeout_s: float = 60) -> None:
        """Wait until an alert fires."""
        self.wait_for(f'ALERTS{{alertname="{alert}",alertstate="firing"}}', f"{alert} to fire", timeout_s)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


@contextmanager
def prometheus(folder: Path, rules: str) -> Iterator[Prometheus]:
    """A running one."""
    started = Prometheus(folder, rules)
    try:
        yield started
    finally:
        started.stop()


def load(server_url: str, prometheus_url: str, images: Sequence[Path], rate: float, seconds: float) -> dict:
    """An open-loop run of k6 that writes to Prometheus; its summary."""
    settings = {
        "URL": server_url,
        "RATE": rate,
        "SECONDS": seconds,
        "IMAGES": ",".join(map(str, images)),
        "K6_PROMETHEUS_RW_SERVER_URL": f"{prometheus_url}/api/v1/write",
        "K6_PROMETHEUS_RW_TREND_STATS": "p(50),p(95),p(99),max",
        "K6_PROMETHEUS_RW_PUSH_INTERVAL": f"{SCRAPE_S}s",
    }
    done = subprocess.run(
        [K6, "run", "--quiet", "--no-usage-report", "--out=experimental-prometheus-rw", "--tag=testid=story", SMOKE],
        env={**os.environ, **{name: str(value) for name, value in settings.items()}},
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-2000:]
    return json.loads(lines[-1])
