"""Whose check begins next: one pass at a time counts the checks of a namespace, and who waits is called in order."""

import asyncio
from collections import defaultdict

from assay_operator.workqueue import Key


class Turns:
    """A lock and a waiting line for each namespace. In memory only: the resync makes up for a line that is lost."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._lines: defaultdict[str, dict[Key, None]] = defaultdict(dict)

    def counting(self, namespace: str) -> asyncio.Lock:
        """To be held from counting what runs until a check is created: two that count at a time would both begin."""
        return self._locks[namespace]

    def wait(self, key: Key) -> None:
        """The key waits for its turn; where it waits already, it keeps its place."""
        self._lines[key[0]].setdefault(key)

    def leave(self, key: Key) -> None:
        """The key waits no more."""
        self._lines[key[0]].pop(key, None)

    def call(self, namespace: str) -> Key | None:
        """Take the one that has waited longest out of the line."""
        line = self._lines[namespace]
        key = next(iter(line), None)
        if key is not None:
            del line[key]
        return key
