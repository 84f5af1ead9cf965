"""The kinds of cluster that can be made here: kind where Docker runs, else k8s/one-node."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from local_cluster.tools import FOLDER, ROOT, ToolError, capture, run, succeeds, which


@dataclass(frozen=True)
class Image:
    """An image that is built here: its full name, the Dockerfile under the project's root, and the stage in it."""

    name: str
    dockerfile: str
    stage: str


def version() -> str:
    """Return the version that the release's images carry: the chart's appVersion."""
    return _find(r'^appVersion: *"?([^"\s]+)', "charts/assay/Chart.yaml")


def _find(pattern: str, file: str) -> str:
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    if not found:
        raise ToolError(f"{file} has no line like {pattern}")
    return found[1]


def release_images() -> tuple[Image, ...]:
    """Return the images that the chart installs."""
    return tuple(
        Image(f"localhost/assay-{stage}:{version()}", "Dockerfile", stage) for stage in ("service", "operator")
    )


def load_image() -> Image:
    """Return the image of the load tests, which has k6's own version."""
    return Image(f"localhost/k6:{_find(r'^k6==([0-9.]+)', 'requirements/load.txt')}", "k6/Dockerfile", "")


class Provider(Protocol):
    """What makes clusters, and gives images to them."""

    name: str

    def running(self) -> bool:
        """Return whether its cluster is there."""
        ...

    def start(self, kubeconfig: Path) -> None:
        """Start its cluster, and write how to reach it."""
        ...

    def delete(self) -> None:
        """Stop its cluster and forget it."""
        ...

    def build(self, image: Image) -> str:
        """Build an image; return its id."""
        ...

    def load(self, image: Image) -> None:
        """Give an image to the cluster."""
        ...


class OneNode:
    """k8s/one-node: needs root, Debian and Go."""

    name = "one-node"
    _state = Path("/var/lib/one-node-kube")
    _command = ROOT / "k8s/one-node/cluster"

    def running(self) -> bool:
        """Return whether its bridge is there: from `up` to `down`, whatever became of a daemon meanwhile."""
        return Path("/sys/class/net/onk0").exists()

    def start(self, kubeconfig: Path) -> None:
        """Start it, and link the tools that were built with it: Debian's kubectl may be years older."""
        run(self._command, "up")
        kubeconfig.write_text((self._state / "kubeconfig").read_text())
        binaries = capture(self._command, "env").partition("PATH=")[2].partition(":")[0]
        (FOLDER / "bin").mkdir(exist_ok=True)
        for tool in ("kubectl", "helm"):
            link = FOLDER / "bin" / tool
            link.unlink(missing_ok=True)
            link.symlink_to(Path(binaries) / tool)

    def delete(self) -> None:
        """Stop it and remove its state; the built programs and buildah's images stay for the next one."""
        run(self._command, "down", "--delete")

    def build(self, image: Image) -> str:
        """Build with buildah, over a stand-in of the base image (no image can be pulled where this runs)."""
        run(self._command, "base-image", "--if-missing")
        stage = ("--target", image.stage) if image.stage else ()
        run(self._command, "image-build", ROOT, "--file", ROOT / image.dockerfile, *stage, "--tag", image.name)
        return capture("buildah", "inspect", "--type=image", "--format={{.FromImageID}}", image.name).strip()

    def load(self, image: Image) -> None:
        """Import it into the node's containerd."""
        run(self._command, "load", image.name)


class Kind:
    """kind: needs a Docker daemon, the `kind` command, kubectl and helm."""

    name = "kind"
    cluster = "assay"

    def running(self) -> bool:
        """Return whether kind knows a cluster of that name."""
        return self.cluster in capture("kind", "get", "clusters").split()

    def start(self, kubeconfig: Path) -> None:
        """Create it where it is not there yet, and write its kubeconfig."""
        if missing := [tool for tool in ("kubectl", "helm") if not which(tool)]:
            raise ToolError(f"{' and '.join(missing)} must be on the PATH: install it, then run this again")
        if not self.running():
            run("kind", "create", "cluster", f"--config={ROOT}/k8s/kind.yaml", "--kubeconfig", kubeconfig, "--wait=2m")
        kubeconfig.write_text(capture("kind", "get", "kubeconfig", f"--name={self.cluster}"))

    def delete(self) -> None:
        """Delete it with everything in it."""
        run("kind", "delete", "cluster", f"--name={self.cluster}", "--kubeconfig", FOLDER / "kubeconfig")

    def build(self, image: Image) -> str:
        """Build with Docker."""
        stage = ("--target", image.stage) if image.stage else ()
        run("docker", "build", "--file", ROOT / image.dockerfile, *stage, "--tag", image.name, ROOT)
        return capture("docker", "image", "inspect", "--format={{.Id}}", image.name).strip()

    def load(self, image: Image) -> None:
        """Copy it from Docker into the node."""
        run("kind", "load", "docker-image", image.name, f"--name={self.cluster}")


PROVIDERS: dict[str, type[Kind] | type[OneNode]] = {Kind.name: Kind, OneNode.name: OneNode}


def choose() -> Provider:
    """Return kind where a Docker daemon answers and `kind` is installed, else one-node.

    Raises:
        ToolError: neither can run here.

    """
    if which("kind") and succeeds("docker", "info"):
        return Kind()
    if sys.platform != "linux":
        raise ToolError("a cluster needs Docker and kind here (k8s/one-node is for Linux): install both, start Docker")
    return OneNode()
