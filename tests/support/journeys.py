"""How a ModelVariant gets into each of its states, in a world in memory.

Verdicts on figures are those of the check itself (`assay.check.verdict`), so messages are the ones that people see.
"""

from collections.abc import Callable
from dataclasses import replace

from assay.check import agreement, cost
from assay.check.agreement import Outcome
from assay.check.cost import Block
from assay.check.verdict import Criteria, Verdict, judge, labels_differ
from assay_operator.models.observed import ServedModel, Termination
from assay_operator.models.status import Status
from assay_operator.plan import plan
from support.packs import BAD, BASE_URI, DEAD, GOOD, OTHER, result, spec, template
from support.world import World


def figures(contained: int, ratio: float = 0.5, spread: float = 0.0) -> Verdict:
    """The check's own verdict on 400 images of as many photos, and 100 timings."""
    seen = [Outcome(str(i), i < contained, i < contained, True) for i in range(400)]
    ratios = [ratio * (1 + spread * (i / 99 - 0.5)) for i in range(100)]
    paid = cost.summarise([Block((one, one), (1.0, 1.0)) for one in ratios], 0.95)
    return judge(Criteria(), agreement.summarise(seen, 0.95), paid)


def other_labels() -> Verdict:
    verdict = labels_differ(["gull"], ["gull", "kite"])
    assert verdict is not None
    return verdict


def started(pack: dict, **changes) -> World:
    world = World(spec=spec(pack, **changes))
    world.reconcile()
    return world


def refused(verdict: Verdict) -> Callable[[], World]:
    def make() -> World:
        world = started(BAD)
        finish(world, verdict)
        world.settle()
        return world

    return make


def finish(world: World, verdict: Verdict) -> None:
    """End the check with the check's own sentence."""
    line = result(world.job(), verdict.verdict, reason=verdict.reason, message=verdict.message)
    world.finish(verdict.verdict, message=line)


def used_up(end: Callable[[World], object], **world_of) -> Callable[[], World]:
    """Attempts that all end like this."""

    def make() -> World:
        world = World(**world_of)
        for _ in range(200):  # a check that does not start is looked at every 10 s of its 300
            made = world.reconcile()
            if world.jobs and not world.job().finished and not made.steps:
                end(world)
            elif not made.steps and made.again_s is None:
                return world
            world.pass_time(max(1.0, made.again_s or 0.0))
        raise AssertionError(f"attempts go on: {world.ready()}")

    return make


def error(reason: str) -> Callable[[], World]:
    return used_up(lambda world: world.finish("Error", reason=reason))


def pending(asked: dict | None = None, **pod) -> Callable[[], World]:
    def end(world: World) -> None:
        job = world.job()
        made = job.pods or (replace(world.check_pod(job), started=None, phase="Pending", **pod),)
        world.jobs[job.name] = replace(job, pods=made)

    return used_up(end, spec=asked or spec())


def swapped(pack: dict = GOOD) -> World:
    world = World(spec=spec(pack))
    world.settle()
    return world


def rolling(pack: dict, **changes) -> World:
    world = swapped()
    world.edit(model=dict(pack), **changes)
    world.reconcile()
    world.finish("Pass")
    world.reconcile()
    return world


def rolled_back(spoil: Callable[[World], object]) -> Callable[[], World]:
    def make() -> World:
        world = rolling(OTHER)
        spoil(world)
        world.reconcile()
        world.misfit, world.replica_failure = None, ""
        world.settle()
        return world

    return make


def deadline(world: World) -> None:
    world.roll(ready=False, waiting="CrashLoopBackOff")
    world.pass_time(301)


def crash_in_the_soak(world: World) -> None:
    world.roll()
    world.reconcile()
    world.pods[0] = world.pod(0, ready=False, restarts=1, waiting="CrashLoopBackOff")


def no_fit(world: World, code: str) -> Termination:
    told = f'{{"code":"{code}","message":"it does not fit"}}'
    return Termination(78, "Error", told, finished=world.now)


def misfit(code: str) -> Callable[[World], None]:
    def spoil(world: World) -> None:
        world.misfit = no_fit(world, code)
        world.roll(ready=False)

    return spoil


def later_misfit() -> World:
    world = swapped()
    world.pods[1] = replace(world.pods[1], ready=False, ended=no_fit(world, "CpuFeatureMissing"))
    world.reconcile()
    return world


def quota(world: World) -> None:
    world.replica_failure = "exceeded quota: few"


def going_back() -> World:
    world = rolling(DEAD)
    deadline(world)
    world.reconcile()
    return world


def rollback_fails() -> World:
    world = going_back()
    world.pods = [world.pod(0, ready=False, waiting="CrashLoopBackOff")]  # and the old ones are gone, with their node
    world.reconcile()
    world.pass_time(301)
    world.reconcile()
    return world


def base_does_not_come_up() -> World:
    world = World(spec=spec({"uri": BASE_URI}))
    world.pods = [world.pod(0, ready=False, waiting="ImagePullBackOff")]
    world.reconcile()
    world.pass_time(301)
    world.reconcile()
    return world


def scaled_to_zero() -> World:
    world = swapped()
    world.replicas = 0
    world.pods = []
    world.settle()
    return world


def scaled_to_zero_in_a_trial() -> World:
    world = rolling(OTHER)
    world.replicas = 0
    world.pods = []
    world.settle()
    return world


def bypassed() -> World:
    world = swapped()
    world.edit(model=dict(OTHER))
    world.skip_check = OTHER["digest"]
    world.settle()
    return world


def unproved() -> World:
    world = swapped()
    world.status = Status()
    world.jobs.clear()
    world.settle(passes=60, verdicts={GOOD["digest"]: "Error"})
    return world


def settled(**world) -> Callable[[], World]:
    def make() -> World:
        made = World(**world)
        made.settle()
        return made

    return make


def name_taken() -> World:
    world = World()
    world.taken.add(plan(world.variant(), world.observe()).steps[0].name)
    world.settle()
    return world


def suspended() -> World:
    world = started(GOOD)
    world.edit(suspend=True)
    world.settle()
    return world


def soaking() -> World:
    world = rolling(OTHER)
    world.roll()
    world.reconcile()
    return world


def image_changed() -> World:
    world = swapped()
    world.template = template(image="localhost/assay-service:0.2.0")
    world.deployment_version += 1
    world.reconcile()
    return world


def waiting() -> World:
    world = started(GOOD)
    finish(world, figures(400, spread=0.9))
    world.reconcile()
    return world


def drift_corrected() -> World:
    world = swapped()
    world.pass_time(60)
    world.set_model(ServedModel("https://packs.example/evil.tar", "sha256:" + "e" * 64, "INT8", ""), owned=False)
    world.reconcile()
    return world


def spoilt_later(spoil: Callable[[World], object]) -> Callable[[], World]:
    """What serves has passed, and then something is wrong with the variant itself."""

    def make() -> World:
        world = swapped()
        spoil(world)
        world.reconcile()
        return world

    return make


def running(**changes) -> Callable[[], World]:
    def make() -> World:
        world = World(**changes)
        world.reconcile()
        return world

    return make
