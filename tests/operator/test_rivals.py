"""Who else has the same target, told from lists that passes share: never too few, whatever happens in between."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operator.cluster import parse
from assay_operator.cluster.rivals import Roster
from assay_operator.errors import ConflictError, NotFoundError
from support.packs import spec

START = datetime(2026, 1, 1, tzinfo=UTC)
SLOW = timedelta(seconds=1)  # from when an object's creation is stamped until it is in a list, at most


class Store:
    """What of an API server matters here: lists that are up to date, whole seconds, and creations that are slow."""

    def __init__(self):
        self.clock = START
        self.stored = {}
        self.coming = []
        self.lists = 0
        self.made = 0

    @property
    def now(self):
        return self.clock.replace(microsecond=0)

    def create(self, target, delay, namespace="assay"):
        self.made += 1
        # Uids are random, so that ties of creation times fall either way.
        uid = f"{(self.made * 7919) % 1000:03}"
        meta = {
            "name": f"v{self.made}",
            "namespace": namespace,
            "uid": uid,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self.coming.append((self.clock + delay, {"metadata": meta, "spec": spec(targetRef={"name": target})}))
        self.pass_time(timedelta())

    def pass_time(self, time):
        self.clock += time
        for at, raw in [entry for entry in self.coming if entry[0] <= self.clock]:
            self.stored[raw["metadata"]["name"]] = raw
            self.coming.remove((at, raw))

    async def get(self, path, what):
        await asyncio.sleep(0)
        if path.endswith("modelvariants"):
            self.lists += 1
            return {"items": list(self.stored.values())}
        name = path.rsplit("/", 1)[1]
        if name not in self.stored:
            raise NotFoundError(name, status=404, what=what)
        return self.stored[name]

    def oldest_before(self, variant):
        """By all that is stored: the truth that a fresh list would tell."""
        mine = (variant.created, variant.uid)
        target = variant.spec.target_ref.name
        there = [parse.variant(raw) for raw in self.stored.values()]
        all_of_target = [one for one in there if one.spec.target_ref.name == target]
        older = sorted((one.created, one.uid, one.name) for one in all_of_target if (one.created, one.uid) < mine)
        return older[:1]


times = st.integers(0, 3000).map(lambda ms: timedelta(milliseconds=ms))
actions = st.one_of(
    st.tuples(st.just("create"), st.sampled_from("ab"), st.integers(0, 999).map(lambda ms: ms * SLOW / 1000)),
    st.tuples(st.just("delete"), st.integers(0, 20)),
    st.tuples(st.just("wait"), times),
    st.tuples(st.just("resync")),
    st.tuples(st.just("passes")),
)


@given(st.lists(actions, min_size=5, max_size=40))
def test_shared_list_names_the_rival_that_a_fresh_one_would(script):
    async def play():
        store = Store()
        roster = Roster(store)
        for action, *values in script:
            if action == "create":
                store.create(*values)
            elif action == "delete" and store.stored:
                names = list(store.stored)
                del store.stored[names[values[0] % len(names)]]
            elif action == "wait":
                store.pass_time(*values)
            elif action == "resync":
                await roster.renew(())
            elif action == "passes":
                for raw in list(store.stored.values()):
                    variant = parse.variant(raw)
                    found = await roster.older(variant, variant.spec.target_ref.name)
                    assert [(one.created, one.uid, one.name) for one in found] == store.oldest_before(variant)

    asyncio.run(play())


def settled_store(count, **how):
    store = Store()
    for number in range(count):
        store.create(f"t{number}", timedelta(), **how)
    store.pass_time(timedelta(minutes=1))
    return store


async def ask(roster, raw):
    variant = parse.variant(raw)
    return await roster.older(variant, variant.spec.target_ref.name)


def test_hundreds_of_passes_share_one_list():
    async def play():
        store = settled_store(300)
        roster = Roster(store)
        for _ in range(2):
            await asyncio.gather(*(ask(roster, raw) for raw in store.stored.values()))
        assert store.lists == 1

    asyncio.run(play())


def test_those_just_made_share_a_list_that_was_begun_after_all_of_them_asked():
    async def play():
        store = settled_store(8)
        store.clock = START  # they are all new
        roster = Roster(store)
        await asyncio.gather(*(ask(roster, raw) for raw in store.stored.values()))
        assert store.lists == 2  # the first list was begun before the others asked

    asyncio.run(play())


def test_deleted_variant_of_an_old_list_is_nobodys_rival():
    async def play():
        store = Store()
        store.create("a", timedelta())
        store.pass_time(timedelta(minutes=1))
        store.create("a", timedelta())
        store.pass_time(timedelta(minutes=1))
        roster = Roster(store)
        old, young = list(store.stored.values())
        assert [one.name for one in await ask(roster, young)] == [old["metadata"]["name"]]
        del store.stored[old["metadata"]["name"]]
        assert await ask(roster, young) == ()
        assert store.lists == 1

    asyncio.run(play())


def test_variant_that_no_list_has_is_tried_again():
    async def play():
        store = settled_store(1)
        (gone,) = store.stored.values()
        store.stored.clear()
        with pytest.raises(ConflictError, match="it is gone, or the list is old"):
            await ask(Roster(store), gone)

    asyncio.run(play())
