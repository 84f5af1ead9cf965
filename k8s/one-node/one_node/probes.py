"""What answers: the API server, containerd, the node, and the cluster's DNS."""

import socket
import struct
from pathlib import Path

from one_node.commands import output
from one_node.names import BIN, DNS_IP, NODE

_DNS_HEADER = ">6H"  # id, flags, and the counts of questions, answers, authorities, additionals (RFC 1035, 4.1.1)
_RECURSION_DESIRED = 0x100
_TYPE_A, _CLASS_IN = 1, 1


def kubectl(state: Path, *argv: str | Path) -> str | None:
    """Return what kubectl printed as the cluster's administrator, or None where it failed."""
    return output(BIN / "kubectl", f"--kubeconfig={state}/kubeconfig", *argv)


def ctr(state: Path, *argv: str | Path) -> str | None:
    """Return what containerd's own client printed, or None where it failed."""
    return output("ctr", f"--address={state}/containerd.sock", "--namespace=k8s.io", *argv)


def dns_query(name: str) -> bytes:
    """Return a DNS message that asks for the IPv4 addresses of ``name``."""
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b"."))
    header = struct.pack(_DNS_HEADER, 1, _RECURSION_DESIRED, 1, 0, 0, 0)
    return header + labels + b"\0" + struct.pack(">2H", _TYPE_A, _CLASS_IN)


def dns_answers() -> bool:
    """Return whether the cluster's DNS, asked through its Service, knows the API server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.5)
        try:
            client.sendto(dns_query("kubernetes.default.svc.cluster.local"), (DNS_IP, 53))
            answers = struct.unpack(_DNS_HEADER, client.recv(512)[:12])[3]
        except OSError:
            return False
    return bool(answers)


def node_ready(state: Path, since: str) -> bool:
    """Return whether the node is Ready by a word of the kubelet's that is not older than ``since`` (RFC 3339)."""
    condition = "{range .status.conditions[?(@.type=='Ready')]}{.status} {.lastHeartbeatTime}{end}"
    words = (kubectl(state, "get", "node", NODE, "-o", f"jsonpath={condition}") or "").split()
    return words[:1] == ["True"] and words[1] >= since
