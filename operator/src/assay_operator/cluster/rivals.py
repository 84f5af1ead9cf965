"""Who else has the same target: told from a list that passes share, or n ModelVariants would be listed n times each."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay_operator.cluster import parse, paths
from assay_operator.cluster.api import Api, Json
from assay_operator.errors import ConflictError, NotFoundError
from assay_operator.models.observed import Variant
from assay_operator.models.spec import Spec

TIES = timedelta(seconds=2)  # creation times are whole seconds: one that is made later in the same second may count as
# older, by its uid; a list begun this much later has it


@dataclass(frozen=True)
class Listed:
    """A ModelVariant in a list: what it is known by, and its target (empty if its spec names none)."""

    namespace: str
    name: str
    uid: str
    created: datetime
    target: str


@dataclass(frozen=True)
class Roll:
    """The ModelVariants of one namespace in one list.

    It was begun not before `began` (the API server's clock) and exactly at `asked` (this process's monotonic clock).
    """

    began: datetime
    asked: float
    entries: tuple[Listed, ...]

    def has(self, variant: Variant) -> bool:
        """Whether this very variant is in it."""
        return any(entry.uid == variant.uid for entry in self.entries)

    def tells(self, variant: Variant) -> bool:
        """Whether every older variant of its target must be in it.

        Targets cannot be changed, so what is older than a variant was there before it, and is in a list that has the
        variant, unless it was deleted. An outdated list can name too many, not too few.
        """
        return self.began >= variant.created + TIES and self.has(variant)

    def older(self, variant: Variant, target: str) -> list[Listed]:
        """The older ones with this target, the oldest first."""
        mine = (variant.created, variant.uid)
        found = [entry for entry in self.entries if entry.target == target and (entry.created, entry.uid) < mine]
        return sorted(found, key=lambda entry: (entry.created, entry.uid))


class Roster:
    """The last list of each namespace. Every resync renews them; a pass does where a list cannot answer for it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._rolls: dict[str, Roll] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def renew(self, namespaces: Iterable[str]) -> list[Listed]:
        """List all ModelVariants of the namespaces; of the whole cluster if none is named. ApiError if it fails."""
        began, asked, found = self._api.now, time.monotonic(), []
        scopes: list[str | None] = [*namespaces] or [None]
        for scope in scopes:
            found += await self._list(scope)
        grouped: defaultdict[str, list[Listed]] = defaultdict(list)
        for entry in found:
            grouped[entry.namespace].append(entry)
        self._rolls = {namespace: Roll(began, asked, tuple(entries)) for namespace, entries in grouped.items()}
        return found

    async def older(self, variant: Variant, target: str) -> tuple[Listed, ...]:
        """The oldest ModelVariant of this target, if it is older than this one: none or one. It is read afresh."""
        roll = self._rolls.get(variant.namespace)
        if roll is None or not roll.tells(variant):
            roll = await self._renewed(variant)
        for entry in roll.older(variant, target):
            if await self._still(entry, target):
                return (entry,)
        return ()

    async def _renewed(self, variant: Variant) -> Roll:
        """A list that tells, or one begun after this was called: many made at once wait for one and share it."""
        namespace, called = variant.namespace, time.monotonic()
        async with self._locks[namespace]:
            roll = self._rolls.get(namespace)
            if roll is None or not (roll.tells(variant) or roll.asked >= called):
                began, asked = self._api.now, time.monotonic()
                roll = self._rolls[namespace] = Roll(began, asked, tuple(await self._list(namespace)))
        if not roll.has(variant):
            raise ConflictError(f"{variant.name} is not in the list of ModelVariants: it is gone, or the list is old")
        return roll

    async def _list(self, namespace: str | None) -> list[Listed]:
        answer = await self._api.get(paths.variants(namespace), "modelvariants.assay.dev")
        return [_listed(raw) for raw in answer["items"]]

    async def _still(self, entry: Listed, target: str) -> bool:
        try:
            raw = await self._api.get(paths.variant(entry.namespace, entry.name), "modelvariants.assay.dev")
        except NotFoundError:
            return False
        now = parse.variant(raw)
        return now.uid == entry.uid and isinstance(now.spec, Spec) and now.spec.target_ref.name == target


def _listed(raw: Json) -> Listed:
    meta, spec = raw["metadata"], raw.get("spec") or {}
    reference = spec.get("targetRef")
    target = reference.get("name") if isinstance(reference, dict) else None
    return Listed(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        created=parse.moment(meta.get("creationTimestamp")) or parse.LONG_AGO,
        target=str(target or ""),
    )
