"""The kinds of cluster that can be made here: kind where Docker runs, else k8s/one-node."""

import sys
from pathlib import Path
from typing import Protocol

from local_cluster.tools import FOLDER, ROOT, ToolError, capture, run, succeeds, which

IMAGES = {"service": "assay-service", "operator": "assay-operator"}
"""The Dockerfile's stage of each image, and the image's name."""


def version() -> str:
    """Return the version that the images carry: the chart's appVersion."""
    for line in (ROOT / "charts/assay/Chart.yaml").read_text().splitlines():
        if line.startswith("appVersion:"):
            return line.partition(":")[2].strip().strip('"')
    raise ToolError("charts/assay/Chart.yaml names no appVersion")


def image_names() -> dict[str, str]:
    """Return the full name of each image by the Dockerfile's stage."""
    return {stage: f"localhost/{name}:{version()}" for stage, name in IMAGES.items()}


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

    def build(self, stage: str, image: str) -> str:
        """Build a stage of the Dockerfile; return the image's id."""
        ...

    def load(self, image: str) -> None:
        """Give an image to the cluster."""
        ...


class OneNode:
    """k8s/one-node: needs root, Debian and Go."""

    name = "one-node"
    _state = Path("/var/lib/one-node-kube")
    _command = ROOT / "k8s/one-node/cluster"

    def running(self) -> bool:
        """Return whether every daemon of it runs."""
        return succeeds(self._command, "status")

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

    def build(self, stage: str, image: str) -> str:
        """Build with buildah, over a stand-in of the base image (no image can be pulled where this runs)."""
        run(self._command, "base-image", "--if-missing")
        run(self._command, "image-build", ROOT, "--target", stage, "--tag", image)
        return capture("buildah", "inspect", "--type=image", "--format={{.FromImageID}}", image).strip()

    def load(self, image: str) -> None:
        """Import it into the node's containerd."""
        run(self._command, "load", image)


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

    def build(self, stage: str, image: str) -> str:
        """Build with Docker."""
        run("docker", "build", f"--target={stage}", f"--tag={image}", ROOT)
        return capture("docker", "image", "inspect", "--format={{.Id}}", image).strip()

    def load(self, image: str) -> None:
        """Copy it from Docker into the node."""
        run("kind", "load", "docker-image", image, f"--name={self.cluster}")


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
