"""Which cluster a command may touch: the one of `make cluster`, or another one that was named twice."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local_cluster.providers import PROVIDERS, Provider
from local_cluster.tools import FOLDER, ToolError, capture, run

KUBECONFIG = FOLDER / "kubeconfig"
KIND = FOLDER / "kind"  # the name of the provider whose cluster .cluster/kubeconfig reaches
MADE = FOLDER / "made"  # there only if `make cluster` started that cluster: `make down` stops no other


@dataclass(frozen=True)
class Target:
    """A cluster by kubeconfig and context; ``provider`` is None for one that `make cluster` does not know."""

    kubeconfig: Path
    context: str
    provider: Provider | None

    def kubectl(self, *argv: str | Path) -> tuple[str | Path, ...]:
        """Return a kubectl command line for this cluster and no other."""
        return ("kubectl", f"--kubeconfig={self.kubeconfig}", f"--context={self.context}", *argv)

    def helm(self, *argv: str | Path) -> tuple[str | Path, ...]:
        """Return a helm command line for this cluster and no other."""
        return ("helm", f"--kubeconfig={self.kubeconfig}", f"--kube-context={self.context}", *argv)


def contexts(kubeconfig: Path) -> tuple[str, set[str]]:
    """Return a kubeconfig's current context and all of its contexts."""
    content = json.loads(capture("kubectl", f"--kubeconfig={kubeconfig}", "config", "view", "--output=json"))
    return content.get("current-context", ""), {entry["name"] for entry in content.get("contexts") or []}


def find(environment: Mapping[str, str] = os.environ) -> Target:
    """Return the cluster to work on.

    Only .cluster/kubeconfig is used by itself. Another one, in KUBECONFIG, is used if CONTEXT names its context:
    a variable left over in a shell must not install anything in a cluster that people depend on.

    Raises:
        ToolError: there is no cluster, or the foreign one was not confirmed.

    """
    named = environment.get("KUBECONFIG", "")
    if named and Path(named).resolve() != KUBECONFIG.resolve():
        path = Path(named)
        if os.pathsep in named or not path.is_file():
            raise ToolError(f"KUBECONFIG={named} is not one file: name one, or unset it to use .cluster/kubeconfig")
        current, known = contexts(path)
        confirmed = environment.get("CONTEXT", "")
        if not confirmed:
            raise ToolError(
                f"KUBECONFIG={named} is not the cluster of `make cluster`: unset KUBECONFIG to use that one, "
                f"or confirm by name that this one is meant: CONTEXT={current or '...'}"
            )
        if confirmed not in known:
            raise ToolError(f"{named} has no context {confirmed!r}; it has {', '.join(sorted(known)) or 'none'}")
        return Target(path, confirmed, None)
    if not KUBECONFIG.exists():
        raise ToolError("there is no cluster yet: run `make cluster`")
    provider = recorded()
    if provider is None:
        raise ToolError(f"{KIND} does not say what made the cluster: run `make cluster` again")
    return Target(KUBECONFIG, contexts(KUBECONFIG)[0], provider)


def recorded() -> Provider | None:
    """Return the provider of the cluster that .cluster speaks of."""
    name = KIND.read_text().strip() if KIND.exists() else ""
    return PROVIDERS[name]() if name in PROVIDERS else None


def start(provider: Provider) -> None:
    """Have a cluster: start one, or use the one that runs already, and keep which of both it was."""
    FOLDER.mkdir(exist_ok=True)
    was_there = provider.running() and not MADE.exists()
    provider.start(KUBECONFIG)
    KUBECONFIG.chmod(0o600)
    KIND.write_text(f"{provider.name}\n")
    if not was_there:
        MADE.touch()
    whose = "it ran already: `make down` leaves it alone" if was_there else "`make down` stops it"
    print(f"The cluster ({provider.name}) is up; {whose}. To look into it: export KUBECONFIG={KUBECONFIG}")


def forget() -> None:
    """Remove what .cluster says of a cluster."""
    for path in (MADE, KIND, KUBECONFIG, FOLDER / "images.json"):
        path.unlink(missing_ok=True)


def require_answer(target: Target) -> None:
    """Check that the cluster answers, before a longer command fails half-way."""
    run(*target.kubectl("get", "nodes", "--request-timeout=10s"))
