"""Many targets with a ModelVariant each, in one namespace; their controllers and kubelets are played from watches.

What must never happen is looked for in the very events that the API server tells: see `Fleet.broken`.
"""

import contextlib
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx

from assay_operator.constants import CHECK_COMPONENT, COMPONENT_LABEL, VARIANT_LABEL
from support.controllers import Namespace
from support.packs import BAD, BASE_URI, BUILTIN_DIGEST, DEAD, GOOD, OTHER, template

PACKS = {"good": GOOD, "other": OTHER, "bad": BAD, "dead": DEAD, "base": {"uri": BASE_URI}}
CHECKS = f"{COMPONENT_LABEL}={CHECK_COMPONENT}"
REVISIONS = 4  # ReplicaSets of a Deployment that are kept; Kubernetes keeps eleven
HANDS = 6  # requests at a time: the operator keeps eight
CROSSED_S = 10.0  # a check may end just when it is being deleted because nobody asks for it any more
MISFIT = {"code": "PackInvalid", "message": "no model"}


class Fleet:
    """Use as a context: its threads end with it.

    check_s: a check's Job takes a random time up to this. crashes: share of checks that end without a result. kept_s: a
    finished Job is removed after this; None keeps it, and then no name may ever be made twice. held: no check ends
    before ``go`` is set.
    """

    def __init__(
        self,
        namespace: Namespace,
        *,
        check_s: float = 0.2,
        crashes: float = 0.0,
        kept_s: float | None = None,
        held: bool = False,
        seed: int = 0,
    ) -> None:
        self.namespace, self.check_s, self.crashes, self.kept_s = namespace, check_s, crashes, kept_s
        self.random = random.Random(seed)
        self.broken: list[str] = []
        self.most_checks = self.checks_made = self.rollouts = 0
        self.approved: defaultdict[str, set[str]] = defaultdict(lambda: {""})
        self._running: dict[str, str] = {}  # unfinished Jobs, with their variants
        self._judged: dict[str, float] = {}
        self._sets: defaultdict[str, list[str]] = defaultdict(list)
        self._busy: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._over, self.go = threading.Event(), threading.Event()
        if not held:
            self.go.set()
        self._pool = ThreadPoolExecutor(HANDS)
        self._threads = [
            threading.Thread(target=self._watch, args=arguments, daemon=True)
            for arguments in (("apps/v1", "deployments", "", self._deployment), ("batch/v1", "jobs", CHECKS, self._job))
        ]

    def __enter__(self) -> "Fleet":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.go.set()
        self._pool.shutdown(cancel_futures=True)

    def add(self, names: list[str], pack: str = "good") -> None:
        """Make a Deployment and a ModelVariant for each name."""

        def one(name: str) -> None:
            made = template()
            made["metadata"]["labels"]["app"] = name
            self._sets[name].append(f"{name}-h1")  # which comes with it
            self.namespace.deployment(made, name, replicas=1)
            self.namespace.variant(
                {"targetRef": {"name": name}, "model": PACKS[pack], "rollout": {"soakSeconds": 0}}, name
            )

        with ThreadPoolExecutor(HANDS) as pool:
            list(pool.map(one, names))

    def ask(self, name: str, pack: str, **spec: object) -> None:
        """Edit a variant so that it asks for this pack."""
        # A merge keeps what the other pack's model had and this one has not.
        model = {"digest": None, "precision": None} | PACKS[pack]
        self.namespace.edit({"model": model, **spec}, name)

    # -- what has come of it
    def variants(self) -> list[dict]:
        return self.namespace.api.get(self.namespace.path("assay.dev/v1alpha1", "modelvariants"))["items"]

    def unsettled(self) -> list[str]:
        """Variants that are neither Ready nor Stalled for the spec they have now."""
        moving = [raw for raw in self.variants() if not (_true(raw, "Ready") or _true(raw, "Stalled"))]
        return [raw["metadata"]["name"] for raw in moving]

    def wrong(self) -> list[str]:
        """What is not as it should be once all have settled."""
        deployments = self.namespace.api.get(self.namespace.path("apps/v1", "deployments"))["items"]
        served = {raw["metadata"]["name"]: _digest(raw) for raw in deployments}
        found = [f"check {job} still runs" for job in list(self._running)]
        for raw in self.variants():
            name, model = raw["metadata"]["name"], raw["spec"]["model"]
            takes = model["uri"] not in (BAD["uri"], DEAD["uri"])
            if _true(raw, "Ready") != takes or (takes and served[name] != model.get("digest", "")):
                told = [f"{entry['type']}={entry['status']} {entry['reason']}" for entry in raw["status"]["conditions"]]
                found.append(f"{name} asks for {model['uri']}, serves {served[name] or 'the base'}: {told}")
        return found

    # -- the cluster's part
    def _watch(self, group: str, plural: str, labels: str, heard: Callable[[str, dict], None]) -> None:
        path, version = self.namespace.path(group, plural), ""
        query = {"labelSelector": labels} if labels else {}
        while not self._over.is_set():
            if not version:
                answer = self.namespace.api.get(path, **query)
                version = answer["metadata"]["resourceVersion"]
                for raw in answer["items"]:
                    heard("ADDED", raw)
            with contextlib.suppress(httpx.TransportError):
                for event in self._events(path, query | {"watch": "true", "resourceVersion": version}):
                    told = event["object"]
                    version = "" if event["type"] == "ERROR" else told["metadata"]["resourceVersion"]
                    if version:
                        heard(event["type"], told)

    def _events(self, path: str, query: dict) -> Iterator[dict]:
        with self.namespace.api.http.stream("GET", path, params=query, timeout=None) as answer:
            for line in answer.iter_lines():
                if self._over.is_set():
                    return
                yield json.loads(line)

    def _deployment(self, kind: str, raw: dict) -> None:
        name = raw["metadata"]["name"]
        if kind == "DELETED":
            return
        if _digest(raw) not in self.approved[name]:
            self.broken.append(f"{name} was told to serve {_digest(raw)}, which never passed")
        if raw["metadata"]["generation"] != raw.get("status", {}).get("observedGeneration"):
            self._do(name, lambda: self._roll(name))

    def _roll(self, name: str) -> None:
        deployment = self.namespace.read_deployment(name)
        generation = deployment["metadata"]["generation"]
        if generation == deployment.get("status", {}).get("observedGeneration") or not self._new_set(name, generation):
            return
        dead = _digest(deployment) == DEAD["digest"]
        self.namespace.roll(name, ready=not dead, misfit=MISFIT if dead else None)
        self.rollouts += 1

    def _new_set(self, name: str, generation: int) -> bool:
        """Note the ReplicaSet that is about to be made, and remove the oldest ones. False if it was made before."""
        sets, made = self._sets[name], f"{name}-h{generation}"
        if made in sets:
            return False
        sets.append(made)
        while len(sets) > REVISIONS:
            self._remove("apps/v1", "replicasets", sets.pop(0))
        return True

    def _job(self, kind: str, raw: dict) -> None:
        name, variant = raw["metadata"]["name"], raw["metadata"]["labels"][VARIANT_LABEL]
        pod = f"{name}-{raw['metadata']['uid'][:5]}"
        if kind == "DELETED":
            self._running.pop(name, None)
            if time.monotonic() - self._judged.get(name, 0.0) < CROSSED_S:
                del self._judged[name]
            self._do(pod, lambda: self._remove("v1", "pods", pod))
        elif raw.get("status", {}).get("conditions"):
            self._running.pop(name, None)
            if self.kept_s is not None:
                self._later(self.kept_s, f"{name}'s removal", lambda: self._remove("batch/v1", "jobs", name))
        elif name not in self._running:
            self.checks_made += 1
            if variant in self._running.values():
                self.broken.append(f"{variant} has a second check: {name}")
            if name in self._judged and self.kept_s is None:
                self.broken.append(f"{name} was made once more after its end")
            self._running[name] = variant
            self.most_checks = max(self.most_checks, len(self._running))
            self._later(self.random.uniform(0, self.check_s), name, lambda: self._finish(raw, variant, pod))

    def _finish(self, job: dict, variant: str, pod: str) -> None:
        arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
        digest = next((one.split("=", 1)[1] for one in arguments if one.startswith("--candidate-digest=")), "")
        self.go.wait()
        try:
            if self.random.random() < self.crashes:
                self.namespace.finish(job, message="", exit_code=1)
            elif digest == BAD["digest"]:
                self.namespace.finish(job, "Fail")
            else:
                self.approved[variant].add(digest or BUILTIN_DIGEST)
                self.namespace.finish(job)
            self._judged[job["metadata"]["name"]] = time.monotonic()
        except AssertionError:  # the Job was deleted meanwhile
            self._remove("v1", "pods", pod)

    def _remove(self, group: str, plural: str, name: str) -> None:
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        self.namespace.api.http.request("DELETE", self.namespace.path(group, plural, name), json=options)

    # -- one thing at a time for each name
    def _later(self, delay_s: float, key: str, act: Callable[[], None]) -> None:
        timer = threading.Timer(delay_s, lambda: self._over.is_set() or self._do(key, act))
        timer.daemon = True
        timer.start()

    def _do(self, key: str, act: Callable[[], None]) -> None:
        with self._lock:
            if key in self._busy:
                self._busy[key] = True
                return
            self._busy[key] = False
        with contextlib.suppress(RuntimeError):  # the pool has ended
            self._pool.submit(self._act, key, act)

    def _act(self, key: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            if not self._over.is_set():
                self.broken.append(f"the cluster's part failed for {key}: {error!r}")
        with self._lock:
            again = self._busy.pop(key)
        if again:
            self._do(key, act)


def _digest(deployment: dict) -> str:
    return deployment["spec"]["template"]["metadata"].get("annotations", {}).get("assay.dev/model-digest", "")


def _true(raw: dict, kind: str) -> bool:
    return any(
        entry["type"] == kind
        and entry["status"] == "True"
        and entry.get("observedGeneration") == raw["metadata"]["generation"]
        for entry in raw.get("status", {}).get("conditions", ())
    )
