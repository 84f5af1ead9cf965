"""The operator dies between any two of its steps: one check, one rollout, and never a model that did not pass."""

import json
import os
import random
import time

from support.kube import wait_for

ROUNDS = int(os.environ.get("KILL_ROUNDS", "2"))
"""Rounds of random deaths; `KILL_ROUNDS=10` for a longer look."""

FIRST_S, LONGEST_S = 4, 12  # until the first death, and between two: a check takes 5 s, with its rollout 25 s


def test_fault_1_2_operator_that_died_unheard_finds_its_job_and_the_pass_again(bench):
    variant = bench.variant()
    before = variant.read()["status"]
    bench.ask(bench.model("good", "slow/8"))
    job = bench.running_job()
    generation = bench.deployment()["metadata"]["generation"]
    bench.stop_operator()
    # As if it had died in the moment between the Job's making and the status that tells of it.
    bench.cluster.kubectl(
        "replace", "--subresource=status", "-f", "-", stdin=json.dumps(variant.read() | {"status": before})
    )
    # The check passes while nobody hears of it: as if it had died between the verdict and the rollout.
    bench.cluster.kubectl("wait", "--for=condition=Complete", f"job/{job['metadata']['name']}", "--timeout=90s")
    assert bench.annotations() == {}
    bench.start_operator()
    settled = variant.settle()
    assert variant.condition("Ready", settled)["status"] == "True", variant.explain()
    assert [one["metadata"]["uid"] for one in bench.jobs()] == [job["metadata"]["uid"]]
    assert settled["status"]["lastCheck"]["jobUID"] == job["metadata"]["uid"]
    assert settled["status"]["target"]["attempt"] == 1
    assert bench.deployment()["metadata"]["generation"] == generation + 1
    assert bench.served() == {bench.packs["good"].digest}


class Deaths:
    """An operator that dies of one thing or another until its variant has settled."""

    def __init__(self, bench, variant, chance):
        self._bench, self._variant, self._chance = bench, variant, chance
        self._due = time.monotonic() + chance.uniform(0, FIRST_S)
        self.number = 0
        self.checks = {}
        """The uids of the Jobs that were seen, by inputs and attempt."""

    def settled(self):
        """Whether it has; else look at the Jobs, and let the operator die if its time has come."""
        settled = self._variant.read()
        if any(self._variant.condition(kind, settled).get("status") == "True" for kind in ("Ready", "Stalled")):
            return True
        for job in self._bench.jobs():
            asked = job["metadata"]["annotations"]
            key = asked["assay.dev/inputs-hash"], asked["assay.dev/attempt"]
            self.checks.setdefault(key, set()).add(job["metadata"]["uid"])
        if time.monotonic() >= self._due:
            self._kill()
            self._due = time.monotonic() + self._chance.uniform(0, LONGEST_S)
        return False

    def _kill(self):
        how = self._chance.choice(("kill", "end", "replace"))
        if how == "replace" and (names := self._bench.operator_pods()):
            self._bench.cluster.kubectl("delete", "pod", *names, "--wait=false", "--ignore-not-found")
        else:
            self._bench.stop_operator(kill=how == "kill")
            self._bench.cluster.kubectl("scale", "deployment/assay-operator", "--replicas=1")
        self.number += 1


def test_fault_1_2_operator_killed_at_random_gets_stuck_nowhere_and_checks_once(bench):
    chance = random.Random(int(os.environ.get("KILL_SEED", "6")))
    deaths = 0
    for number in range(ROUNDS):
        bench.new_token()
        name = ("good", "wrong", "other")[number % 3]
        variant = bench.ask(bench.model(name, f"slow/{chance.randint(2, 6)}"), rollout={"soakSeconds": 5})
        dying = Deaths(bench, variant, chance)
        wait_for("Ready or Stalled", dying.settled, 300, variant.explain)
        deaths += dying.number
        if name == "wrong":
            assert variant.is_true("Stalled"), variant.explain()
            assert variant.condition("CheckPassed")["reason"] == "AccuracyBelowThreshold"
        else:
            assert variant.is_true("Ready"), variant.explain()
            assert bench.served() == {bench.packs[name].digest}
        assert all(len(uids) == 1 for uids in dying.checks.values()), f"a check was made twice: {dying.checks}"
        inputs = variant.read()["status"]["target"]["inputsHash"]
        attempts = [attempt for asked, attempt in dying.checks if asked == inputs]
        assert attempts == ["1"], f"one check was enough: {dying.checks}"
        assert bench.packs["wrong"].digest not in bench.rolled_out()
    assert deaths >= ROUNDS
    wait_for("an operator", lambda: bench.operator_pods(), 60)
    print(json.dumps({"rounds": ROUNDS, "deaths": deaths}))
