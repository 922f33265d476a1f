"""GPUs through the driver's library: which there are, how they fare, what they show while one runs.

Every call may fail by itself, and what it would have told is then missing with its reason.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from workers.gpu import facts, live, states
from workers.gpu.nvml import Library
from workers.gpu.record import Board, Reading, State
from workers.host import Host, cpu_list, number

_XID: Final = 0x8  # nvmlEventTypeXidCriticalError
_MEBI: Final = 1 << 20
_WORD: Final = 64  # bits of a word of a CPU mask
_MOST_CPUS: Final = 16 * _WORD


class Driver:
    """The GPUs of this machine; the library stays loaded, and handles are kept.

    A question about a device that is not known yet looks for it; KeyError where there is none.
    """

    def __init__(
        self,
        library: Library,
        *,
        host: Host | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._library, self._host, self._clock = library, host or Host(), clock
        self._handles: dict[str, Any] = {}  # of the device itself,
        self._gpus: dict[str, Any] = {}  # and of the GPU that it is, or is a slice of
        self._boards: dict[str, Board] = {}
        self._xids: dict[str, list[tuple[int, int]]] = {}
        self._events: Reading | None = None

    def boards(self) -> tuple[Sequence[Board], str]:
        """Return every GPU that is whole and every slice of the others, and what is missing."""
        count = self._library.read(("nvmlDeviceGetCount",))
        if count.value is None:
            return [], count.reason
        whys = []
        self._boards = {}  # one that was there and is gone is none any more
        for index in range(count.value):
            gpu = self._library.read(("nvmlDeviceGetHandleByIndex",), index)
            found = list(self._of_gpu(gpu.value, index)) if gpu.value is not None else []
            if gpu.value is None:
                whys.append(f"GPU {index}: {gpu.reason}")
            elif not found:
                whys.append(f"GPU {index}: mig is on, and no slice was made")
            for handle, board in found:
                if not board.uuid:
                    whys.append(f"GPU {index}: nobody can be pinned to it without its UUID")
                    continue
                self._handles[board.uuid], self._gpus[board.uuid] = handle, gpu.value
                self._boards[board.uuid] = board
        return list(self._boards.values()), "; ".join(whys)

    def facts(self, uuid: str) -> Mapping[str, Reading]:
        return facts.facts(self._library, self._known(uuid))

    def state(self, uuid: str, *, at_ns: int) -> State:
        gpu = self._known(uuid)
        return states.state(
            self._library,
            self._handles[uuid],
            gpu,
            at_ns=at_ns,
            xids=self._xids.get(self._boards[uuid].parent or uuid, []),
            pid_max=number(self._host.text("proc/sys/kernel/pid_max")) or 1 << 22,
        )

    def sensors(self, uuid: str) -> Mapping[str, float | int | str]:
        return live.sensors(self._library, self._known(uuid))

    def _known(self, uuid: str) -> Any:
        """Return the handle of its GPU: a probe that was started again has none yet."""
        if uuid not in self._boards:
            self.boards()
        self._boards[uuid]
        return self._gpus[uuid]

    def hear(self) -> None:
        """Take the errors that came since the last time; those of a slice are of its GPU."""
        if not self._gpus:
            return
        if self._events is None:
            self._events = self._registered()
        while self._events.value is not None:
            said = self._library.read(("nvmlEventSetWait_v2",), self._events.value, 0).value
            if said is None:  # nothing more came
                return
            uuid = self._library.read(("nvmlDeviceGetUUID",), said.device).value
            if said.eventType == _XID and uuid:
                self._xids.setdefault(uuid, []).append((self._clock(), int(said.eventData)))

    def _of_gpu(self, gpu: Any, index: int) -> Iterator[tuple[Any, Board]]:
        """Yield a GPU, or its slices where it is cut: the whole of it is no device then."""
        whole = self._board(gpu, index)
        mode = self._library.read(("nvmlDeviceGetMigMode",), gpu).value
        if not mode or mode[0] != 1:
            yield gpu, whole
            return
        most = self._library.read(("nvmlDeviceGetMaxMigDeviceCount",), gpu).value or 0
        tried = (
            self._library.read(("nvmlDeviceGetMigDeviceHandleByIndex",), gpu, each).value
            for each in range(most)
        )
        made = [each for each in tried if each is not None]
        for each in made:
            yield each, replace(self._slice(each, whole), has_siblings=len(made) > 1)

    def _board(self, gpu: Any, index: int) -> Board:
        read = self._library.read
        bdf = _bdf(read(("nvmlDeviceGetPciInfo",), gpu).value)
        numa = number(self._host.text(f"sys/bus/pci/devices/{bdf}/numa_node"))
        return Board(
            uuid=str(read(("nvmlDeviceGetUUID",), gpu).value or ""),
            kind="gpu",
            name=str(read(("nvmlDeviceGetName",), gpu).value or ""),
            pci_bdf=bdf,
            index=index,
            memory_bytes=states.memory(self._library, gpu)["memory_total_bytes"].value,
            sm_count=facts.sm_count(self._library, gpu),
            cpus=tuple(self._cpus(gpu, bdf)),
            numa_node=numa if numa is not None and numa >= 0 else None,
        )

    def _slice(self, handle: Any, whole: Board) -> Board:
        cut = self._library.read(("nvmlDeviceGetAttributes",), handle).value
        uuid = str(self._library.read(("nvmlDeviceGetUUID",), handle).value or "")
        mine = replace(whole, uuid=uuid, kind="mig", parent=whole.uuid)
        if cut is None:
            return replace(mine, memory_bytes=None, sm_count=None)
        size, sms = cut.memorySizeMB * _MEBI, cut.multiprocessorCount
        part = f"{cut.computeInstanceSliceCount}c."
        alone = cut.computeInstanceSliceCount == cut.gpuInstanceSliceCount
        form = f"{cut.gpuInstanceSliceCount}g.{round(size / 2**30)}gb"
        return replace(
            mine,
            memory_bytes=size,
            sm_count=sms,
            profile=form if alone else part + form,
            sm_ratio=f"{sms}/{whole.sm_count}" if whole.sm_count else "",
            memory_ratio=_in_gib(size, whole.memory_bytes) if whole.memory_bytes else "",
        )

    def _cpus(self, gpu: Any, bdf: str) -> Sequence[int]:
        """Return the CPUs near a GPU: of the library, else as the kernel shows its PCI device."""
        words = self._library.read(("nvmlDeviceGetCpuAffinity",), gpu, _MOST_CPUS // _WORD).value
        if words is not None and any(words):
            return [at for at in range(_MOST_CPUS) if words[at // _WORD] >> at % _WORD & 1]
        return cpu_list(self._host.text(f"sys/bus/pci/devices/{bdf}/local_cpulist") or "")

    def _registered(self) -> Reading:
        made = self._library.read(("nvmlEventSetCreate",))
        for gpu in self._gpus.values() if made.value is not None else ():
            self._library.read(("nvmlDeviceRegisterEvents",), gpu, _XID, made.value)
        return made


def _in_gib(size: int, whole: int) -> str:
    return f"{round(size / 2**30)}/{round(whole / 2**30)}"


def _bdf(info: Any) -> str:
    """Return the address as the kernel writes it, `0000:3b:00.0`; "" where it is not known.

    The library writes the domain with eight digits.
    """
    if info is None:
        return ""
    raw = info.busId
    text = raw.decode() if isinstance(raw, bytes) else str(raw)
    return text.lower()[-12:]
