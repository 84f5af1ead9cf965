"""A real `assay-operator`, as a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from support.apiserver import OPERATOR, STARTED_S, ApiServer, eventually, free_port


class OperatorProcess:
    """A real `assay-operator`. `namespaces`: as its setting; empty for all. `url`: of a proxy before the API server."""

    def __init__(
        self,
        api: ApiServer,
        namespaces: str,
        folder: Path,
        url: str = "",
        settings: dict[str, object] | None = None,
        token: str = OPERATOR,
    ) -> None:
        self.port = free_port()
        self.log = folder / "operator.log"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "KUBECONFIG": str(api.kubeconfig(folder / "kubeconfig", token, url)),
            "HOME": str(folder),
            "ASSAY_OPERATOR_NAMESPACES": namespaces,
            "ASSAY_OPERATOR_PORT": str(self.port),
            **{f"ASSAY_OPERATOR_{name.upper()}": str(value) for name, value in (settings or {}).items()},
        }
        self._out = self.log.open("ab")
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name("assay-operator")], env=environment, stderr=self._out, stdout=self._out
        )

    def wait_until(self, path: str, wait_s: float = STARTED_S) -> None:
        """Wait until one of /livez and /readyz answers 200."""
        eventually(lambda: self.answers(path) == 200, f"{path} of the operator answers 200; see {self.log}", wait_s)

    def answers(self, path: str) -> int:
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}{path}").status_code
        except httpx.TransportError:
            return 0

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.port}/metrics").text

    def passes(self) -> float:
        """How often it has looked at a ModelVariant."""
        name = "assay_reconcile_duration_seconds_count"
        return float(next(line for line in self.metrics().splitlines() if line.startswith(name)).split()[1])

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._out.close()
        return code
