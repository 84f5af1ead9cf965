"""ModelVariants as the end-to-end tests write and read them."""

from pathlib import Path
from typing import Any

import yaml

from support.kube import Cluster, wait_for

NAME = "assay"
# A check (600 images, two packs) and a rollout of two pods with their drain, on two busy cores.
SETTLED_S = 420


class Variants:
    """A ModelVariant, by default the one of the release, edited as a user would."""

    def __init__(self, cluster: Cluster, samples: Path, name: str = NAME) -> None:
        self.cluster = cluster
        self._samples = samples
        self.name = name

    def sample(self, name: str) -> Any:
        """A manifest of k8s/samples, parsed."""
        return yaml.safe_load((self._samples / f"{name}.yaml").read_text())

    def apply_sample(self, name: str) -> None:
        """Apply a sample file just as the README does."""
        self.cluster.kubectl("apply", "-f", str(self._samples / f"{name}.yaml"))

    def ask_for(self, model: dict[str, Any], **check: Any) -> None:
        """Edit the variant so that it asks for a model, with the sample's other fields."""
        wanted = self.sample("int8")
        wanted["spec"]["model"] = model
        wanted["spec"]["check"] = wanted["spec"].get("check", {}) | check
        self.cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted))

    def read(self) -> Any:
        """The variant as it stands."""
        return self.cluster.get("modelvariant", self.name)

    def wide(self) -> str:
        """What `kubectl get mv -o wide` shows."""
        return self.cluster.kubectl("get", "modelvariant", self.name, "--output=wide")

    def condition(self, kind: str, variant: Any = None) -> dict[str, Any]:
        """A condition that speaks of the current generation; {} where there is none yet."""
        variant = variant or self.read()
        for condition in variant.get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition.get("observedGeneration") == variant["metadata"]["generation"]:
                return dict(condition)
        return {}

    def is_true(self, kind: str) -> bool:
        """Whether a condition of the current generation is True."""
        return self.condition(kind).get("status") == "True"

    def settle(self) -> Any:
        """The variant once it is Ready or Stalled for its current generation."""
        wait_for("Ready or Stalled", lambda: self.is_true("Ready") or self.is_true("Stalled"), SETTLED_S, self.explain)
        return self.read()

    def explain(self) -> str:
        """What a person would look at."""
        return "\n".join(
            [
                self.cluster.kubectl("get", "modelvariant", self.name, "--output=yaml"),
                self.cluster.kubectl("get", "pods,jobs", "--output=wide"),
                self.cluster.kubectl("logs", "deployment/assay-operator", "--tail=30"),
            ]
        )

    def check_jobs(self) -> list[Any]:
        """The check Jobs that exist."""
        return self.cluster.items("jobs", "--selector=app.kubernetes.io/component=check")

    def served(self) -> list[dict[str, Any]]:
        """`/v1/model` of every pod behind the Service that is not on its way out."""
        pods = self.cluster.items("pods", "--selector=assay.dev/target=true")
        names = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        assert names
        return [self.cluster.pod_json(name, "/v1/model") for name in names]
