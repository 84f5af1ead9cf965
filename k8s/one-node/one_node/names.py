"""What the cluster's parts and the files in conf/ call things: names, addresses and places."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
"""The folder with conf/, the Go modules and the Dockerfiles."""

BIN = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "one-node-kube" / "bin"
"""Where built programs are kept: apart from any cluster's state, because a build takes minutes."""

STATE = Path("/var/lib/one-node-kube")
"""The default place of all else."""

CGROUPS = Path("/sys/fs/cgroup")
BRIDGE = "onk0"  # the pods' bridge; its address is also the node's
GUARD = "one-node-kube"  # our nftables table, and our cgroup
CLUSTER = "one-node-kube"  # the cluster's and the context's name in a kubeconfig
NODE = "one-node"

# 198.18.0.0/15 is set aside for benchmarks inside one network (RFC 2544): no real host has such an address.
NODE_IP = "198.18.0.1"
POD_CIDR = "198.18.0.0/16"
SERVICE_CIDR = "198.19.0.0/16"
API_IP = "198.19.0.1"
DNS_IP = "198.19.0.10"
SERVER = f"https://{NODE_IP}:6443"

PAUSE_IMAGE = "localhost/pause:1"
BASE_IMAGE = "docker.io/library/python:3.13-slim-trixie"


def substitutions(state: Path) -> dict[str, str]:
    """Return the values of the $names in conf/ for a cluster whose state is in ``state``."""
    return {
        "api_ip": API_IP,
        "bin": str(BIN),
        "bridge": BRIDGE,
        "dns_ip": DNS_IP,
        "guard": GUARD,
        "node": NODE,
        "node_ip": NODE_IP,
        "pause_image": PAUSE_IMAGE,
        "pod_cidr": POD_CIDR,
        "service_cidr": SERVICE_CIDR,
        "state": str(state),
    }
