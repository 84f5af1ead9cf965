"""A namespace of its own for faults: Assay with a model that is checked in two seconds, in a bad neighbourhood.

The base is four colours instead of a thousand things, so a check, a rollout and a rollback each take seconds, and a
test can spend its time on the fault. What runs is the same images, chart and operator as everywhere.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

from support.bad_packs import PackFile
from support.kube import Cluster, wait_for
from support.variants import Variants

RELEASE = "faults"  # another name than that of the release under `make up`, by which a drain can tell their pods apart
MODEL_ANNOTATIONS = "assay.dev/model-"


class Bench:
    """The namespace: its release, packs and targets."""

    def __init__(self, cluster: Cluster, root: Path, packs: dict[str, PackFile]) -> None:
        self.cluster = cluster
        self.packs = packs
        self.source = f"http://pack-source.{cluster.namespace}.svc"
        self._root = root
        self.token = "none"
        """Changes for every test, so that no verdict of an earlier one is used again."""

    # --- what is asked for ---------------------------------------------------

    def model(self, name: str, how: str = "plain", **changed: str) -> dict[str, str]:
        """A pack as a spec names it; ``how`` the source behaves is a path of `source_server`."""
        pack = self.packs[name]
        return {"uri": f"{self.source}/{how}/{name}.tar", "digest": pack.digest, "precision": "FP32"} | changed

    def once(self, then: str, name: str = "good") -> dict[str, str]:
        """A pack whose source is right for its check, and from then on behaves otherwise."""
        return self.model(name, f"once/{self.token}/{then}")

    def variant(self, name: str = "assay") -> Variants:
        """A ModelVariant, to be read."""
        return Variants(self.cluster, self._root / "k8s" / "samples", name)

    def body(
        self,
        model: dict[str, str],
        *,
        name: str = "assay",
        target: str = "assay",
        check: dict[str, Any] | None = None,
        rollout: dict[str, int] | None = None,
        skip_check: str = "",
        **spec: Any,
    ) -> dict[str, Any]:
        """A ModelVariant that asks for a model, with deadlines fit for tests."""
        data = self.packs["colours"]
        asked = {
            "dataset": {"uri": f"{self.source}/plain/colours.tar", "digest": data.digest},
            "minTop3ContainmentPermille": 950,
            "minTop1AgreementPermille": 950,
            # These models cost microseconds: what the check is worth, not what it measures, is tested here.
            "maxCostRatioPermille": 50_000,
            "maxNoisePermille": 10_000,
            "startDeadlineSeconds": 120,
            "timeoutSeconds": 120,
            "maxAttempts": 1,
        }
        return {
            "apiVersion": "assay.dev/v1alpha1",
            "kind": "ModelVariant",
            "metadata": {"name": name, "annotations": {"assay.dev/skip-check": skip_check} if skip_check else {}},
            "spec": {
                "targetRef": {"name": target},
                "model": model,
                "check": asked | (check or {}),
                "rollout": {"progressDeadlineSeconds": 120, "soakSeconds": 1} | (rollout or {}),
                "retryToken": self.token,
            }
            | spec,
        }

    def ask(self, model: dict[str, str], **more: Any) -> Variants:
        """Apply `body`; return the variant."""
        self.cluster.apply(self.body(model, **more))
        return self.variant(more.get("name", "assay"))

    def ask_all(self, bodies: dict[str, dict[str, Any]]) -> None:
        """Apply many `body` at once, each under its name."""
        for name, body in bodies.items():
            body["metadata"]["name"] = name
        self.cluster.apply(*bodies.values())

    def serve_base(self) -> None:
        """The base on every pod, and nothing else in the namespace but the release."""
        self.cluster.kubectl("scale", "deployment/assay-operator", "--replicas=1")
        self.cluster.kubectl("delete", "modelvariants", "--all", "--wait")
        self.cluster.kubectl("delete", "deployments", "--selector=faults=yes", "--wait")
        wait_for("the end of all checks", lambda: not self.cluster.items("jobs"), 60)
        variant = self.ask({"uri": f"{self.source}/plain/base.tar", "digest": self.packs["base"].digest})
        assert variant.condition("Ready", variant.settle())["status"] == "True", variant.explain()
        assert self.annotations() == {}

    # --- targets -------------------------------------------------------------

    def deployment(self, name: str = "assay") -> Any:
        """A Deployment as it stands."""
        return self.cluster.get("deployment", name)

    def annotations(self, name: str = "assay") -> dict[str, str]:
        """The model annotations of a Deployment's template."""
        template = self.deployment(name)["spec"]["template"]
        found = template["metadata"].get("annotations", {})
        return {key: value for key, value in found.items() if key.startswith(MODEL_ANNOTATIONS)}

    def target(self, name: str, *, replicas: int = 0, **changed: Any) -> None:
        """Another Deployment like the release's, scaled to zero: a target on which a check can go wrong.

        changed: ``container`` and ``pod`` hold fields over those of the container and the pod; ``env`` and ``volumes``
        (by mount path) are added.
        """
        source = self.deployment()["spec"]
        pod = source["template"]["spec"] | changed.get("pod", {})
        container = pod["containers"][0] | changed.get("container", {})
        container["env"] = [
            *container["env"],
            *({"name": key, "value": value} for key, value in changed.get("env", {}).items()),
        ]
        for number, (path, volume) in enumerate(changed.get("volumes", {}).items()):
            mount = {"name": f"more-{number}", "mountPath": path, "readOnly": True}
            container["volumeMounts"] = [*container["volumeMounts"], mount]
            pod["volumes"] = [*pod["volumes"], {"name": f"more-{number}"} | volume]
        pod["containers"] = [container]
        labels = {"app.kubernetes.io/name": name, "assay.dev/target": "true"}
        self.cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "labels": labels | {"faults": "yes"}},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            }
        )

    # --- what came of it -----------------------------------------------------

    def pods(self, target: str = "assay") -> list[Any]:
        """The pods of a target that are not on their way out."""
        pods = self.cluster.items("pods", f"--selector=assay.dev/target=true,app.kubernetes.io/name={target}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def candidates(self, target: str = "assay") -> list[Any]:
        """Those of them that were told to serve something else than the base."""
        told = f"{MODEL_ANNOTATIONS}digest"
        return [pod for pod in self.pods(target) if told in pod["metadata"].get("annotations", {})]

    def served(self, target: str = "assay") -> set[str]:
        """The digests that a target's pods say they serve."""
        names = [pod["metadata"]["name"] for pod in self.pods(target)]
        assert names
        return {self.cluster.pod_json(name, "/v1/model")["digest"] for name in names}

    def jobs(self, name: str = "assay") -> list[Any]:
        """The check Jobs of a variant."""
        return self.cluster.items("jobs", f"--selector=assay.dev/modelvariant={name}")

    def running_job(self, name: str = "assay") -> Any:
        """The check Job of a variant, once its pod runs and fetches."""

        def found() -> list[Any]:
            pods = self.cluster.items("pods", f"--selector=assay.dev/modelvariant={name}")
            return [pod for pod in pods if pod["status"].get("phase") == "Running"] and self.jobs(name)

        return wait_for("a running check", found, 120, self.variant(name).explain)[-1]

    def events(self, reason: str, name: str = "assay") -> list[str]:
        """What the operator's Events of a reason say about a variant that is there."""
        uid = self.variant(name).read()["metadata"]["uid"]
        return [
            event["note"]
            for event in self.cluster.items("events.events.k8s.io")
            if event["reason"] == reason and event["regarding"].get("uid") == uid
        ]

    def explain(self) -> str:
        """What a person would look at first."""
        return self.cluster.kubectl("get", "modelvariants,deployments,pods,jobs", "--output=wide")

    def drain(self, selector: str, *, timeout: int = 60) -> bool:
        """Drain the node of some pods; whether all of them went. It stays closed until `reopen`."""
        (node,) = (item["metadata"]["name"] for item in self.cluster.items("nodes"))
        chosen = ("--delete-emptydir-data", "--ignore-daemonsets", f"--pod-selector={selector}")
        try:
            self.cluster.kubectl("drain", node, *chosen, f"--timeout={timeout}s", timeout=timeout + 60)
        except subprocess.CalledProcessError as error:
            if "global timeout reached" not in error.stderr:
                raise
            return False
        return True

    def reopen(self) -> None:
        """Let the node take pods again."""
        self.cluster.kubectl("uncordon", "--selector=kubernetes.io/os=linux")

    def rolled_out(self) -> set[str]:
        """Digests that were ever in the release's template, as far as its ReplicaSets remember."""
        sets = self.cluster.items("replicasets", "--selector=app.kubernetes.io/component=classifier")
        found = (item["spec"]["template"]["metadata"].get("annotations", {}) for item in sets)
        return {annotations.get("assay.dev/model-digest", "") for annotations in found} - {""}

    # --- the operator --------------------------------------------------------

    def operator_pods(self) -> list[str]:
        """Names of the operator's pods, those on their way out included."""
        pods = self.cluster.items("pods", "--selector=app.kubernetes.io/component=operator")
        return [pod["metadata"]["name"] for pod in pods]

    def stop_operator(self, *, kill: bool = True) -> None:
        """No operator any more: killed outright, or asked to end."""
        names = self.operator_pods()
        self.cluster.kubectl("scale", "deployment/assay-operator", "--replicas=0")
        if kill and names:
            self.cluster.kubectl("delete", "pod", *names, "--grace-period=0", "--force", "--ignore-not-found")
        wait_for("the end of the operator", lambda: not self.operator_pods(), 60)

    def start_operator(self) -> None:
        """An operator that has looked at everything once."""
        self.cluster.kubectl("scale", "deployment/assay-operator", "--replicas=1")
        self.cluster.kubectl("rollout", "status", "deployment/assay-operator", "--timeout=120s")

    def new_token(self) -> None:
        """Make verdicts of earlier tests and runs worthless."""
        self.token = f"{time.time_ns()}"

    def helm_upgrade(self, *more: str) -> None:
        """Install or upgrade the release, and wait for it."""
        chart = str(self._root / "charts" / "assay")
        self.cluster.helm("upgrade", RELEASE, chart, "--wait", "--timeout=180s", *more)
