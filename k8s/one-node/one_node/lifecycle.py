"""Up, down and status of the cluster."""

import fcntl
import os
import re
import shutil
import time
from pathlib import Path

from one_node import daemons, host, pki
from one_node.build import build
from one_node.commands import ClusterError, say
from one_node.images import build_image, load_image
from one_node.names import BIN, HERE, NODE, PAUSE_IMAGE, SERVER
from one_node.probes import ctr, dns_answers, kubectl, node_ready


def exists(state: Path) -> bool:
    """Return whether a cluster was ever started in ``state`` (and not deleted)."""
    return (state / "conf/commands").exists()


def lock(state: Path) -> None:
    """Allow one cluster on this machine, and one `up` or `down` at a time (until this process ends)."""
    owner = host.bridge_owner()
    if owner not in {"", str(state)}:
        raise ClusterError(f"{owner} has a cluster up, and two would share addresses: cluster --dir {owner} down")
    state.mkdir(parents=True, exist_ok=True)
    fcntl.flock(os.open(state, os.O_RDONLY), fcntl.LOCK_EX)


def _start_control_plane(state: Path) -> None:
    if not (daemons.running(state, "etcd") and daemons.running(state, "kube-apiserver")):
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver"):
            daemons.stop(state, name)  # each would be slow to find what it leans on, or end
    daemons.forget_ended(state)
    daemons.start(state, "containerd", "etcd", "kube-apiserver")
    daemons.wait(state, "containerd", lambda: ctr(state, "version"), 30)
    if PAUSE_IMAGE not in (ctr(state, "images", "ls", "-q") or "").split():
        build_image(BIN, PAUSE_IMAGE, f"--file={HERE}/pause/Dockerfile", "--quiet")
        load_image(state, PAUSE_IMAGE)
    daemons.wait(state, "the API server", lambda: kubectl(state, "get", "--raw=/readyz") == "ok", 60)
    daemons.start(state, "kube-controller-manager", "kube-scheduler")


def _start_node(state: Path) -> None:
    daemons.wait(state, "kube-system", lambda: kubectl(state, "apply", "-f", state / "conf/objects.yaml"), 30)
    since = "" if daemons.running(state, "kubelet") else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    daemons.start(state, "kubelet", "coredns")
    daemons.wait(state, "the node", lambda: node_ready(state, since), 60)
    daemons.start(state, "kube-proxy")
    account = ("get", "serviceaccount", "default")
    daemons.wait(state, "the default service account", lambda: kubectl(state, *account), 30)
    daemons.wait(state, "cluster DNS", dns_answers, 30)


def up(state: Path) -> None:
    """Start what does not run; return when the node is ready and DNS answers.

    Raises:
        ClusterError: not root, another cluster is up, or a part does not come up in its time.

    """
    if os.geteuid() != 0:
        raise ClusterError("a node needs root: mounts, cgroups and network namespaces are its work")
    began = time.monotonic()
    build()
    lock(state)
    for folder in ("run", "log"):
        (state / folder).mkdir(exist_ok=True)
    host.write_configuration(state)
    pki.make_all(state, SERVER)
    host.prepare(state)
    _start_control_plane(state)
    _start_node(state)
    say(f"up after {time.monotonic() - began:.1f} s: export KUBECONFIG={state}/kubeconfig PATH={BIN}:$PATH")


def down(state: Path, *, delete: bool) -> None:
    """End exactly what `up` started; with ``delete`` forget the cluster's objects and images too."""
    if not exists(state):
        say(f"there is no cluster in {state}")
        return
    lock(state)
    daemons.forget_ended(state)
    for name in ["kubelet", *reversed(daemons.commands(state))]:  # it first: it restarts pods
        daemons.stop(state, name)
    host.kill_pods(state)
    host.release(state)
    if delete:
        if left := host.mounts_under(state):
            raise ClusterError(f"not deleting {state}: still mounted: {', '.join(left)}")
        shutil.rmtree(state)
    say("down; " + (f"{state} is deleted" if delete else f"`up` resumes it from {state}"))


def status(state: Path) -> bool:
    """Print one screen; return whether every daemon runs."""
    if not exists(state):
        raise ClusterError(f"there is no cluster in {state}: cluster up")
    pids = {name: daemons.running(state, name) for name in daemons.commands(state)}
    for name, pid in pids.items():
        print(f"{name:<25}" + (f"up    pid {pid:<8}{_resident_mib(pid):>5} MiB" if pid else "DOWN"))
    print(f"{'cluster DNS':<25}" + ("answers" if dns_answers() else "DOES NOT ANSWER"))
    print(kubectl(state, "get", "nodes", NODE) or "the API server does not answer")
    unwell = "status.phase!=Running,status.phase!=Succeeded"
    pods = kubectl(state, "get", "pods", "--all-namespaces", f"--field-selector={unwell}")
    print(pods or "no pod is pending or failed")
    return all(pids.values())


def _resident_mib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0
