"""What the cluster is made of: Debian packages, and programs built from their upstream Go modules."""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from one_node.commands import ClusterError, output, run, say
from one_node.names import BIN, HERE

# A command or file that must be there, and the Debian package that brings it.
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "buildah": "buildah",
    "nft": "nftables",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "openssl": "openssl",
}

GO = (1, 24)  # what the go.mod files ask for
_VERSION = "k8s.io/component-base/version."


@dataclass(frozen=True)
class Program:
    """A Go program: the folder here with its module and pinned sums, the package to build, its ``-X`` settings."""

    name: str
    package: str = "."
    settings: dict[str, str] = field(default_factory=dict)

    def sources_digest(self, folder: Path) -> str:
        """Return the SHA-256 of the Go files, versions and sums in ``folder/name``."""
        files = sorted(path for path in (folder / self.name).iterdir() if path.suffix in {".go", ".mod", ".sum"})
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()

    @property
    def flags(self) -> str:
        """The linker's flags: no symbol table (half the size), and the version that the program tells."""
        return " ".join(["-s -w", *(f"-X {key}={value}" for key, value in self.settings.items())])


PROGRAMS = (
    Program(
        "kube", settings={f"{_VERSION}gitVersion": "v1.34.4", f"{_VERSION}gitMajor": "1", f"{_VERSION}gitMinor": "34"}
    ),
    Program("coredns"),
    Program("pause"),
    Program("helm", "helm.sh/helm/v3/cmd/helm", {"helm.sh/helm/v3/internal/version.version": "v3.19.0"}),
)


def install_packages() -> None:
    """Install the Debian packages that are missing."""
    missing = [package for part, package in PACKAGES.items() if not shutil.which(part)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise ClusterError(f"this machine has no apt-get: install {', '.join(missing)} by its own means")
    say("installing " + " ".join(missing))
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-qq", env=quiet)
    run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing, env=quiet)


def require_go(told: str | None) -> None:
    """Check what ``go env GOVERSION`` printed (None: there is no Go).

    Raises:
        ClusterError: there is no Go, or one that is too old.

    """
    wanted = ".".join(map(str, GO))
    found = re.match(r"go(\d+)\.(\d+)", told or "")
    if not found or (int(found[1]), int(found[2])) < GO:
        seen = f"has {told.strip()}" if told else "has no `go` on its PATH"
        raise ClusterError(
            f"Kubernetes is built here with Go {wanted} or newer, and this machine {seen}: "
            "install it from https://go.dev/dl (Debian 12's own is too old), then run this again"
        )


def build_program(program: Program, folder: Path = HERE, target: Path = BIN) -> bool:
    """Build a program into ``target``, unless the one there was built from these sources; return whether it was."""
    stamp = target / f".{program.name}.sha256"
    digest = program.sources_digest(folder)
    if (target / program.name).exists() and stamp.exists() and stamp.read_text() == digest:
        return False
    require_go(output("go", "env", "GOVERSION"))
    say(f"building {program.name}")
    fresh = target / f".{program.name}.new"
    run(
        *("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", program.flags, "-o", fresh, program.package),
        cwd=folder / program.name,
        env={"CGO_ENABLED": "0"},
    )
    fresh.replace(target / program.name)
    stamp.write_text(digest)
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold ``folder`` against a second build of ours."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def build() -> None:
    """Install and build everything that a cluster needs; what is there already is left alone."""
    install_packages()
    BIN.mkdir(parents=True, exist_ok=True)
    with _alone(BIN):
        for program in PROGRAMS:
            build_program(program)
        if not (BIN / "kubectl").is_symlink():
            (BIN / "kubectl").symlink_to("kube")
