"""The whole story: a Prometheus, a service and an operator before it, told once."""

import runpy
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import yaml

from alerts.rules import Timing
from assay.building.models import build
from support import story, story_operator
from support.apiserver import ApiServer, eventually
from support.chart import Chart, find_helm
from support.prometheus import prometheus
from support.story import Story

KUBE = Path.home() / ".cache" / "one-node-kube" / "bin" / "kube"
SHORTENED = Timing(minute_s=1)  # an hour's window is a minute, and "for: 10m" ten seconds


def rules(root: Path, timing: Timing) -> str:
    """The plain file of rules, with other minutes."""
    generate = runpy.run_path(str(root / "grafana" / "generate.py"))
    text: str = generate["generated"](timing)[generate["PLAIN_RULES"]]
    return text


def operator_rights(root: Path) -> list[dict]:
    """The rules of the Role that the chart gives the operator."""
    roles = Chart(root / "charts" / "assay", find_helm(root)).render().of("Role")
    (role,) = (entry for entry in roles if entry["metadata"]["name"].endswith("operator"))
    return role["rules"]


@contextmanager
def told(root: Path, folder: Path) -> Iterator[Story]:
    """A Prometheus that has seen a service and an operator in all their states, by rules whose minutes are seconds."""
    if not KUBE.exists():
        # Go builds it once, which takes minutes; what it builds is kept.
        subprocess.run([root / "k8s" / "one-node" / "cluster", "build"], check=True)
    builtin_dir, server_dir = folder / "builtin", folder / "apiserver"
    for made in (builtin_dir, server_dir):
        made.mkdir()
    build("efficientnet-lite0", builtin_dir / "efficientnet-lite0-fp32.tar")
    api = ApiServer(KUBE, server_dir)
    try:
        crd = yaml.safe_load((root / "charts" / "assay" / "files" / "crd" / "modelvariants.yaml").read_text())
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        eventually(lambda: api.get("/apis/assay.dev/v1alpha1/modelvariants"), "the CRD is established")
        with prometheus(folder, rules(root, SHORTENED)) as scraping, ThreadPoolExecutor(1) as beside:
            seen = Story(scraping)
            until = Event()
            operator = beside.submit(story_operator.tell, scraping, api, operator_rights(root), folder, until)
            try:
                story.tell(seen, builtin_dir, folder)
            finally:
                until.set()
            operator.result()
            seen.begin("end")
            yield seen
    finally:
        api.stop()
