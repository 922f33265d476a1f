"""Made traces of a GPU, and what they mean: worked out while they are made, apart from any reader.

A host thread runs steps of operators, whose launches run ahead of the work on the streams; there
are graphs, orphans, memory events, Python frames, flow arrows and metadata.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from tests.farm.trace.writing import Micros, Value

NAMES: Final = (
    "volta_sgemm_128x64_nn",
    "void at::native::(anonymous namespace)::fill<float, 4>(int, \u03bb)",
    'said "so", twice',
    r"C:\kernels\new.cu",
    '},{"ph":"X","cat":"kernel","ts":1}',
    '"traceEvents": [{',
    "a]}b",
    "two\nlines\tand a tab",
    "\u044f\u0434\u0440\u043e \U0001f41f",
)


class Row(NamedTuple):
    """A span: kind by its word, ns, correlation and external 0 where there is none."""

    kind: str
    name: str
    start: int
    end: int
    lane: tuple[str, str]
    correlation: int = 0
    external: int = 0
    occupancy: float | None = None


class Memory(NamedTuple):
    """A memory event, with None for a total that it does not tell."""

    time: int
    bytes: int
    allocated: int | None
    reserved: int | None
    device_type: int
    device: int


class Dialect(NamedTuple):
    """How a profiler writes. pairs: spans are two events, a begin and an end."""

    categories: Mapping[str, str]
    external: str = "External id"
    stream: str = "{}"
    is_text: bool = False
    pairs: bool = False


_MODERN: Final = {
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "runtime": "cuda_runtime",
    "driver": "cuda_driver",
    "op": "cpu_op",
    "annotation": "user_annotation",
}
_OLD: Final = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "runtime": "Runtime",
    "driver": "Driver",
    "op": "Operator",
    "annotation": "Operator",
}
MODERN: Final = Dialect(_MODERN)
PAIRS: Final = Dialect(_MODERN, pairs=True)
OF_2021: Final = Dialect(_OLD, "external id", "stream {}", is_text=True)
DIALECTS: Final = (MODERN, PAIRS, OF_2021)


@dataclass
class Made:
    """events: in the order of their making. The rest is what a reader has to say about them."""

    dialect: Dialect = MODERN
    events: list[dict[str, Value]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    categories: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Add a span as its dialect writes it."""
        self.rows.append(row)
        on_gpu = row.kind in ("kernel", "memcpy", "memset")
        outer, inner = (int(each) for each in row.lane)
        args: dict[str, Value] = {"Concrete Inputs": ["", {"ph": "X", "cat": "kernel"}, []]}
        if on_gpu:
            args |= {"device": outer, "stream": self._id(inner)}
        if row.correlation:
            args["correlation"] = self._id(row.correlation)
        if row.external:
            args[self.dialect.external] = self._id(row.external)
        if row.occupancy is not None:
            args["est. achieved occupancy %"] = row.occupancy
        old = self.dialect.stream.format(inner)
        tid: Value = old if on_gpu and not old.isdigit() else inner
        where: dict[str, Value] = {"pid": outer, "tid": tid}
        begin: dict[str, Value] = {
            "ph": "B" if self.dialect.pairs else "X",
            "cat": self.dialect.categories[row.kind],
            "name": row.name,
            **where,
            "ts": Micros(row.start),
        }
        if self.dialect.pairs:
            self.other(begin | {"args": args})
            self.other({"ph": "E", **where, "ts": Micros(row.end)})
        else:
            self.other(begin | {"dur": Micros(row.end - row.start), "args": args})

    def remember(self, told: Memory) -> None:
        """Add a memory event."""
        self.memory.append(told)
        args: dict[str, Value] = {
            "Bytes": told.bytes,
            "Device Type": told.device_type,
            "Device Id": told.device,
        }
        if told.allocated is not None:
            args["Total Allocated"] = told.allocated
        if told.reserved is not None:
            args["Total Reserved"] = told.reserved
        event: dict[str, Value] = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1}
        event |= {"cat": "cpu_instant_event", "ts": Micros(told.time), "args": args}
        self.other(event)

    def other(self, event: dict[str, Value]) -> None:
        """Add an event that is no span of its own."""
        self.events.append(event)
        self.categories[str(event.get("cat", ""))] += 1

    def _id(self, number: int) -> Value:
        return str(number) if self.dialect.is_text else number


def trace(
    random: Random,
    *,
    dialect: Dialect = MODERN,
    steps: int = 2,
    streams: int = 2,
    ahead: int = 150_000,
    begin: int = 1_000_000,
) -> Made:
    """Return a trace of some steps. ahead: ns from a launch to its work; begin: ns, of the host."""
    made = Made(dialect)
    made.other({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}})
    run = _Run(made, random, begin, [begin + ahead] * streams, ahead)
    run.orphan()
    for number in range(steps):
        run.step(number)
    return made


@dataclass
class _Run:
    """A host thread, whose every edge has a time of its own, and streams that work in order."""

    made: Made
    random: Random
    now: int
    free: list[int]
    ahead: int
    correlation: int = 100

    def step(self, number: int) -> None:
        start = self._tick()
        frame: dict[str, Value] = {"ph": "X", "cat": "python_function", "name": "train.py(7): step"}
        frame |= {"pid": 1, "tid": 1, "ts": Micros(start), "dur": Micros(77)}
        self.made.other(frame | {"args": {"Python id": number}})
        for _ in range(self.random.randint(1, 3)):
            self._op()
        self.made.add(Row("annotation", f"ProfilerStep#{number}", start, self._tick(), ("1", "1")))

    def orphan(self) -> None:
        """A kernel whose launch was before the trace."""
        self._work("kernel", 7, self.now - self.ahead, 0)

    def _op(self) -> None:
        start, external = self._tick(), self.random.randint(1, 99)
        for _ in range(self.random.randint(1, 3)):
            self._launch(external)
        if self.random.random() < 0.5:
            total = self.random.choice([None, 4096])
            self.made.remember(Memory(self._tick(), -512, total, total, 1, 0))
        name = self.random.choice(NAMES)
        self.made.add(Row("op", name, start, self._tick(), ("1", "1"), external=external))

    def _launch(self, external: int) -> None:
        self.correlation += 1
        start = self._tick()
        call, kind, works = self.random.choice(
            [
                ("cudaLaunchKernel", "kernel", 1),
                ("cudaGraphLaunch", "kernel", 3),
                ("cudaMemcpyAsync", "memcpy", 1),
                ("cudaMemsetAsync", "memset", 1),
                ("cudaDeviceSynchronize", "kernel", 0),
            ]
        )
        for _ in range(works):
            self._work(kind, self.correlation, start, external)
        kind = self.random.choice(["runtime", "driver"])
        row = Row(kind, call, start, self._tick(), ("1", "1"), self.correlation, external)
        self.made.add(row)
        arrow: dict[str, Value] = {"ph": "s", "id": self.correlation, "cat": "ac2g", "pid": 1}
        self.made.other(arrow | {"tid": 1, "ts": Micros(start), "name": "ac2g"})

    def _work(self, kind: str, correlation: int, launched: int, external: int) -> None:
        stream = self.random.randrange(len(self.free))
        start = max(self.free[stream], launched + self.ahead)
        end = start + self.random.randint(1, 40_000)
        self.free[stream] = end + self.random.choice([0, 1, 999])
        lane, name = ("0", str(7 + stream)), self.random.choice(NAMES)
        occupancy = float(self.random.randint(0, 100)) if kind == "kernel" else None
        self.made.add(Row(kind, name, start, end, lane, correlation, external, occupancy))

    def _tick(self) -> int:
        self.now += self.random.randint(1, 5_000)
        return self.now
