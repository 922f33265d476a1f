"""What is known of a GPU: a value each, or the reason why there is none."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

Kind = Literal["gpu", "mig"]


class Reading(Struct, frozen=True, omit_defaults=True):
    """A value, or the reason why there is none; never 0 or "" in place of one.

    reason: a null code, and after a colon more about it. code: of NVML, where a call failed.
    """

    value: Any = None
    reason: str = ""
    code: int = 0


class Board(Struct, frozen=True, kw_only=True):
    """A GPU that a job can be pinned to, or a MIG slice of one.

    uuid: what CUDA_VISIBLE_DEVICES takes; it stays on this node. index: of the GPU in the driver's
    order, which is neither that of CUDA nor lasting. cpus: the logical CPUs near it, none where
    nobody knows. numa_node: near it, None where the kernel does not say.

    Of a slice: parent is the uuid of its GPU, profile its form, such as `1g.10gb`, and the ratios
    are how many of the multiprocessors and GiB of its GPU it has, as `16/132`, "" where that is not
    known. has_siblings: there are other slices of its GPU.
    """

    uuid: str
    kind: Kind
    name: str
    pci_bdf: str
    index: int
    memory_bytes: int | None
    sm_count: int | None
    cpus: tuple[int, ...] = ()
    numa_node: int | None = None
    parent: str = ""
    profile: str = ""
    sm_ratio: str = ""
    memory_ratio: str = ""
    has_siblings: bool = False


class Process(Struct, frozen=True, kw_only=True):
    """A process on a GPU. pid: of its own namespace, 0 where it cannot be known."""

    pid: int
    kind: Literal["compute", "graphics", "mps"]
    used_bytes: int | None


class State(Struct, frozen=True, kw_only=True):
    """A GPU at one moment, as gates look at it; readings by the names of `SYMBOLS`.

    xids: errors that its driver told of since the probe was started, with when, in ns. processes:
    None where the list could not be had, and why in `processes_reason`.
    """

    at_ns: int
    readings: dict[str, Reading]
    xids: list[tuple[int, int]]
    processes: list[Process] | None
    processes_reason: str = ""


class Boards(Protocol):
    """Where the probe gets its answers: the driver, a script, or a recording."""

    def boards(self) -> tuple[Sequence[Board], str]:
        """Return every GPU and slice that can be used, and why there are none."""

    def facts(self, uuid: str) -> Mapping[str, Reading]:
        """Return what a system card says of a GPU."""

    def state(self, uuid: str, *, at_ns: int) -> State:
        """Return what gates look at; it takes milliseconds, and locks of the driver."""

    def sensors(self, uuid: str) -> Mapping[str, float | int | str]:
        """Return what varies while a job runs, by the fields of `telemetry.Sample`."""

    def hear(self) -> None:
        """Take the errors that the driver has told of since it was last asked."""
