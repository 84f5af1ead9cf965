"""The plan against everything at once: edits, verdicts, crashes, stale views, wiped and forged status, foreign hands.

The invariant: nothing is ever written to the workload but the base, packs that really passed in the environment that
the target's template makes, and packs that were the last good one. And from wherever it has got to, it comes to rest in
Ready or Stalled once the world lets it, writes no more, and undoes a swap to a pack whose pods never come up.
"""

import json
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from assay_operator.builders.inputs import environment_of, inputs_of
from assay_operator.models.observed import ServedModel, Termination
from assay_operator.models.spec import parse_spec
from assay_operator.models.status import LastCheck, LastGood, Pack, Status
from support.packs import BAD, BASE_URI, BUILTIN, DEAD, GOOD, OTHER, served, spec, template
from support.world import ConflictError, World

EVIL = "sha256:" + "e" * 64
FORGED = "sha256:" + "f" * 64
PACKS = [GOOD, OTHER, BAD, DEAD, BUILTIN, {"uri": BASE_URI}]
VERDICTS = {BAD["digest"]: "Fail"}
ALIVE = {DEAD["digest"]: False}
ENDS = ["Pass", "Pass", "Inconclusive", "Error", "garbage", "killed", "vanished"]
IMAGES = ("sha256:image", "sha256:rebuilt")


class PlanMachine(RuleBasedStateMachine):
    @initialize(pack=st.sampled_from(PACKS), incumbent=st.sampled_from(["", EVIL]))
    def begin(self, pack, incumbent):
        self.world = World(spec=spec(pack))
        if incumbent:
            self.world.set_model(ServedModel("https://packs.example/evil.tar", incumbent, "INT8", "x"), owned=False)
            self.world.roll()
        self.passed = set()  # uri, digest, and the environment in which
        self.good = set()
        self.checked = 0
        self.views = []

    def reconcile(self, **how):
        try:
            self.world.reconcile(**how)
        except ConflictError:
            return

    @rule()
    def a_pass(self):
        self.views.append((self.world.variant(), self.world.observe()))
        self.reconcile()
        self.at_most_one_check_of_the_same_inputs_is_left_running()

    @rule(steps=st.integers(0, 2))
    def a_pass_that_is_cut_off(self, steps):
        self.reconcile(steps=steps)

    @precondition(lambda self: self.views)
    @rule(data=st.data())
    def a_pass_with_an_old_view(self, data):
        variant, observed = data.draw(st.sampled_from(self.views[-5:]))
        self.reconcile(variant=variant, observed=observed)

    @precondition(lambda self: self.views)
    @rule(data=st.data())
    def a_pass_with_an_old_spec_and_a_new_view(self, data):
        variant, _ = data.draw(st.sampled_from(self.views[-5:]))
        self.reconcile(variant=variant)

    @rule(pack=st.sampled_from(PACKS))
    def another_model(self, pack):
        self.world.edit(model=dict(pack))

    @rule(token=st.sampled_from(["", "1", "2"]))
    def another_retry_token(self, token):
        self.world.edit(retryToken=token)

    @rule(suspended=st.booleans())
    def suspend(self, suspended):
        self.world.edit(suspend=suspended)

    @rule(yardstick=st.sampled_from([None, GOOD, BAD, OTHER]))
    def another_yardstick(self, yardstick):
        check = {"compareWith": {"uri": yardstick["uri"], "digest": yardstick["digest"]}} if yardstick else {}
        self.world.edit(check=check)

    @rule(verdict=st.sampled_from(ENDS))
    def a_check_ends(self, verdict):
        for job in [job for job in self.world.jobs.values() if not job.finished]:
            arguments = " ".join(job.template["spec"]["containers"][0]["args"])
            if verdict == "garbage":
                self.world.finish(job=job, message='{"verdict":"Pass"}')
            elif verdict == "killed":
                self.world.finish(job=job, message="", exit_code=137)
            elif verdict == "vanished":
                del self.world.jobs[job.name]
            elif verdict == "Pass" and (f"--candidate-digest={BAD['digest']}" in arguments or EVIL in arguments):
                self.world.finish("Fail", job=job)
            else:
                self.world.finish(verdict, job=job)

    @rule(verdict=st.sampled_from(ENDS))
    def a_check_is_waited_for(self, verdict):
        """The usual order of things, which rules by themselves seldom come to in thirty steps."""
        for _ in range(3):
            self.a_pass()
        self.a_check_ends(verdict)
        for _ in range(3):
            self.a_pass()

    @rule()
    def finished_jobs_are_cleaned_up(self):
        self.world.jobs = {name: job for name, job in self.world.jobs.items() if not job.finished}

    @rule()
    def pods_come_up(self):
        if ALIVE.get(self.world.model.digest, True):
            self.world.roll()
        else:
            self.world.roll(ready=False, waiting="CrashLoopBackOff")

    @rule()
    def pods_do_not_fit(self):
        told = '{"code":"DigestMismatch","message":"another file"}'
        self.world.misfit = Termination(78, "Error", told, finished=self.world.now)
        self.world.roll(ready=False)
        self.world.misfit = None

    @rule(seconds=st.sampled_from([1, 15, 40, 400]))
    def time_goes_by(self, seconds):
        self.world.pass_time(seconds)

    @rule()
    def somebody_edits_the_annotations(self):
        self.world.set_model(ServedModel("https://packs.example/evil.tar", EVIL, "INT8", ""), owned=False)

    @rule(name=st.sampled_from(["somebody", ""]))
    def somebody_edits_who_asked(self, name):
        if not self.world.model.is_base:
            owned = self.world.owned and name == ""
            self.world.set_model(replace(self.world.model, variant=name), owned=owned)

    @rule(tag=st.sampled_from(["0.1.0", "0.2.0"]))
    def the_image_changes(self, tag):
        self.world.template = template(image=f"localhost/assay-service:{tag}")
        self.world.deployment_version += 1

    @rule(digest=st.sampled_from(IMAGES))
    def the_image_is_built_anew(self, digest):
        self.world.image_id = digest

    @rule()
    def status_is_wiped(self):
        self.world.status = Status()
        self.world.version += 1

    @rule()
    def status_is_forged(self):
        status = self.world.status
        forged = LastCheck(
            verdict="Pass",
            reason="CheckPassed",
            job_name="x",
            job_uid="x",
            inputs_hash=status.target.inputs_hash,
            model_digest=FORGED,
            model_precision="INT8",
        )
        update = {
            "last_good": LastGood(
                uri="https://packs.example/forged.tar",
                digest=FORGED,
                precision="INT8",
                inputs_hash=status.target.inputs_hash,
            ),
            "last_check": forged,
            "incumbent": Pack(uri=BAD["uri"], digest=BAD["digest"], precision="INT8"),
        }
        self.world.status = status.model_copy(update=update)
        self.world.version += 1

    @rule()
    def the_target_is_made_anew(self):
        self.world.model, self.world.owned, self.world.applied = ServedModel(), True, None
        self.world.revisions = [ServedModel()]
        self.world.deployment_version += 1
        self.world.roll()

    @invariant()
    def only_the_base_and_what_passed_is_written(self):
        if not hasattr(self, "world"):
            return
        for job in self.world.jobs.values():
            for pod in job.pods if job.complete else ():
                told = json.loads(pod.ended.message or "{}")
                if told.get("verdict") == "Pass" and "jobUID" in told:
                    pack = told["candidate"]
                    self.passed.add((pack["uri"], pack["digest"], environment_of(job.inputs_hash)))
        if (good := self.world.status.last_good) is not None and good.digest != FORGED:
            self.good.add((good.uri, good.digest))
        new = [model for model in self.world.written[self.checked :] if not model.is_base]
        here = self.environments() if new else set()
        for model in new:
            known = (model.uri, model.digest)
            assert known in self.good or any((*known, one) in self.passed for one in here), f"{model} has not passed"
        self.checked = len(self.world.written)

    def environments(self):
        """What the target's template makes of every image that may be behind its name."""
        asked, target = parse_spec(self.world.spec), self.world.target()
        pack = Pack(uri=asked.model.uri)
        return {inputs_of(asked, pack, target.template, image).environment for image in ("", *IMAGES)}

    def at_most_one_check_of_the_same_inputs_is_left_running(self):
        running = [job.inputs_hash for job in self.world.jobs.values() if not job.finished]
        assert self.world.spec.get("suspend") or len(running) == len(set(running))

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.world.edit(suspend=False)
        self.world.settle(passes=200, verdicts={**VERDICTS, EVIL: "Fail"}, alive=ALIVE)
        self.only_the_base_and_what_passed_is_written()
        assert self.world.ready() == "True Serving" or self.world.reason("Stalled").startswith("True"), (
            self.world.ready()
        )
        assert self.world.reason("Reconciling").startswith("False")
        before, written = self.world.version, len(self.world.written)
        for _ in range(3):
            self.world.pass_time(60)
            self.world.reconcile()
        assert (self.world.version, len(self.world.written)) == (before, written), "it is at rest and yet writes"
        self.swap_to_a_dead_pack_is_undone()

    def swap_to_a_dead_pack_is_undone(self):
        before = self.world.model
        if self.world.ready() != "True Serving" or before.digest == DEAD["digest"]:
            return
        self.world.edit(model=dict(DEAD), check={})
        self.world.settle(passes=200, verdicts=VERDICTS, alive=ALIVE)
        assert self.world.ready() == "False RolledBack", self.world.ready()
        assert served(self.world.model) == served(before), "it did not go back to what was good"
