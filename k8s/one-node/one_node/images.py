"""Images: built with buildah, which needs no daemon, and handed to the cluster's containerd as archives."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from one_node.build import install_packages
from one_node.commands import ClusterError, output, run, say
from one_node.names import BASE_IMAGE, HERE
from one_node.probes import ctr

BASE_SUITE = "trixie"
BASE_PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"

# What a machine behind a proxy of its own needs to reach package registries; lent to RUN, never kept in an image.
LENT = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


def full_name(name: str) -> str:
    """Return an image's full name by Docker's rule, which is also the kubelet's."""
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    last = name.rpartition("/")[2]
    return name if ":" in last else f"{name}:latest"


def build_image(folder: Path, name: str, *options: str) -> None:
    """Build a Dockerfile with the host's network, certificates and pip settings lent to its RUN lines."""
    install_packages()
    lent = [f"--volume={path}:{path}:ro" for path in LENT if Path(path).exists()]
    run(
        *("buildah", "bud", "--isolation=chroot", "--network=host", "--layers", f"--tag={full_name(name)}"),
        *lent,
        *options,
        folder,
        stdout=sys.stderr,
    )


def build_base_image() -> None:
    """Make a debootstrap of Debian's own Python, under the name of the image that it stands for."""
    install_packages()
    mirrors = output("apt-get", "indextargets", "--format=$(REPO_URI)", "Created-By: Packages", "Label: Debian")
    if not mirrors:
        raise ClusterError("apt knows no Debian archive to make the base image from: run `apt-get update`")
    with tempfile.TemporaryDirectory() as folder:
        say(f"making {BASE_IMAGE} from {mirrors.split()[0]}")
        run(
            *("debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", BASE_SUITE, f"{folder}/rootfs"),
            mirrors.split()[0],
            stdout=subprocess.DEVNULL,
        )
        build_image(Path(folder), BASE_IMAGE, f"--file={HERE}/base/Dockerfile", "--squash", "--layers=false")


def has_image(name: str) -> bool:
    """Return whether buildah has an image of that name."""
    return output("buildah", "inspect", "--type=image", full_name(name)) is not None


def node_image_id(state: Path, name: str) -> str:
    """Return the id (its configuration's digest, without ``sha256:``) of the image the cluster has by that name."""
    listed = (line.split() for line in (ctr(state, "images", "ls", f"name=={name}") or "").splitlines()[1:])
    manifest = next((words[2] for words in listed if words[:1] == [name]), None)
    content = manifest and ctr(state, "content", "get", manifest)
    if not content:
        return ""
    config: str = json.loads(content).get("config", {}).get("digest", "")
    return config.removeprefix("sha256:")


def load_image(state: Path, name: str) -> None:
    """Give a built image to the cluster, unless it has that very one.

    Raises:
        ClusterError: it was never built, or containerd does not take it.

    """
    name = full_name(name)
    built = output("buildah", "inspect", "--type=image", "--format={{.FromImageID}}", name)
    if built is None:
        raise ClusterError(f"there is no image {name}: build it first (cluster image-build DIR --tag {name})")
    if built.strip() == node_image_id(state, name):
        say(f"{name} is loaded already")
        return
    with tempfile.TemporaryDirectory() as folder:
        run("buildah", "push", "--quiet", name, f"docker-archive:{folder}/image.tar:{name}")
        if ctr(state, "images", "import", f"{folder}/image.tar") is None:
            raise ClusterError(f"cannot import {name}: is the cluster up? `cluster status` tells")
    say(f"loaded {name}")
