"""Values that contradict each other are refused before anything is installed, with what was seen and what to do."""

import pytest

from support.chart import RenderError

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("terminationGracePeriodSeconds=19", "terminationGracePeriodSeconds is 19, but a stopping pod needs 20"),
        ("drain.delaySeconds=30,terminationGracePeriodSeconds=30", "a stopping pod needs 45"),
        (
            "settings.STORE_URI=s3://answers/a,terminationGracePeriodSeconds=24",
            "a stopping pod needs 25: drain.delaySeconds + drain.timeoutSeconds + drain.storeTimeoutSeconds + 5",
        ),
        (
            "settings.TRACES_ENDPOINT=http://c:4318,terminationGracePeriodSeconds=21",
            "a stopping pod needs 22: drain.delaySeconds + drain.timeoutSeconds + drain.tracesTimeoutSeconds + 5",
        ),
        (
            "settings.TRACES_ENDPOINT=http://c:4318,settings.STORE_URI=s3://a/b,terminationGracePeriodSeconds=24",
            "a stopping pod needs 25: drain.delaySeconds + drain.timeoutSeconds + drain.storeTimeoutSeconds + 5",
        ),
        ("settings.DEADLINE_MS=10001", "settings.DEADLINE_MS is 10001, and drain.timeoutSeconds is 10"),
        ("resources.limits.memory=null", "resources.limits.memory is missing"),
        ("resources.limits.cpu=null", "resources.limits.cpu is missing"),
        ("resources.limits=null", "resources.limits.cpu is missing"),
        ("resources=null", "resources.limits.memory is missing"),
        ("image.tag=latest", 'image.tag is "latest"'),
        ("operator.image.tag=latest", 'operator.image.tag is "latest"'),
        ("baseModel.uri=https://models.example.com/m.tar", "baseModel.digest is missing"),
        ("podDisruptionBudget.maxUnavailable=2", "podDisruptionBudget.maxUnavailable is 2 with 2 replicas"),
        (
            "autoscaling.enabled=true,podDisruptionBudget.maxUnavailable=2",
            "podDisruptionBudget.maxUnavailable is 2 with 2 replicas",
        ),
        ("autoscaling.enabled=true,autoscaling.minReplicas=7", "autoscaling.minReplicas is 7 and maxReplicas is 6"),
        ("autoscaling.enabled=true,autoscaling.cpuAverageValue=2", "so it would never scale up"),
        ("autoscaling.enabled=true,resources.limits.cpu=1400m", "so it would never scale up"),
        ("serviceAccount.create=false", "serviceAccount.name is empty"),
        ("operator.serviceAccount.create=false", "operator.serviceAccount.create is false and its name is empty"),
        ("guard.enabled=true,operator.enabled=false", "nobody could change the model any more"),
        ("extraEnv[0].name=ASSAY_PORT,extraEnv[0].value=here", "extraEnv sets ASSAY_PORT"),
        ("extraEnv[0].name=A,extraEnv[1].name=A", "extraEnv sets A"),
        ("settings.TOP_K=5,extraEnv[0].name=ASSAY_TOP_K,extraEnv[0].value=three", "extraEnv sets ASSAY_TOP_K"),
    ],
)
def test_contradiction_is_refused(chart, values, message):
    with pytest.raises(RenderError, match="These values contradict each other") as refusal:
        chart.render("--set", values)
    assert message in str(refusal.value)


def test_guard_is_refused_by_a_kubernetes_that_does_not_know_it(chart):
    older = ("--kube-version", "1.29.9")
    with pytest.raises(RenderError, match=r"this is Kubernetes v?1\.29\.9"):
        chart.render("--set", "guard.enabled=true", *older)
    assert chart.render(*older)


def test_all_contradictions_are_told_at_once(chart):
    with pytest.raises(RenderError) as refusal:
        chart.render("--set", "image.tag=latest,terminationGracePeriodSeconds=1,resources.limits.cpu=null")
    assert str(refusal.value).count("\n- ") == 3


@pytest.mark.parametrize(
    "values",
    [
        "terminationGracePeriodSeconds=20",
        "settings.STORE_URI=s3://answers/a,terminationGracePeriodSeconds=25",
        "settings.DEADLINE_MS=10000",
        "replicas=0",
        "replicas=1,podDisruptionBudget.maxUnavailable=1",
        "image.tag=latest,image.digest=sha256:" + "0" * 64,
        "baseModel.uri=https://models.example.com/m.tar,baseModel.digest=sha256:" + "0" * 64,
        "operator.enabled=false,operator.serviceAccount.create=false",
        "autoscaling.enabled=true,resources.limits.cpu=1.5",
    ],
)
def test_what_only_looks_like_a_contradiction_is_rendered(chart, values):
    assert chart.render("--set", values).of("Deployment")


@pytest.mark.parametrize(
    "values", ["replcias=3", "operator.resources.limits.gpu=1", "podAnnotations.assay\\.dev/variant=x"]
)
def test_helm_itself_refuses_what_the_schema_does_not_know(chart, values):
    with pytest.raises(RenderError, match="values don't meet the specifications of the schema"):
        chart.render("--set", values)
