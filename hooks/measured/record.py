"""What one run of one snippet showed: the run record, its parts, and their JSON.

A record is written once and never changed. Every number on a page comes from one.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

SCHEMA = 4
"""Raised whenever a record of the old shape could be misread as one of the new."""


class Machine(msgspec.Struct, frozen=True):
    """The machine, tools and versions that a run depends on."""

    system: str
    """Operating system, kernel and architecture."""
    cpu: str
    """Processor model, as the system names it."""
    cores: int
    """Logical processors this process may use."""
    isa: str
    """Widest vector extension the processor offers."""
    memory_bytes: int
    gpu: str | None
    """Name of the first CUDA device with its driver version, or None."""
    python: str
    torch: str
    compiler: str
    """First line of the C++ compiler's version, or "none"."""


class Compile(msgspec.Struct, frozen=True):
    """One compile: a frame that Dynamo converted, or a backward pass compiled later.

    Source: `torch._dynamo.utils.CompilationMetrics`. All times in seconds.
    """

    process: int
    """Ordinal of the process within the run; 0 is the first that compiled."""
    compile_id: str
    """Dynamo's id, frame/attempt: 0/0 is the first compile of frame 0, 0/1 its first recompile."""
    function: str
    file: str
    line: int
    graph_ops: int
    """Operations in the captured graph; 0 means that no graph was handed to a backend."""
    backward: bool
    recompile_reason: str | None
    failure: str | None
    """Class of the exception that ended the compile, if one did."""
    total_seconds: float
    dynamo_seconds: float
    aot_autograd_seconds: float
    inductor_seconds: float
    cpp_seconds: float
    """The C++ compiler's, for kernels."""
    toolchain_seconds: float
    """What belongs to the machine and not to a model: trying instruction sets, and precompiling
    torch's headers. 0 where both were done before."""
    cache_hits: int
    """FX-graph and AOTAutograd cache entries that were found on disk."""
    cache_misses: int


class Break(msgspec.Struct, frozen=True, order=True):
    """A place in the code where Dynamo split the graph."""

    file: str
    line: int
    reason: str


class Timing(msgspec.Struct, frozen=True):
    """What `torch.utils.benchmark` measured of one statement, whole. Times in seconds per call.

    Measurements of the same name, taken one after another or in turns with others, are one series.
    """

    label: str
    """What is timed: the `label` of its `Timer`, or the statement."""
    case: str
    """On what: the `sub_label`, such as "65536 floats"; may be empty."""
    side: str
    """In which way: the `description`, such as "eager" or "compiled"; may be empty."""
    threads: int
    calls_per_sample: int
    samples_seconds: list[float]
    turns: list[int]
    """For each sample, how many samples the run had taken before it, of any series."""

    @property
    def name(self) -> str:
        """What to call it, in one line."""
        return " ".join(filter(None, (self.label, self.case, self.side)))

    @property
    def n(self) -> int:
        return len(self.samples_seconds)

    @property
    def minimum(self) -> float:
        return min(self.samples_seconds)

    @property
    def median(self) -> float:
        return quantile(self.samples_seconds, 0.5)

    @property
    def iqr(self) -> float:
        """Inter-quartile range, seconds."""
        return quantile(self.samples_seconds, 0.75) - quantile(self.samples_seconds, 0.25)


class Conditions(msgspec.Struct, frozen=True):
    """What the machine did while the observed child ran. Explains a disturbance; decides none."""

    load: float
    """Average number of runnable processes in the minute before."""
    others_share: float
    """Share of the processors' time that other processes took, 0 to 1."""
    stolen_share: float
    """Share of the processors' time that the hypervisor gave to other machines, 0 to 1."""
    involuntary_switches: int
    """How often the child had to leave a processor."""
    clock_mhz: float | None
    """Mean clock of the processors at the end, where the system tells."""


class Line(msgspec.Struct, frozen=True):
    """One line, or one row of bars, of a figure."""

    label: str
    x: list[float | str]
    y: list[float]


class Figure(msgspec.Struct, frozen=True):
    """A figure that the snippet drew with matplotlib."""

    svg: str
    """Empty where it was not kept; then `note` says why."""
    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    note: str = ""


class Process(msgspec.Struct, frozen=True):
    """How a child process went, seen from outside."""

    ending: str
    """One of ENDINGS."""
    detail: str
    """What there is to say about the ending: exception class, signal name, exit status, limit."""
    wall_seconds: float
    cpu_seconds: float
    """User and system time of the child and of the children it waited for."""
    peak_memory_bytes: int
    output: str
    """stdout and stderr in the order they were written; temporary paths and addresses masked."""


ENDINGS = ("finished", "raised", "ended early", "signal", "timeout", "output limit")
"""finished: ran to its last line; ended early: left before that, whatever its status."""


class Origin(msgspec.Struct, frozen=True):
    """Where in the compiler a difference arises, as far as further runs of the program tell."""

    stage: str
    """The first of `stages.STAGES` with which it appears; `stages.OWN` for a backend of the
    program's; empty where no run showed it, and then `detail` says why."""
    same: bool = True
    """Found again at the same call and place; else only a difference of that name was."""
    culprit: str = ""
    """The part of that stage without which it is gone: subsystem, number, pass or operation."""
    detail: str = ""
    """Why stage or culprit are not known."""
    reproducer: str = ""
    """Path of a program that shows it with nothing but torch."""
    reproduced: bool | None = None
    """Whether that program was seen to show it. None: it was not run to its end."""


class Difference(msgspec.Struct, frozen=True):
    """One way in which a compiled call and its eager twin differ, or the worst of a tensor's."""

    kind: str
    """One of KINDS."""
    path: str
    """Where: `result[0]`, `args[1]`, `self.weight`, `gradient of self.weight`."""
    message: str
    shape: str = ""
    dtype: str = ""
    index: str = ""
    eager: str = ""
    compiled: str = ""
    float64: str = ""
    """The value at `index` in a float64 run of eager, where one was needed and possible."""
    max_absolute: float | None = None
    max_relative: float | None = None
    max_ulp: float | None = None
    rule: str = ""
    """The value rule that decided."""
    origin: Origin | None = None
    """None where nobody looked: the difference was declared, or is told of another call."""

    @property
    def name(self) -> str:
        """Kind and place in one word, the vocabulary of `diverges=`: `value`, `grad/nan`,
        `argument/value`, `state/dtype`, `aliasing`, `rng`, `exception-only-in-eager`.

        >>> Difference("nan", "gradient of args[0]", "").name
        'grad/nan'
        >>> Difference("value", "self.count", "").name
        'state/value'
        >>> Difference("value", "calls['n']", "").name
        'state/value'
        """
        if self.kind == "rng":
            return self.kind
        for start, place in _PLACES.items():
            if re.match(rf"{start}(?!\w)", self.path):
                return f"{place}{self.kind}"
        return f"state/{self.kind}"


KINDS = (
    "type",
    "structure",
    "value",
    "nan",
    "inf",
    "dtype",
    "device",
    "layout",
    "shape",
    "stride",
    "requires_grad",
    "gradient",
    "aliasing",
    "rng",
    "mode",
    "exception-only-in-eager",
    "exception-only-in-compiled",
    "exception-type",
)
"""What a difference can be. Where it is (result, argument, state, gradient) stands in its path."""

_PLACES = {
    "call$": "",
    "result": "",
    "gradient of": "grad/",
    "args": "argument/",
    "kwargs": "argument/",
}
"""How a path starts, as a pattern -> what stands before the kind in a name. Else: state."""


def is_name(text: str) -> bool:
    """Whether some difference could have this name.

    >>> is_name("grad/nan"), is_name("state/value"), is_name("nan/grad"), is_name("gard/nan")
    (True, True, False, False)
    """
    place, slash, kind = text.rpartition("/")
    return kind in KINDS and f"{place}{slash}" in (*_PLACES.values(), "state/")


class Call(msgspec.Struct, frozen=True):
    """Verdict on one shadowed call of a compiled callable."""

    process: int
    callable: str
    """Name of the callable; several may share one."""
    callable_index: int
    """Which compiled callable of its process, in the order they were made."""
    number: int
    """Which call of this callable, from 1."""
    verdict: str
    """One of VERDICTS."""
    differences: list[Difference]
    max_ulp: float
    """Largest difference between the two runs over all float elements, in ULP of eager's value."""
    rule: str
    """The weakest of RULES that some tensor of this call needed in order to pass."""
    detail: str = ""
    stage: str = ""
    """The last of `stages.STAGES` that its backend runs, or `stages.OWN`."""


RULES = ("equal", "ulp", "float64", "noise", "none")
"""The value rules of `compare`, from the strictest to the weakest; none: no rule let it pass."""

VERDICTS = ("agrees", "diverges", "refused", "not comparable", "ran eager", "audit failed")


class Audit(msgspec.Struct, frozen=True):
    """What the second child found: every shadowed call, and how many there were in all."""

    process: Process
    calls: list[Call]
    calls_total: int
    """Calls of compiled callables that the program made, shadowed or not."""
    fallback_random: bool
    """Whether Inductor was told to draw random numbers as eager does, because the observed run
    compiled a random operation."""
    only_random: bool | None
    """For a declared `rng` difference: whether every call agrees once Inductor draws random
    numbers as eager does. None where nothing of the kind is declared."""
    disturbed: str
    """Empty, or how the audited run behaved differently from the observed one."""
    forked: bool = False
    """Whether the process had imported torch before it was born, as a child of `warm`."""

    @property
    def checked(self) -> int:
        """Calls that entered compiled code and were compared with eager."""
        return sum(call.verdict in ("agrees", "diverges") for call in self.calls)

    @property
    def max_ulp(self) -> float:
        """Largest difference of any float element of any checked call."""
        return max((call.max_ulp for call in self.calls), default=0.0)

    @property
    def rule(self) -> str:
        """The weakest of RULES that some call needed."""
        return max((call.rule for call in self.calls), default="equal", key=RULES.index)


class Books(msgspec.Struct, frozen=True):
    """The compiler's own account of the observed run."""

    compiles: list[Compile]
    breaks: list[Break]

    @property
    def graphs(self) -> int:
        """Graphs handed to a backend."""
        return sum(c.graph_ops > 0 and not c.backward and c.failure is None for c in self.compiles)

    @property
    def recompiles(self) -> int:
        """Compiles of a frame that had been compiled before: ids n/m with m > 0."""
        return sum(
            not c.backward and c.failure is None and recompile_index(c.compile_id) > 0
            for c in self.compiles
        )

    @property
    def compile_seconds(self) -> float:
        return sum(c.total_seconds for c in self.compiles)

    def phase_seconds(self, phase: str) -> float:
        """Seconds of one of PHASES over all compiles."""
        return sum(getattr(c, f"{phase}_seconds") for c in self.compiles)


PHASES = {
    "dynamo": "Dynamo",
    "aot_autograd": "AOTAutograd",
    "inductor": "Inductor",
    "cpp": "C++",
    "toolchain": "toolchain",
}
"""Phases of a compile, which do not overlap -> what a reader calls them."""


class RunRecord(msgspec.Struct, frozen=True):
    """Everything known about one snippet on one machine."""

    schema: int
    key: str
    """Content key: equal keys mean that running again could show nothing new."""
    snippet: str
    source: str
    options: dict[str, str]
    date: str
    """When the observed run started, ISO 8601, UTC."""
    machine: Machine
    observed: Process
    attempts: int
    """How often it was observed; this is the least disturbed run of them."""
    conditions: Conditions
    books: Books
    warm: Books | None
    """The books of a further run, in a new process that found the disk cache of the first. None
    where the fence does not ask for it."""
    values: dict[str, Any]
    """Module-level plain values at the end of the snippet."""
    timings: list[Timing]
    figures: list[Figure]
    audit: Audit | None
    """None where the observed run gave nothing to audit."""


def recompile_index(compile_id: str) -> int:
    """Index of the attempt within its frame: 3 for "0/3", "0/3_1" and "!0/1/3"; 0 if unreadable.

    >>> recompile_index("2/3_1")
    3
    """
    tail = compile_id.rsplit("/", 1)[-1].split("_", 1)[0]
    return int(tail) if tail.isdigit() else 0


def quantile(samples: list[float], q: float) -> float:
    """Linear-interpolated quantile, q in [0, 1].

    >>> quantile([1.0, 2.0, 4.0], 0.5)
    2.0
    """
    ordered = sorted(samples)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def encode(record: RunRecord) -> bytes:
    """JSON with sorted keys, so that diffs of committed records can be read."""
    return msgspec.json.format(msgspec.json.encode(record, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes) -> RunRecord:
    """Read a record back. Raises `msgspec.ValidationError` or `DecodeError` on anything else."""
    record = msgspec.json.decode(data, type=RunRecord)
    if record.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {record.schema}, expected {SCHEMA}")
    return record
