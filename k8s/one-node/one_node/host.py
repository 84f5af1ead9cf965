"""What the cluster changes on this machine, and how that is undone: sysctls, bridge, firewall, cgroups, mounts."""

import json
import os
import shutil
import string
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from one_node.commands import output, run
from one_node.daemons import kill, wait
from one_node.names import BRIDGE, CGROUPS, GUARD, HERE, NODE_IP, SERVICE_CIDR, substitutions

# The first two are for pods' packets. The others are the kubelet's wish; here, so that `down` can put them back.
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
}


def write_configuration(state: Path) -> None:
    """Copy conf/ with its $names filled in; an equal file is left alone (kube-proxy watches its own)."""
    values = substitutions(state)
    for source in filter(Path.is_file, (HERE / "conf").rglob("*")):
        target = state / source.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = string.Template(source.read_text()).substitute(values)
        if not (target.exists() and target.read_text() == text):
            target.write_text(text)


def bridge_owner() -> str:
    """Return the state directory whose cluster has the bridge, or an empty text."""
    alias = Path(f"/sys/class/net/{BRIDGE}/ifalias")
    return alias.read_text().strip() if alias.exists() else ""


def prepare(state: Path) -> None:
    """Set what pods need; again is harmless."""
    saved = state / "run" / "sysctls.json"
    if not saved.exists():
        # Bridge settings appear with their kernel module; some kernels have it built in, and no modprobe.
        output("modprobe", "br_netfilter")
        saved.write_text(json.dumps({name: Path("/proc/sys", name).read_text() for name in SYSCTLS}))
    for name, value in SYSCTLS.items():
        Path("/proc/sys", name).write_text(value)
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{NODE_IP}/16", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up", "alias", state)
        run("ip", "route", "add", SERVICE_CIDR, "dev", BRIDGE)  # not to the default gateway
    output("nft", "delete", "table", "inet", GUARD)
    run("nft", "-f", state / "conf/guard.nft")
    for hierarchy in cgroup_hierarchies():
        (hierarchy / GUARD).mkdir(exist_ok=True)


def cgroup_hierarchies() -> Iterator[Path]:
    """Yield the roots of cgroup v1's hierarchies, or the one root of v2."""
    if (CGROUPS / "cgroup.controllers").exists():
        yield CGROUPS
        return
    yield from (path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink())


def _cgroup_folders() -> Iterator[Path]:
    """Yield all of our cgroups, the innermost first."""
    for hierarchy in cgroup_hierarchies():
        for folder, _, _ in os.walk(hierarchy / GUARD, topdown=False):
            yield Path(folder)


def _pod_processes() -> Iterator[int]:
    for folder in _cgroup_folders():
        try:
            yield from map(int, (folder / "cgroup.procs").read_text().split())
        except OSError:  # just gone, or of a hierarchy that lists none
            continue


def _shims(state: Path) -> Iterator[int]:
    """Yield the processes that hold the pods of our own containerd."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
        except (OSError, ValueError):
            continue
        if words[0].endswith("containerd-shim-runc-v2") and f"{state}/containerd.sock" in words:
            yield int(process.name)


def _kill_all(pids: Iterable[int]) -> bool:
    """Kill processes; return whether there were none."""
    found = set(pids)
    for pid in found:
        kill(pid)
    return not found


def kill_pods(state: Path) -> None:
    """End every process of a pod, then what held the pods."""
    wait(state, "the end of the pods", lambda: _kill_all(_pod_processes()), 30)
    wait(state, "the end of their shims", lambda: _kill_all(_shims(state)), 30)


def mounts_under(state: Path) -> list[str]:
    """Return our mounts, the newest first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [point for point in reversed(points) if point.startswith(f"{state}/")]


def _remove_cgroup(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:  # busy still, or gone
        return not folder.exists()
    return True


def _remove_strays(state: Path) -> None:
    """Remove what containerd, the kubelet and CNI keep at fixed places outside the state directory."""
    for address in state.glob("containerd/state/io.containerd.runtime.v2.task/k8s.io/*/address"):
        Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)
    for link in Path("/var/log/containers").glob("*"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{state}/"):
            link.unlink()
    for sandbox in state.glob("containerd/root/io.containerd.grpc.v1.cri/sandboxes/*"):
        for result in Path("/var/lib/cni/results").glob(f"*-{sandbox.name}-*"):
            result.unlink()


def release(state: Path) -> None:
    """Undo all of ``prepare`` and what the daemons left: mounts, firewall tables, links, cgroups, sysctls."""
    for point in mounts_under(state):
        if output("umount", point) is None:
            run("umount", "--lazy", point)
    for table in ("ip kube-proxy", "ip6 kube-proxy", f"inet {GUARD}"):
        output("nft", "delete", "table", *table.split())
    for link in [*(port.name for port in Path(f"/sys/class/net/{BRIDGE}/brif").glob("*")), BRIDGE]:
        output("ip", "link", "delete", link)
    for folder in _cgroup_folders():
        wait(state, f"the end of {folder}", partial(_remove_cgroup, folder), 10)
    _remove_strays(state)
    for leftover in ("containerd/state", "cni"):  # no container runs, no pod holds an address
        shutil.rmtree(state / leftover, ignore_errors=True)
    saved = state / "run" / "sysctls.json"
    if saved.exists():
        for name, value in json.loads(saved.read_text()).items():
            Path("/proc/sys", name).write_text(value)
        saved.unlink()
