"""The chart as the tests see it: rendered by the real Helm, object by object."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# Rendering asks no cluster, so Helm is told what it would find: a version like that of k8s/one-node.
KUBE_VERSION = "1.34.0"

# The sets of values in the chart's ci/.
CI_VALUES = ("cluster", "default", "own-model", "production", "service-only")


class RenderError(Exception):
    """Helm refused; the text is what it said."""


def find_helm(root: Path) -> str:
    """Return the path of Helm: $HELM, the PATH, .cluster/bin, or where k8s/one-node builds its programs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folders = [os.environ["PATH"], str(root / ".cluster" / "bin"), str(cache / "one-node-kube" / "bin")]
    found = os.environ.get("HELM") or shutil.which("helm", path=os.pathsep.join(folders))
    if not found:
        raise FileNotFoundError("there is no helm on the PATH, in .cluster/bin or in the cache: run `make cluster`")
    return found


@dataclass(frozen=True)
class Chart:
    """The chart in a folder, and the Helm that renders it."""

    folder: Path
    helm: str

    def render(
        self, *arguments: str, release: str = "assay", namespace: str = "assay", values: Path | None = None
    ) -> "Objects":
        """Render with the defaults, a file of values, and further arguments of `helm template`."""
        command = [self.helm, "template", release, str(self.folder), "--namespace", namespace]
        command += ["--kube-version", KUBE_VERSION, *arguments]
        if values:
            command += ["--values", str(values)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RenderError(result.stderr)
        return Objects([item for item in yaml.safe_load_all(result.stdout) if item])

    def lint(self, values: Path) -> str:
        """Run `helm lint --strict` with a file of values; return what it printed."""
        command = [self.helm, "lint", "--strict", str(self.folder), "--values", str(values)]
        result = subprocess.run([*command, "--kube-version", KUBE_VERSION], capture_output=True, text=True, check=False)
        if result.returncode:
            raise RenderError(result.stdout + result.stderr)
        return result.stdout


class Objects(list[dict[str, Any]]):
    """Rendered objects."""

    def names(self) -> set[tuple[str, str]]:
        """Return (kind, name) of each; fails if one occurs twice."""
        pairs = [(item["kind"], item["metadata"]["name"]) for item in self]
        assert len(pairs) == len(set(pairs)), "two objects of one kind and name"
        return set(pairs)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return the object of that kind and name."""
        (found,) = (item for item in self if (item["kind"], item["metadata"]["name"]) == (kind, name))
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the objects of a kind."""
        return [item for item in self if item["kind"] == kind]

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pod templates by the name of what holds them, the test pod included."""
        found = {item["metadata"]["name"]: item["spec"]["template"] for item in self.of("Deployment")}
        return found | {item["metadata"]["name"]: item for item in self.of("Pod")}

    def container(self, deployment: str = "assay") -> dict[str, Any]:
        """Return the one container of a Deployment."""
        (only,) = self.get("Deployment", deployment)["spec"]["template"]["spec"]["containers"]
        return dict(only)

    def environment(self, deployment: str = "assay") -> dict[str, Any]:
        """Return the environment of that container: texts, and mappings for what comes from elsewhere."""
        return {item["name"]: item.get("value", item.get("valueFrom")) for item in self.container(deployment)["env"]}
