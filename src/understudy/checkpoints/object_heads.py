"""The head and the markers of one slice in an object store.

    head.json                                             which markers count
    markers/<sweep>/<epoch>-<generation>-<token>.json     a marker; never changed

Reading the head is one small request, and nothing comes back while it is as before. Markers never change, so each is
read once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from understudy.checkpoints import object_head, spark_files
from understudy.checkpoints.interface import Marker
from understudy.checkpoints.object_head import Head, Ref
from understudy.clients.objects import Folder, Version
from understudy.errors import Away, Unavailable

HEAD = "head.json"
MARKERS = "markers"
ATTEMPTS = 20
"""Of a change that others always come before. They would have to write twenty heads while this one writes one."""


@dataclass(frozen=True)
class Seen:
    """A head, and the version of the object that held it; None if there was none."""

    head: Head
    version: Version | None


class Heads:
    """May be used by several threads at once: each reads `_seen` and `_markers` once, and replaces them or adds."""

    def __init__(self, folder: Folder, looking: Executor, look_s: float) -> None:
        self._folder = folder
        self._looking, self._look_s = looking, look_s
        self._seen = Seen(Head(), None)
        self._markers: dict[str, Marker] = {}
        self._look: Future[Head] | None = None
        self._looked_at = -look_s

    # -- reading

    def fresh(self) -> Head:
        """The head as it is now."""
        return self._read().head

    def last_seen(self) -> Head:
        """The head that was read last. Waits for nothing; begins another look if the last one is some time ago."""
        now = time.monotonic()
        if now - self._looked_at >= self._look_s and (self._look is None or self._look.done()):
            self._looked_at = now
            self._look = self._looking.submit(self.fresh)
        return self._seen.head

    def _read(self) -> Seen:
        seen = self._seen
        try:
            found = self._folder.get(HEAD) if seen.version is None else self._folder.get_if_changed(HEAD, seen.version)
        except FileNotFoundError:
            raise self._lost("is gone") from None
        if found is None:
            return seen
        content, version = found
        head = object_head.decode(content)
        if head is None:
            raise self._lost("is damaged")
        return self._saw(Seen(head, version))

    def _saw(self, seen: Seen) -> Seen:
        """Another thread may have read a newer one meanwhile; what was seen never goes back."""
        before = self._seen.head
        if seen.head.number >= before.number:
            self._seen = seen
            # Those of the head before stay: whoever replaced it asks what its markers named.
            named = {ref.name for head in (before, seen.head) for ref in (*head.markers, *head.aside)}
            self._markers = {name: marker for name, marker in self._markers.items() if name in named}
        return seen

    def marker(self, ref: Ref) -> Marker | None:
        """None if it cannot be read."""
        known = self._markers.get(ref.name)
        if known is None:
            found = self._folder.get(ref.name)
            known = spark_files.decode(found[0]) if found is not None else None
            if known is not None:
                self._markers[ref.name] = known
        return known

    def listed(self) -> list[str]:
        """The names of all markers that are there, whether they count or not."""
        return sorted(self._folder.names(MARKERS))

    def _lost(self, how: str) -> Unavailable:
        return Unavailable(
            f"the checkpoints of {self._folder.shown} cannot be told",
            why=f"{self._folder.shown}/{HEAD}, which lists them, {how}",
            fix="put an earlier version of that object back, or run again in a new --home",
        )

    # -- writing

    def put_marker(self, marker: Marker, sweep: int) -> Ref:
        """Writes a marker. It counts when a head names it."""
        token = secrets.token_hex(4)
        name = f"{MARKERS}/{sweep}/{marker.epoch:010d}-{marker.generation}-{token}.json"
        content = spark_files.encode(marker)
        self._folder.put(name, content, len(content))
        self._markers[name] = marker
        return Ref(marker.epoch, marker.generation, name)

    def replace(self, head: Head, new: Head) -> bool:
        """Writes a head in place of the one it was made from; False if that is not the present one any more.

        A request that was repeated although it had been carried out returns False, too: the next look tells.
        """
        seen = self._seen
        if seen.head.number != head.number:
            return False
        content = object_head.encode(new)
        if seen.version is None:
            version = self._folder.create(HEAD, content)
        else:
            version = self._folder.replace(HEAD, content, seen.version)
        if version is None:
            return False
        self._saw(Seen(new, version))
        return True

    def change(self, change: Callable[[Head], Head]) -> tuple[Head, Head]:
        """Makes a change to whatever the head is; returns the one before and the one after, the same if none is due."""
        for head in self.attempts():
            new = change(head)
            if new == head or self.replace(head, new):
                return head, new
        raise AssertionError("attempts end with an error")

    def attempts(self) -> Iterator[Head]:
        """The present head, again and again, for a change that may come too late; raises when it did so too often."""
        for _ in range(ATTEMPTS):
            yield self.fresh()
        raise Away(
            f"{self._folder.shown} is changed by too many at once",
            why=f"{ATTEMPTS} attempts to write {HEAD} each came after another one",
            fix="nothing, if this is rare: the next attempt may work; otherwise look who else writes there",
        )
