"""The operator's process: rights, rivals, lost objects, watches, probes and its end."""

import httpx

from support.apiserver import WAIT_S, eventually
from support.packs import BASE_URI, FAST, GOOD, MODEL, spec, template


def test_fault_10_missing_right_is_named_and_its_grant_goes_on(target, operator, operator_rules):
    path = target.path("rbac.authorization.k8s.io/v1", "roles", "operator")
    without = [rule for rule in operator_rules if "jobs" not in rule["resources"]]
    target.api.merge(path, {"rules": without})
    eventually(lambda: _may_not_list_jobs(target), "the right is gone")
    target.variant(spec(GOOD))
    target.wait("True InsufficientPermissions", "Stalled")
    message = next(entry["message"] for entry in target.read()["status"]["conditions"] if entry["type"] == "Stalled")
    assert "jobs.batch" in message
    target.api.merge(path, {"rules": operator_rules})
    assert target.new_job()


def _may_not_list_jobs(target) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "assay-operator",
            "resourceAttributes": {"namespace": target.name, "verb": "list", "group": "batch", "resource": "jobs"},
        },
    }
    return not target.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


def test_job_that_a_policy_forbids_is_told_and_its_end_goes_on(target, operator):
    kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    policies, bindings = (f"/apis/admissionregistration.k8s.io/v1/{kind}" for kind in kinds)
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    ttl = {"expression": "object.spec.?ttlSecondsAfterFinished.orValue(0) < 3600", "message": "kept too long"}
    only = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": target.name}}}
    spec_of_it = {"matchConstraints": {"resourceRules": [rule]}, "validations": [ttl]}
    target.api.create(policies, {"metadata": {"name": target.name}, "spec": spec_of_it})
    binding = {"policyName": target.name, "validationActions": ["Deny"], "matchResources": only}
    target.api.create(bindings, {"metadata": {"name": target.name}, "spec": binding})
    eventually(lambda: _job_is_refused(target, 422), "the policy holds")
    target.variant(spec(GOOD))
    target.wait("True ApiRefused", "Stalled")
    assert "kept too long" in target.message("Stalled")
    assert target.message().rpartition(". ")[2].startswith("Change what it names: spec")
    target.api.delete(f"{policies}/{target.name}")
    assert target.new_job()


def test_fault_12_quota_of_jobs_is_told_and_is_no_missing_right(target, operator):
    hard = {"count/jobs.batch": "0"}
    path = target.path("v1", "resourcequotas")
    target.api.create(path, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
    target.api.merge(f"{path}/none/status", {"status": {"hard": hard, "used": hard}})  # as its controller would
    eventually(lambda: _job_is_refused(target, 403), "the quota holds")
    target.variant(spec(GOOD))
    target.wait("True ApiRefused", "Stalled")
    assert "exceeded quota: none" in target.message("Stalled")
    target.api.delete(f"{path}/none")
    assert target.new_job()


def _job_is_refused(target, status: int) -> bool:
    pod = {"restartPolicy": "Never", "containers": [{"name": "probe", "image": "probe"}]}
    job = {
        "metadata": {"generateName": "probe-"},
        "spec": {"ttlSecondsAfterFinished": 86400, "template": {"spec": pod}},
    }
    return target.api.http.post(target.path("batch/v1", "jobs") + "?dryRun=All", json=job).status_code == status


def test_fault_30_missing_target_is_told_until_it_is_made(namespace, operator):
    namespace.variant(spec(GOOD))
    namespace.wait("True TargetNotFound", "Stalled")
    namespace.deployment(template())
    assert namespace.new_job()


def test_fault_31_older_variant_wins_and_the_younger_follows_when_it_is_deleted(target, operator):
    target.variant(spec({"uri": BASE_URI}), name="older")
    target.wait("True Serving", name="older")
    eventually(lambda: target.read("older")["metadata"]["creationTimestamp"] != _now(target), "a second has gone by")
    target.variant(spec({"uri": BASE_URI}), name="younger")
    target.wait("True TargetConflict", "Stalled", name="younger")
    target.api.delete(target.path("assay.dev/v1alpha1", "modelvariants", "older"))
    target.wait("True Serving", name="younger")


def _now(target) -> str:
    from email.utils import parsedate_to_datetime

    date = target.api.http.get("/version").headers["Date"]
    return parsedate_to_datetime(date).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_fault_34_deleted_variant_returns_at_once_and_leaves_what_serves(swapped):
    answer = swapped.api.http.delete(swapped.path("assay.dev/v1alpha1", "modelvariants", "assay"))
    assert answer.json()["status"] == "Success"
    assert swapped.annotations() == MODEL
    assert "finalizers" not in answer.json().get("metadata", {})


def test_fault_39_wiped_status_leaves_it_serving_unverified_until_it_is_checked(swapped):
    for job in swapped.jobs():
        swapped.api.http.request(
            "DELETE",
            swapped.path("batch/v1", "jobs", job["metadata"]["name"]),
            json={"propagationPolicy": "Background"},
        ).raise_for_status()
    path = swapped.path("assay.dev/v1alpha1", "modelvariants", "assay", "status")
    swapped.api.merge(path, {"status": None})
    swapped.wait("False Unverified", "Available")
    job = swapped.new_job()
    generation = swapped.read_deployment()["metadata"]["generation"]
    swapped.finish(job)
    swapped.wait("True Serving")
    assert swapped.read_deployment()["metadata"]["generation"] == generation


def test_settled_variant_is_not_written_again(swapped, operator):
    passes = _passes(operator)
    eventually(lambda: _passes(operator) >= passes + 3, "it has come to rest")
    version = swapped.read()["metadata"]["resourceVersion"]
    passes = _passes(operator)
    eventually(lambda: _passes(operator) >= passes + 3, "three more passes were made")
    assert swapped.read()["metadata"]["resourceVersion"] == version


def _passes(operator) -> float:
    line = next(
        line for line in operator.metrics().splitlines() if line.startswith("assay_reconcile_duration_seconds_count")
    )
    return float(line.split()[1])


def test_operator_stops_on_sigterm_at_once(run_operator):
    with run_operator() as operator:
        assert operator.answers("/livez") == 200
        assert operator.end() == 0


def test_news_arrives_by_watch_long_before_the_resync(target, run_operator):
    with run_operator(resync_seconds=10 * WAIT_S):
        target.variant(spec(GOOD, **FAST))
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        target.roll()
        target.wait("True Serving")


def test_probe_paths(operator):
    base = f"http://127.0.0.1:{operator.port}"
    assert httpx.get(f"{base}/elsewhere").status_code == 404
    assert "assay_last_resync_timestamp_seconds" in operator.metrics()
    assert 'assay_api_requests_total{code="200",method="GET"}' in operator.metrics()
