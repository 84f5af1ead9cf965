"""The load test as the real Helm renders it."""

import runpy

import pytest

from support.chart import RenderError

ON = ("--set", "loadTest.enabled=true")


@pytest.fixture(scope="module")
def job(chart):
    (found,) = chart.render(*ON).of("Job")
    return found


@pytest.fixture(scope="module")
def pod(job):
    return job["spec"]["template"]["spec"]


def environment(job):
    (k6,) = job["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in k6["env"]}


def rendered(chart, *arguments):
    (found,) = chart.render(*ON, *arguments).of("Job")
    return found


def test_copy_of_the_scripts_in_the_chart_is_fresh(root, folder):
    wanted = runpy.run_path(str(root / "charts" / "generate.py"))["k6_scripts"]()
    there = {path: path.read_text() for path in (folder / "files" / "k6").rglob("*") if path.is_file()}
    assert there == wanted, "run `make manifests`"


@pytest.mark.system
def test_nothing_of_it_is_there_by_default(defaults):
    assert not defaults.of("Job")
    assert not defaults.of("ConfigMap")


@pytest.mark.system
def test_scripts_arrive_as_they_are_where_they_look_for_each_other(root, chart, job, pod):
    (config,) = chart.render(*ON).of("ConfigMap")
    (volume,) = (volume["configMap"] for volume in pod["volumes"] if "configMap" in volume)
    assert volume["name"] == config["metadata"]["name"] == job["metadata"]["name"]
    placed = {item["path"]: config["data"][item["key"]] for item in volume["items"]}
    assert len(placed) == len(config["data"])
    for path, content in placed.items():
        assert content == (root / "k6" / path).read_text()
    assert sum(map(len, config["data"].values())) < 500_000  # a ConfigMap holds a MiB, a release's Secret too


@pytest.mark.system
def test_verdict_is_the_exit_code_of_the_only_try(job, pod):
    assert job["spec"]["backoffLimit"] == 0
    assert pod["restartPolicy"] == "Never"
    (k6,) = pod["containers"]
    assert k6["command"] == ["/bin/sh", "/scripts/run", "load"]
    assert environment(job)["TERMINATION_LOG"] == k6["terminationMessagePath"] == "/dev/termination-log"


@pytest.mark.system
def test_pods_meet_the_restricted_pod_security_standard(pod):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for item in (*pod["initContainers"], *pod["containers"]):
        assert item["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert all(volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if "emptyDir" in volume)


@pytest.mark.system
def test_it_prefers_nodes_without_the_service(chart, pod):
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    labels = chart.render().get("Deployment", "assay")["spec"]["template"]["metadata"]["labels"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.system
def test_no_selector_of_the_service_finds_the_load_generator(chart, job):
    labels = job["spec"]["template"]["metadata"]["labels"]
    (service,) = chart.render(*ON).of("Service")
    assert not service["spec"]["selector"].items() <= labels.items()


@pytest.mark.system
def test_photos_are_made_by_the_services_image_with_its_settings(chart):
    job = rendered(chart, "--set", "settings.MAX_PIXELS=2000000,loadTest.models={builtin:efficientnet-lite0-int8}")
    (images,) = job["spec"]["template"]["spec"]["initContainers"]
    assert images["image"] == "localhost/assay-service:0.1.0"
    assert {"name": "ASSAY_MAX_PIXELS", "value": "2000000"} in images["env"]
    assert "--service=http://assay.assay.svc:80" in images["args"]
    assert "--model=builtin:efficientnet-lite0-int8" in images["args"]


@pytest.mark.system
def test_values_become_the_settings_of_the_scenario(chart):
    values = "loadTest.scenario=spike,loadTest.mix=12mp,loadTest.rate=7.5,loadTest.durationSeconds=90,loadTest.seed=3"
    env = environment(rendered(chart, "--set-json", 'loadTest.settings={"SPIKE_FACTOR": 3}', "--set", values))
    assert env.items() >= {"MIX": "12mp", "RATE": "7.5", "SECONDS": "90", "SEED": "3", "SPIKE_FACTOR": "3"}.items()
    assert "K6_OUT" not in env
    env = environment(rendered(chart, "--set", "loadTest.scenario=breakpoint,loadTest.rate=20"))
    assert (env["START_RATE"], "RATE" in env) == ("20", False)


@pytest.mark.system
def test_metrics_go_to_prometheus_when_asked(chart):
    env = environment(rendered(chart, "--set", "loadTest.remoteWriteUrl=http://prometheus/api/v1/write"))
    assert env["TESTID"] == {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}
    assert env["K6_OUT"] == "experimental-prometheus-rw"
    assert env["K6_PROMETHEUS_RW_SERVER_URL"] == "http://prometheus/api/v1/write"


@pytest.mark.system
def test_any_change_is_another_job_because_a_job_cannot_be_changed(chart, job):
    names = {rendered(chart, "--set", f"loadTest.{value}")["metadata"]["name"] for value in ("rate=11", "run=again")}
    assert len(names | {job["metadata"]["name"]}) == 3
    assert rendered(chart)["metadata"]["name"] == job["metadata"]["name"]
    (long,) = chart.render(*ON, release="a" * 53).of("Job")
    assert len(long["metadata"]["name"]) <= 63  # the label job-name holds it


@pytest.mark.system
def test_it_is_given_time_for_every_probe_of_a_breakpoint(chart, job):
    assert job["spec"]["activeDeadlineSeconds"] > 60 + 120
    search = rendered(chart, "--set", "loadTest.scenario=breakpoint")
    assert search["spec"]["activeDeadlineSeconds"] > 16 * (60 + 120)


@pytest.mark.system
def test_limit_of_cpu_is_there_only_when_asked(chart, pod):
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}
    limited = rendered(chart, "--set", "loadTest.resources.limits.cpu=500m")["spec"]["template"]["spec"]
    assert limited["containers"][0]["resources"]["limits"]["cpu"] == "500m"


@pytest.mark.system
def test_network_policies_let_it_in_and_nobody_to_it(chart, folder):
    objects = chart.render(*ON, values=folder / "ci" / "production-values.yaml")
    (rule,) = objects.get("NetworkPolicy", "assay-classifier")["spec"]["ingress"]
    labels = objects.of("Job")[0]["spec"]["template"]["metadata"]["labels"]
    assert {"podSelector": {"matchLabels": labels}} in rule["from"]
    policy = objects.get("NetworkPolicy", "assay-load")["spec"]
    assert policy == {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"]}


@pytest.mark.system
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("replicas=0", "nobody would answer"),
        ("loadTest.image.tag=", "neither a tag nor a digest"),
        ("loadTest.image.tag=latest", 'loadTest.image.tag is "latest"'),
        ("loadTest.scenario=tsunami", "values don't meet the specifications of the schema"),
        ("loadTest.settings.SPIKE=3", "values don't meet the specifications of the schema"),
    ],
)
def test_what_cannot_be_run_is_refused(chart, values, message):
    with pytest.raises(RenderError, match=message):
        chart.render(*ON, "--set", values)
