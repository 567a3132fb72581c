"""A process that has imported torch's compiler, with the audit attached, and forks children.

Importing is most of what a small snippet's audited child does. The observed child is always a new
interpreter; what the two print is compared, so a child that a warm start changes is found out.

The process imports and forks, and nothing else: no thread, no parallel region, for neither
survives a fork.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import msgspec

from measured import machine, process, toolchain
from measured.child import Job
from measured.process import RUN_VARIABLE, Usage

_READ_AT_IMPORT = re.compile(r"environ|getenv|putenv|num_threads|num_interop_threads|sys\.modules")
"""What a program says that may have had its effect while torch was imported."""

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Environment of a child that is not timed: its threads wait without keeping the processor from
the children beside it."""

_PATIENCE_SECONDS = 300.0
"""For the imports."""
_MESSAGE_BYTES = 1 << 18


class _Request(msgspec.Struct, frozen=True):
    folder: str
    env: dict[str, str]


class _Forked(msgspec.Struct, frozen=True):
    pid: int


class _Ended(msgspec.Struct, frozen=True):
    status: int
    usage: Usage


def is_possible() -> bool:
    """Whether this machine can fork a process that has imported torch.

    A process that has looked for a GPU can not use it after a fork; macOS's libraries forbid it.
    """
    return sys.platform == "linux" and not machine.has_cuda()


def suits(source: str) -> bool:
    """Whether a program does nothing that has to be done before torch is imported.

    >>> suits("import torch"), suits("import os; os.environ['TORCH_LOGS'] = 'recompiles'")
    (True, False)
    """
    return not _READ_AT_IMPORT.search(source)


class Parent:
    """The process, as the runner sees it. It is started when the first child is asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._mark = uuid.uuid4().hex
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_ready = False

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, *_: object) -> None:
        if self._control:
            self._control.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def events(self) -> Path:
        """Where its children log: the audit is attached before they are born."""
        assert self._folder
        return self._folder / "events"

    def start(self) -> bool:
        """Start it, unless it runs. Returns whether it can be asked for a child."""
        if self._process is None:
            self._folder = Path(tempfile.mkdtemp(prefix="measured-warm-")).resolve()
            toolchain.prepare(self._folder, None)
            job = Job("audit", events=str(self.events), seed=self._seed)
            path = self._folder / "job"
            path.write_bytes(msgspec.json.encode(job))
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "measured.warm", str(theirs.fileno())],
                    cwd=self._folder,
                    env={
                        **environment(self._folder, path, self._folder),
                        **PATIENT,
                        RUN_VARIABLE: self._mark,
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    pass_fds=[theirs.fileno()],
                )
            self._control.settimeout(_PATIENCE_SECONDS)
            with contextlib.suppress(OSError):
                self._is_ready = bool(self._control.recv(_MESSAGE_BYTES))
        return self._is_ready and self._process.poll() is None

    def fork(self, arguments: list[str], folder: Path, env: dict[str, str]) -> process.Child:
        """A `process.Starter` of `measured.program`, for a job whose events are this one's.

        A new interpreter, should the process be gone: a child before may have killed its parent.
        """
        assert self._control
        assert self._process
        output, theirs = os.pipe()
        try:
            request = msgspec.json.encode(_Request(str(folder), env))
            socket.send_fds(self._control, [request], [theirs])
            forked = msgspec.json.decode(self._control.recv(_MESSAGE_BYTES), type=_Forked)
        except (OSError, msgspec.DecodeError):
            os.close(output)
            return process.Spawned(arguments, folder, env)
        finally:
            os.close(theirs)
        return _Child(forked.pid, output, self._control, self._mark, self._process.pid)


class _Child:
    """A forked `process.Child`. Its parent, not the runner, hears of its end, and says so."""

    def __init__(
        self, pid: int, output: int, control: socket.socket, mark: str, parent: int
    ) -> None:
        self.pid, self.output = pid, output
        self._control, self._mark, self._parent = control, mark, parent

    def has_ended(self) -> bool:
        return bool(select.select([self._control], [], [], 0)[0])

    def wait(self) -> tuple[int, Usage]:
        try:
            ended = msgspec.json.decode(self._control.recv(_MESSAGE_BYTES), type=_Ended)
        except (OSError, msgspec.DecodeError):  # The parent is gone, and nobody saw how it ended.
            return -signal.SIGKILL, Usage()
        return ended.status, ended.usage

    def release(self) -> None:
        # What a forked process forks again has no environment of its own to carry a mark.
        process.kill_marked(self._mark, spared=self._parent)


def environment(home: Path, job: Path, caches: Path) -> dict[str, str]:
    """Environment of a process of a run: its job, what attaches it, and where its caches lie."""
    return process.environment(
        home,
        {
            "MEASURED_JOB": str(job),
            "PYTHONPATH": str(Path(__file__).parent / "boot"),
            **toolchain.environment(caches),
        },
    )


def _serve(control: socket.socket) -> int:
    """Fork a child per request until the runner has gone. In each child, returns its status."""
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, maxfds=1)
        if not message:
            return 0
        request = msgspec.json.decode(message, type=_Request)
        pid = os.fork()
        if pid == 0:
            control.close()
            return _live(request, descriptors[0])
        os.close(descriptors[0])
        control.send(msgspec.json.encode(_Forked(pid)))
        if not _has_runner_until_end(pid, control):
            os.killpg(pid, signal.SIGKILL)
            return 0
        _, status, usage = os.wait4(pid, 0)
        control.send(msgspec.json.encode(_Ended(*process.ended(status, usage))))


def _has_runner_until_end(child: int, control: socket.socket) -> bool:
    """Wait for the end of a child. False if the runner has gone before: nobody waits for it."""
    watched = os.pidfd_open(child)
    try:
        return watched in select.select([watched, control], [], [])[0]
    finally:
        os.close(watched)


def _live(request: _Request, output: int) -> int:
    """In a child: become what a new interpreter in that folder and environment would be."""
    from measured import program

    os.setsid()
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.env)
    tempfile.tempdir = None
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    return program.run(msgspec.json.decode(Path(os.environ["MEASURED_JOB"]).read_bytes(), type=Job))


if __name__ == "__main__":
    import torch._inductor.compile_fx  # noqa: F401  What every compiled program imports.

    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))
