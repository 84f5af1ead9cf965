"""The pods that the real Helm renders: their contracts with the service, the operator and the cluster."""

import pytest

pytestmark = pytest.mark.system


def test_model_comes_from_the_pods_annotations_and_the_base_from_values(defaults):
    env = defaults.environment()
    for variable, annotation in {
        "ASSAY_MODEL_URI": "model-uri",
        "ASSAY_MODEL_DIGEST": "model-digest",
        "ASSAY_MODEL_PRECISION": "model-precision",
        "ASSAY_VARIANT": "variant",
    }.items():
        assert env[variable] == {"fieldRef": {"fieldPath": f"metadata.annotations['assay.dev/{annotation}']"}}
    assert env["ASSAY_BASE_MODEL_URI"] == "builtin:efficientnet-lite0-fp32"
    assert env["ASSAY_BASE_MODEL_DIGEST"] == ""


def test_threads_and_admission_are_sized_by_the_limits(defaults):
    env, resources = defaults.environment(), defaults.container()["resources"]
    name = {"containerName": "classifier"}
    assert env["ASSAY_CPU_LIMIT_MILLICORES"] == {"resourceFieldRef": name | {"resource": "limits.cpu", "divisor": "1m"}}
    assert env["ASSAY_MEMORY_LIMIT_BYTES"] == {"resourceFieldRef": name | {"resource": "limits.memory", "divisor": "1"}}
    assert resources["limits"] == {"cpu": "2", "memory": "2Gi"}


def test_two_pods_one_more_in_a_rollout_the_operator_and_a_check_fit_two_cores(defaults):
    def millicores(name):
        cpu = defaults.container(name)["resources"]["requests"]["cpu"]
        assert cpu.endswith("m")
        return int(cpu[:-1])

    check, system = 100, 950  # a check's cpuRequest by default; what CoreDNS and the control plane of kind ask for
    assert 3 * millicores("assay") + millicores("assay-operator") + check + system <= 2000


def test_no_environment_variable_is_set_twice_and_all_are_text(rendered):
    for pod in rendered.pods().values():
        for item in pod["spec"]["containers"]:
            names = [variable["name"] for variable in item.get("env", [])]
            assert len(names) == len(set(names))  # server-side apply (Helm 4) refuses a list with a key twice
            assert all(isinstance(variable.get("value", ""), str) for variable in item.get("env", []))


def test_no_template_writes_the_annotations_that_belong_to_the_operator(rendered):
    for deployment in rendered.of("Deployment"):
        assert "annotations" not in deployment["metadata"]
        annotations = deployment["spec"]["template"]["metadata"].get("annotations", {})
        assert not [key for key in annotations if key.startswith("assay.dev/")]


def test_map_of_annotations_is_always_there_so_that_no_merge_removes_it_whole(rendered):
    (pod,) = (pod for pod in rendered.pods().values() if pod["spec"]["containers"][0]["name"] == "classifier")
    assert pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "classifier"


def test_target_is_labelled_on_the_deployment_and_its_pods_and_nothing_else_is(rendered):
    for deployment in rendered.of("Deployment"):
        target = deployment["spec"]["template"]["spec"]["containers"][0]["name"] == "classifier"
        for labels in (deployment["metadata"]["labels"], deployment["spec"]["template"]["metadata"]["labels"]):
            assert labels.get("assay.dev/target") == ("true" if target else None)


def test_every_pod_meets_the_restricted_pod_security_standard_with_a_read_only_root(rendered):
    for name, pod in rendered.pods().items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert all(set(volume) == {"name", "emptyDir"} for volume in spec.get("volumes", []))
        assert all(volume["emptyDir"]["sizeLimit"] for volume in spec.get("volumes", []))
        for item in spec["containers"]:
            assert item["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_every_pod_is_spared_service_links_and_only_the_operator_gets_a_token(rendered):
    for pod in rendered.pods().values():
        assert pod["spec"]["enableServiceLinks"] is False
        operator = pod["spec"]["containers"][0]["name"] == "operator"
        assert pod["spec"]["automountServiceAccountToken"] is operator
    for account in rendered.of("ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_images_are_pinned_and_pulled_only_if_not_there(rendered):
    for pod in rendered.pods().values():
        for item in pod["spec"]["containers"]:
            assert "@sha256:" in item["image"] or item["image"].endswith(":0.1.0")
            assert item["imagePullPolicy"] == "IfNotPresent"


def test_service_leads_to_the_port_of_the_probes(defaults):
    pod = defaults.container()
    assert pod["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]
    (port,) = defaults.get("Service", "assay")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, "http")
    paths = {name: pod[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert paths == {
        "startup": {"path": "/readyz", "port": "http"},
        "readiness": {"path": "/readyz", "port": "http"},
        "liveness": {"path": "/livez", "port": "http"},
    }


def test_grace_period_follows_the_drain(chart):
    objects = chart.render("--set", "drain.delaySeconds=20,drain.timeoutSeconds=30")
    assert objects.get("Deployment", "assay")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 55
    env = objects.environment()
    assert (env["ASSAY_DRAIN_DELAY_S"], env["ASSAY_DRAIN_TIMEOUT_S"]) == ("20", "30")


@pytest.mark.parametrize(
    "where", ["settings.STORE_URI=s3://answers/a", "extraEnv[0].name=ASSAY_STORE_URI,extraEnv[0].value=s3://answers/a"]
)
def test_grace_period_has_time_to_store_what_waits(chart, where):
    objects = chart.render("--set", f"drain.storeTimeoutSeconds=40,{where}")
    assert objects.get("Deployment", "assay")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 60
    env = objects.environment()
    assert (env["ASSAY_STORE_URI"], env["ASSAY_DRAIN_STORE_TIMEOUT_S"]) == ("s3://answers/a", "40")


@pytest.mark.parametrize(
    "where",
    [
        "settings.TRACES_ENDPOINT=http://c:4318",
        "extraEnv[0].name=ASSAY_TRACES_ENDPOINT,extraEnv[0].value=http://c:4318",
    ],
)
def test_grace_period_has_time_to_send_the_traces_that_wait(chart, where):
    objects = chart.render("--set", f"settings.STORE_URI=s3://a/b,drain.tracesTimeoutSeconds=7,{where}")
    assert objects.get("Deployment", "assay")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 27
    env = objects.environment()
    assert (env["ASSAY_TRACES_ENDPOINT"], env["ASSAY_DRAIN_TRACES_TIMEOUT_S"]) == ("http://c:4318", "7")


def test_settings_become_environment_with_whole_numbers(chart):
    env = chart.render("--set", "settings.MAX_BODY_BYTES=16777216,settings.LOG_FORMAT=json").environment()
    assert env["ASSAY_MAX_BODY_BYTES"] == "16777216"
    assert env["ASSAY_LOG_FORMAT"] == "json"


def test_operators_settings_become_its_environment(chart):
    values = 'operator.settings={"RESYNC_SECONDS": 7.5, "RUNNING_CHECKS": 1}'  # --set makes 7.5 a text
    env = chart.render("--set-json", values).environment("assay-operator")
    assert (env["ASSAY_OPERATOR_RESYNC_SECONDS"], env["ASSAY_OPERATOR_RUNNING_CHECKS"]) == ("7.5", "1")


def test_digest_of_an_image_wins_over_its_tag(chart):
    digest = "sha256:" + "a" * 64
    objects = chart.render("--set", f"image.tag=9.9.9,image.digest={digest}")
    assert objects.container()["image"] == f"localhost/assay-service@{digest}"
    assert objects.environment("assay-operator")["ASSAY_OPERATOR_NAMESPACES"] == "assay"


def test_helm_test_classifies_a_picture_through_the_service_with_the_services_own_image(defaults):
    pod = defaults.get("Pod", "assay-test")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (item,) = pod["spec"]["containers"]
    assert item["image"] == defaults.container()["image"]
    assert "assay classify --url http://assay.assay:80 " in item["args"][0]
