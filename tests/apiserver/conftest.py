"""A real API server for the session, with the CRD; for each test a namespace with the chart's own Role."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from support.apiserver import KUBE, ApiServer, eventually
from support.controllers import Namespace
from support.fault_proxy import FaultProxy
from support.operator_process import OperatorProcess, chart_rules, grant
from support.packs import FAST, GOOD, MODEL, spec, template


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture(scope="session")
def crd(root) -> dict:
    return yaml.safe_load((root / "charts" / "assay" / "files" / "crd" / "modelvariants.yaml").read_text())


@pytest.fixture(scope="session")
def api(root, crd, tmp_path_factory) -> ApiServer:
    if not KUBE.exists():
        # Go builds it once, which takes minutes; what it builds is kept.
        subprocess.run([root / "k8s" / "one-node" / "cluster", "build"], check=True)
    server = ApiServer(KUBE, tmp_path_factory.mktemp("apiserver"))
    try:
        server.define(crd)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def operator_rules(root) -> list[dict]:
    """The rules of the Role that the chart gives the operator."""
    return chart_rules(root)


@pytest.fixture
def namespace(api, request, operator_rules) -> Namespace:
    name = f"t{abs(hash(request.node.nodeid)) % 10**9}-{os.getpid()}"
    made = Namespace(api, name)
    grant(made, operator_rules)
    return made


@pytest.fixture
def run_operator(api, namespace, tmp_path):
    """Start an operator; used as `with run_operator(url=proxy.url, workers=1) as operator`."""

    @contextmanager
    def start(url="", **settings):
        operator = OperatorProcess(api, namespace.name, tmp_path, url, {"resync_seconds": 1.0} | settings)
        try:
            operator.wait_until("/readyz")
            yield operator
        finally:
            if operator.process.poll() is None:
                operator.end()

    return start


@pytest.fixture
def proxy(api):
    """A proxy before the API server, for what shall go wrong between it and the operator."""
    made = FaultProxy(api.url)
    yield made
    made.stop()


@pytest.fixture
def operator(run_operator):
    with run_operator() as started:
        yield started


@pytest.fixture
def target(namespace):
    namespace.deployment(template())
    return namespace


@pytest.fixture
def swapped(target, operator):
    """A namespace whose target serves GOOD, which passed."""
    target.variant(spec(GOOD, **FAST))
    target.finish(target.new_job())
    eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
    target.roll()
    target.wait("True Serving")
    return target
