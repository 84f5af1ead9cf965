"""A change of model, asked for and watched until it is Ready or Stalled."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from local_cluster.target import Target
from local_cluster.tools import ToolError, capture, run

POLL_S = 1.0
# Two check attempts at their own deadlines (300 s to start, 900 s to run) are in it; who waits longer can run it again.
TIMEOUT_S = 2400.0


@dataclass(frozen=True)
class Progress:
    """Where a ModelVariant stands: its state, and a line for the person who waits."""

    state: Literal["working", "ready", "stalled"]
    line: str


def conditions(variant: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the conditions, by type, that speak of the variant's present generation."""
    generation = variant["metadata"]["generation"]
    found = variant.get("status", {}).get("conditions", [])
    return {each["type"]: each for each in found if each.get("observedGeneration") == generation}


def progress(variant: Mapping[str, Any]) -> Progress:
    """Return where a variant stands, from its conditions alone."""
    by_type = conditions(variant)
    if _is(by_type, "Stalled", "True"):
        return Progress("stalled", _line(by_type["Stalled"]))
    if _is(by_type, "Ready", "True"):
        return Progress("ready", _line(by_type["Ready"]))
    # The check comes first, the rollout after it: the one under way has something to tell.
    order = ("RolledOut", "Ready") if _is(by_type, "CheckPassed", "True") else ("CheckPassed", "Ready")
    told = [by_type[kind] for kind in order if kind in by_type]
    return Progress("working", _line(told[0]) if told else "the operator has not seen it yet")


def _is(by_type: Mapping[str, Mapping[str, Any]], kind: str, status: str) -> bool:
    return bool(by_type.get(kind, {}).get("status") == status)


def _line(condition: Mapping[str, Any]) -> str:
    return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")


def rollout(deployment: Mapping[str, Any]) -> str:
    """Return how far a Deployment's rollout is."""
    status = deployment.get("status", {})
    wanted = deployment["spec"].get("replicas", 1)
    return f"{status.get('updatedReplicas', 0)}/{wanted} pods new, {status.get('readyReplicas', 0)} ready"


def swap(target: Target, namespace: str, sample: Path) -> int:
    """Apply a sample and watch it; return 0 when it is Ready, 1 when it is Stalled or the time is over."""
    scope = f"--namespace={namespace}"
    name = capture(*target.kubectl(scope, "apply", "--filename", sample, "--output=name")).strip()
    print(f"asked for {sample.name} ({name})")
    began, shown = time.monotonic(), ""
    while (elapsed := time.monotonic() - began) < TIMEOUT_S:
        variant = json.loads(capture(*target.kubectl(scope, "get", name, "--output=json")))
        now = progress(variant)
        deployment = variant["spec"]["targetRef"]["name"]
        text = now.line
        if now.state == "working" and conditions(variant).get("CheckPassed", {}).get("status") == "True":
            text += f" ({rollout(json.loads(capture(*_deployment(target, scope, deployment))))})"
        if text != shown:
            print(f"{elapsed:6.0f} s  {text}", flush=True)
            shown = text
        if now.state != "working":
            run(*target.kubectl(scope, "get", name, "--output=wide"))
            return 0 if now.state == "ready" else 1
        time.sleep(POLL_S)
    raise ToolError(f"{name} is neither Ready nor Stalled after {TIMEOUT_S:.0f} s; last seen: {shown}")


def _deployment(target: Target, scope: str, name: str) -> tuple[str | Path, ...]:
    return target.kubectl(scope, "get", "deployment", name, "--output=json")
