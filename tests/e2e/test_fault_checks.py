"""Checks that somebody takes away: an attempt is counted where one was lost, and only there."""

from support.kube import wait_for


def test_fault_14_drained_check_is_replaced_and_no_attempt_is_counted(bench):
    bench.target("drained")
    variant = bench.ask(bench.model("good", "slow/8"), name="drained", target="drained")
    job = bench.running_job("drained")
    chosen = "--selector=assay.dev/modelvariant=drained"
    (first,) = bench.cluster.items("pods", chosen)
    assert bench.drain("assay.dev/modelvariant=drained")
    bench.reopen()
    settled = variant.settle()
    assert variant.condition("CheckPassed", settled)["status"] == "True", variant.explain()
    assert [one["metadata"]["uid"] for one in bench.jobs("drained")] == [job["metadata"]["uid"]]
    assert settled["status"]["target"]["attempt"] == 1
    done = [pod["metadata"]["uid"] for pod in bench.cluster.items("pods", chosen) if is_done(pod)]
    assert len(done) == 1
    assert first["metadata"]["uid"] not in done


def is_done(pod):
    return pod["status"]["phase"] == "Succeeded"


def test_fault_17_deleted_job_costs_an_attempt_before_its_result_and_nothing_after(bench):
    variant = bench.ask(bench.model("good", "slow/6"), check={"maxAttempts": 2})
    job = bench.running_job()
    bench.cluster.kubectl("delete", "job", job["metadata"]["name"], "--wait")
    settled = variant.settle()
    assert variant.condition("Ready", settled)["status"] == "True", variant.explain()
    assert settled["status"]["target"]["attempt"] == 2
    generation = bench.deployment()["metadata"]["generation"]
    bench.cluster.kubectl("delete", "jobs", "--all", "--wait")
    # Whoever starts looks at everything before it calls itself ready: had it a check to make, it would be there.
    bench.stop_operator()
    bench.start_operator()
    wait_for("Ready", lambda: variant.is_true("Ready"), 30, variant.explain)
    assert bench.jobs() == []
    assert bench.deployment()["metadata"]["generation"] == generation
