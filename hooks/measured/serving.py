"""`mkdocs serve`: runs what has no result in the background, and says when there are results.

Each build of the server replaces the queue, so that what was edited meanwhile comes first and
what is no longer asked for is dropped.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from measured import progress
from measured.pages import Page
from measured.progress import Step
from measured.results import Job, Results
from measured.worker import Gone, Worker

TOGETHER_SECONDS = 2.0
"""Results that arrive within this time are shown by one build."""


class Edits:
    """Which snippets and which pages were edited while the server ran, the last first."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self.snippets: list[str] = []
        self.pages: list[str] = []

    def note(self, texts: Mapping[str, str], pages: Iterable[Page]) -> None:
        """Compare the text of each page, and its snippets, with those of the build before."""
        pages = list(pages)
        sources = {snippet.name: snippet.source for page in pages for snippet in page.snippets}
        if self._texts:
            changed = {name for name in sources if self._sources.get(name) != sources[name]}
            edited = [
                page.path
                for page in pages
                if self._texts.get(page.path) != texts[page.path]
                or any(snippet.name in changed for snippet in page.snippets)
            ]
            self.snippets = _first([n for n in sources if n in changed], self.snippets)
            self.pages = _first(edited, self.pages)
        self._texts, self._sources = dict(texts), sources

    def in_order(self, jobs: Sequence[Job]) -> list[Job]:
        """Edited snippets, then those of edited pages, then the others as they come."""

        def rank(job: Job) -> tuple[int, int]:
            snippet, _ = job
            return _place(snippet.name, self.snippets), _place(snippet.place.page, self.pages)

        return sorted(jobs, key=rank)


def _first(names: list[str], others: list[str]) -> list[str]:
    return list(dict.fromkeys([*names, *others]))


def _place(name: str, names: list[str]) -> int:
    return names.index(name) if name in names else len(names)


class Desk:
    """The queue, the thread that works it off, and the file that changes with the results."""

    def __init__(self, results: Results, *, fresh: bool, log: Callable[[str], None]) -> None:
        self._results = results
        self._worker = Worker(results.cache, fresh=fresh)
        self._log = log
        self._changes = threading.Condition()
        self._queue: list[Job] = []
        self._current: Job | None = None
        self._dropped: str | None = None
        self._lost: set[str] = set()
        self._unseen_since: float | None = None
        self._is_closed = False
        self.folder = Path(tempfile.mkdtemp(prefix="measured-serve-"))
        """Something in it changes when there are new results to show."""
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._work, self._announce)
        ]
        for thread in self._threads:
            thread.start()

    def collect(self) -> None:
        """A build looks for results now, and will show those that there are."""
        with self._changes:
            self._unseen_since = None

    def want(self, jobs: Sequence[Job]) -> dict[str, int]:
        """Run these, in this order, and nothing else any more.

        Returns, for each snippet's name, how many run before it. A run whose snippet has been
        edited meanwhile is ended; any other run goes on.
        """
        with self._changes:
            wanted = [job for job in jobs if job[1] not in self._lost]
            current = self._current
            if current and any(
                snippet.name == current[0].name and key != current[1] for snippet, key in wanted
            ):
                self._dropped = current[1]
                self._worker.end()
                current = None
            # A record that came after this build had looked for it needs no second run.
            self._queue = [
                job
                for job in wanted
                if not (current and job[1] == current[1]) and not self._results.find(job[1])
            ]
            self._changes.notify_all()
            in_turn = [*([current] if current else []), *self._queue]
            return {snippet.name: before for before, (snippet, _) in enumerate(in_turn)}

    def close(self) -> None:
        """End what runs, and start nothing more. Finished records have been kept."""
        with self._changes:
            self._is_closed = True
            self._queue.clear()
            self._changes.notify_all()
        self._worker.close()
        for thread in self._threads:
            thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _work(self) -> None:
        while True:
            with self._changes:
                self._changes.wait_for(lambda: self._queue or self._is_closed)
                if self._is_closed:
                    return
                job = self._current = self._queue.pop(0)
            began = time.monotonic()
            try:
                record = self._worker.run(job, self._tell)
            except Gone:
                record = None
            with self._changes:
                self._current = None
                name, key = job[0].name, job[1]
                if record:
                    self._results.hold(record)
                    self._log(f"finished {name} in {progress.clock(time.monotonic() - began)}")
                elif self._dropped != key and not self._is_closed:
                    # It would end the next process, too.
                    self._lost.add(key)
                    self._log(f"{name}: the process that runs snippets died of it")
                self._dropped = None
                if self._unseen_since is None:
                    self._unseen_since = time.monotonic()
                self._changes.notify_all()

    def _tell(self, step: Step) -> None:
        if step.doing != progress.FINISHED:
            with self._changes:
                waiting = len(self._queue)
            self._log(f"{step.doing} {step.name}" + (f", {waiting} waiting" if waiting else ""))

    def _announce(self) -> None:
        """Changes the file until a build has looked for the results: what watches it may not have
        begun to watch."""
        number = 0
        while True:
            with self._changes:
                self._changes.wait_for(self._is_due, timeout=0.25)
                if self._is_closed:
                    return
                if not self._is_due():
                    continue
                number += 1
                (self.folder / "results").write_text(f"{number}\n")
                self._changes.wait_for(
                    lambda: self._is_closed or self._unseen_since is None, TOGETHER_SECONDS
                )

    def _is_due(self) -> bool:
        if self._is_closed:
            return True
        if self._unseen_since is None:
            return False
        is_idle = not self._queue and self._current is None
        return is_idle or time.monotonic() - self._unseen_since >= TOGETHER_SECONDS
