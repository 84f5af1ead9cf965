"""Assay's images in the cluster, and its release: install, upgrade, remove."""

import json
from pathlib import Path

from local_cluster import target as targets
from local_cluster.providers import load_image, release_images
from local_cluster.target import Target
from local_cluster.tools import FOLDER, ROOT, ToolError, run, succeeds

RELEASE = "assay"
DEPLOYMENTS = ("assay", "assay-operator")
TIMEOUT = "5m"  # images are on the node already: two pods and the operator take under a minute, on busy cores more

# Ids of the images that the release last started with. A tag stays the same from build to build, so Kubernetes by
# itself would not notice a new image.
_IDS = FOLDER / "images.json"


def _known_ids() -> dict[str, str]:
    return dict(json.loads(_IDS.read_text())) if _IDS.exists() else {}


def build_images(target: Target) -> dict[str, str]:
    """Build the images and give them to the cluster; return the ids of the release's by name.

    Raises:
        ToolError: a build fails, or the cluster is one that only a registry can give images to.

    """
    provider = target.provider
    if provider is None:
        raise ToolError(
            f"{target.context} takes images from a registry: push them there, then install with Helm and "
            "image.repository as charts/assay/README.md tells"
        )
    ids = {}
    for image in (*release_images(), load_image()):
        ids[image.name] = provider.build(image)
        provider.load(image)
    ids.pop(load_image().name)
    return ids


def up(target: Target, namespace: str) -> None:
    """Build the images, install or upgrade the release, and wait until its pods are ready."""
    targets.require_answer(target)
    ids = build_images(target)
    in_namespace = f"--namespace={namespace}"
    was_there = succeeds(*target.helm("status", RELEASE, in_namespace))
    run(
        *target.helm("upgrade", "--install", RELEASE, ROOT / "charts/assay", in_namespace),
        *("--create-namespace", "--wait", f"--timeout={TIMEOUT}"),
    )
    if was_there and ids != _known_ids():
        names = [f"deployment/{name}" for name in DEPLOYMENTS]
        run(*target.kubectl(in_namespace, "rollout", "restart", *names))
        for name in names:
            run(*target.kubectl(in_namespace, "rollout", "status", name, f"--timeout={TIMEOUT}"))
    _IDS.write_text(json.dumps(ids, indent=1))
    print(next_steps(targets.KUBECONFIG, namespace))


def next_steps(kubeconfig: Path, namespace: str) -> str:
    """Return what a person may want to do after the release is up."""
    kubectl = f"kubectl --kubeconfig={kubeconfig.relative_to(ROOT)} -n {namespace}"
    return "\n".join(
        [
            "",
            "Assay is up. Next:",
            f"  export PATH={FOLDER / 'bin'}:$PATH   # the kubectl and helm of this cluster",
            f"  {kubectl} port-forward service/assay 8000:80   # then open http://127.0.0.1:8000",
            "  make swap                  # ask for the INT8 model: checked, and rolled out if it passes",
            "  make swap SAMPLE=refused   # ask for more than INT8 can give: refused, the old model serves on",
            "  make load                  # photos at Poisson times, and a verdict (SCENARIO=, RATE=, DURATION=, MIX=)",
            "  make down",
        ]
    )


def down(target: Target, namespace: str) -> None:
    """Remove the release; where `make cluster` made the cluster, stop and forget that instead, release and all."""
    if target.provider is not None and targets.MADE.exists():
        target.provider.delete()
        targets.forget()
        return
    run(*target.helm("uninstall", RELEASE, f"--namespace={namespace}", "--ignore-not-found", "--wait"))
    if target.provider is not None:
        targets.forget()
    print(
        "The release is gone. The cluster was not made by `make cluster`, so it runs on; Helm keeps the CRD "
        f"(kubectl delete crd modelvariants.assay.dev) and the namespace {namespace}."
    )
