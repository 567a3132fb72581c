"""Where a build gets the records of its snippets: from the store, or by running what is missing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from measured import report, run, schedule, store
from measured.progress import Tell
from measured.record import RunRecord
from measured.schedule import Job
from measured.snippets import Snippet


class Results:
    """The records of this machine, by content key, and those of this process beside them.

    A record of a failed run is not stored, so that the next build tries again; while this process
    lives it counts.
    """

    def __init__(self, cache: Path, *, fresh: bool = False) -> None:
        self.cache = cache
        self._store = store.Store(cache / "records")
        self._fresh = fresh
        self._held: dict[str, RunRecord] = {}
        self._loaded: dict[str, RunRecord] = {}
        self._lock = threading.Lock()
        self.executed = 0
        """Runs that were made for this process."""

    def find(self, key: str) -> RunRecord | None:
        """The record of that key. If everything is to run afresh: only one of this process."""
        return self._held.get(key) if self._fresh else self.stored(key)

    def stored(self, key: str) -> RunRecord | None:
        """The record of that key, whoever made it and whenever."""
        if key not in self._loaded and (found := self._store.load(key)):
            self._loaded[key] = found  # Decoded once: a key's record never changes.
        return self._held.get(key) or self._loaded.get(key)

    def hold(self, record: RunRecord) -> None:
        """Take a record that was made for this process."""
        with self._lock:
            self.executed += 1
            self._held[record.key] = record

    def make(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Run these snippets, in this order."""
        schedule.execute(jobs, cache=self.cache, load=self.find, keep=self._keep, tell=tell)

    def _keep(self, snippet: Snippet, record: RunRecord) -> None:
        """Store a record unless it fails, and find out where what it shows comes from."""
        if not report.judge(snippet, record):
            self._store.save(record)
        explained = run.explain(snippet, record, report.undeclared(snippet, record), self.cache)
        self.hold(explained)
