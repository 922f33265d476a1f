"""A CUDA device through torch: events on its queue, every visible device waited for, memory peaks.

`torch.cuda` is an argument, so that all this runs against a stand-in; nothing here was run on a GPU
yet. The devices are those that `CUDA_VISIBLE_DEVICES` shows, by their visible index; the variable
is read and never changed (S1.21).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from workers.backends import LoadFailed
from workers.record import CudaPeaks

if TYPE_CHECKING:
    import torch

_CALIBRATION_CYCLES: Final = 20_000_000  # some 10 ms: the clock has risen by then
_NO_DRIVER: Final = "no NVIDIA driver"
_OLD_DRIVER: Final = "driver on your system is too old"
_NO_DEVICE: Final = "No CUDA GPUs"
# Field of a reading and key of torch's statistics. The other allocator answers 0 for what it does
# not count.
_PEAKS: Final = {
    "allocated_peak_bytes": "allocated_bytes.all.peak",
    "reserved_peak_bytes": "reserved_bytes.all.peak",
    "requested_peak_bytes": "requested_bytes.all.peak",
    "inactive_split_peak_bytes": "inactive_split_bytes.all.peak",
}
_NATIVE_ONLY: Final = ("requested_peak_bytes", "inactive_split_peak_bytes")
_RETRIES: Final = "num_alloc_retries"


class Event(Protocol):
    """What is used of `torch.cuda.Event`."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...
    def query(self) -> bool: ...
    def elapsed_time(self, end_event: Any) -> float: ...


class Cuda(Protocol):
    """What is used of the module `torch.cuda`."""

    def is_available(self) -> bool: ...
    def device_count(self) -> int: ...
    def init(self) -> None: ...
    def synchronize(self, device: Any = None) -> None: ...
    def memory_stats(self, device: Any = None) -> Mapping[str, Any]: ...
    def reset_peak_memory_stats(self, device: Any = None) -> None: ...
    def get_allocator_backend(self) -> str: ...
    def get_device_properties(self, device: Any = None) -> Any: ...


class VisibleDevice(Struct, frozen=True, kw_only=True):
    """One device that this process sees. setting: what `CUDA_VISIBLE_DEVICES` calls it, or "".

    uuid: as torch says it; it is for hashing, and belongs in no document as it is.
    """

    visible_index: int
    setting: str
    name: str
    memory_bytes: int
    uuid: str | None


class TorchCuda:
    """All visible devices: events on the current queue, waiting for everything, allocator peaks.

    make_event: returns an event that can be timed. sleep_cycles: queues a kernel that spins so many
    clock cycles, None where torch has none.
    """

    def __init__(
        self,
        cuda: Cuda,
        *,
        make_event: Callable[[], Event],
        sleep_cycles: Callable[[int], None] | None,
    ) -> None:
        self._cuda, self._make_event, self._sleep_cycles = cuda, make_event, sleep_cycles
        self._indices = range(cuda.device_count())
        self._cycles_per_ns = 0.0
        self._retries: dict[int, int] = {}

    def event(self) -> Event:
        return self._make_event()

    def record(self, event: Event, /) -> None:
        event.record()

    def wait(self, event: Event, /) -> None:
        event.synchronize()

    def done(self, event: Event, /) -> bool:
        return event.query()

    def elapsed_ns(self, begin: Event, end: Event, /) -> int:
        return round(begin.elapsed_time(end) * 1e6)

    def synchronize(self) -> None:
        """Wait for every visible device, in order: a model may have put work on any (S1.19)."""
        for index in self._indices:
            self._cuda.synchronize(index)

    def spin(self, ns: int, /) -> bool:
        """Queue a kernel of about that length; the first call finds out how long a cycle is."""
        if self._sleep_cycles is None:
            return False
        if not self._cycles_per_ns:
            self._cycles_per_ns = self._calibrated(self._sleep_cycles)
        self._sleep_cycles(max(1, round(ns * self._cycles_per_ns)))
        return True

    def reset_peaks(self) -> None:
        """Start the peaks of every visible device anew; nothing is freed."""
        for index in self._indices:
            self._cuda.reset_peak_memory_stats(index)
            # Unlike the peaks this one counts on, so it is told as a difference.
            self._retries[index] = int(self._cuda.memory_stats(index).get(_RETRIES, 0))

    def peaks(self) -> list[CudaPeaks]:
        """Return the peaks of every visible device since the reset, by visible index."""
        native = self._cuda.get_allocator_backend() == "native"
        return [self._peaks_of(index, native=native) for index in self._indices]

    def allocator(self) -> tuple[int, int]:
        """Return bytes reserved now and retries so far, over all visible devices.

        A step is not warm while either changes. Costs a walk over the allocator's statistics: ask
        between blocks, never inside a timed region.
        """
        every = [self._cuda.memory_stats(index) for index in self._indices]
        return (
            sum(int(stats.get("reserved_bytes.all.current", 0)) for stats in every),
            sum(int(stats.get(_RETRIES, 0)) for stats in every),
        )

    def visible(self, environ: Mapping[str, str]) -> list[VisibleDevice]:
        """Return what this process sees, by visible index."""
        settings = [each.strip() for each in environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
        found = []
        for index in self._indices:
            properties = self._cuda.get_device_properties(index)
            uuid = getattr(properties, "uuid", None)
            found.append(
                VisibleDevice(
                    visible_index=index,
                    setting=settings[index] if index < len(settings) else "",
                    name=str(properties.name),
                    memory_bytes=int(properties.total_memory),
                    uuid=None if uuid is None else str(uuid),
                )
            )
        return found

    def l2_bytes(self, index: int) -> int | None:
        """Return the size of a visible device's L2 cache; None where torch does not say."""
        found = getattr(self._cuda.get_device_properties(index), "L2_cache_size", None)
        return int(found) if found else None

    def _calibrated(self, sleep_cycles: Callable[[int], None]) -> float:
        begin, end = self.event(), self.event()
        sleep_cycles(_CALIBRATION_CYCLES)  # the clock of an idle device rises first
        self.record(begin)
        sleep_cycles(_CALIBRATION_CYCLES)
        self.record(end)
        self.wait(end)
        return _CALIBRATION_CYCLES / max(1, self.elapsed_ns(begin, end))

    def _peaks_of(self, index: int, *, native: bool) -> CudaPeaks:
        stats = self._cuda.memory_stats(index)
        values: dict[str, int | None] = {}
        reasons: dict[str, str] = {}
        for name, key in _PEAKS.items():
            values[name] = int(stats[key]) if key in stats else None
            if key not in stats:
                reasons[name] = "not_probed: torch has used no memory of this device"
            elif name in _NATIVE_ONLY and not native:
                values[name] = None
                reasons[name] = "not_supported: this allocator does not count it"
        retries = stats.get(_RETRIES)
        if retries is None:
            reasons["alloc_retries"] = "not_probed: torch has used no memory of this device"
        else:
            retries = int(retries) - self._retries.get(index, 0)
        return CudaPeaks(visible_index=index, alloc_retries=retries, reasons=reasons, **values)


def availability(cuda: Cuda, *, built: bool) -> str:
    """Return "" if there is a CUDA device to use, else a null code with a detail.

    built: whether torch was built for CUDA. Asking starts the driver in this process: a child may,
    its parent may not.
    """
    if not built:
        return "not_supported: this torch was built without CUDA"
    try:
        if cuda.is_available():
            return ""
        cuda.init()  # it says why
    except (RuntimeError, AssertionError) as error:
        return _why(str(error))
    return "not_supported: no CUDA device is visible"


def opened() -> TorchCuda:
    """Return the CUDA devices of this process; raise LoadFailed where there are none.

    There is no fallback to another device (S1.18).
    """
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing driver is told below, and once
        built = torch.version.cuda is not None or torch.version.hip is not None
        why = availability(torch.cuda, built=built)
    if why:
        hint = "see what the machine has with `farm-worker devices`"
        raise LoadFailed("no_device", f"cuda was asked for and is not here: {why}", hint)
    return TorchCuda(
        torch.cuda,
        make_event=lambda: torch.cuda.Event(enable_timing=True),  # type: ignore[no-untyped-call]
        sleep_cycles=getattr(torch.cuda, "_sleep", None),
    )


def l2_flush(cache_bytes: int, *, device: "torch.device | str") -> Callable[[], object]:
    """Return what writes a buffer as large as the cache, made once, here; it does not wait."""
    import torch

    return torch.empty(max(1, cache_bytes), dtype=torch.uint8, device=device).zero_


def _why(message: str) -> str:
    line = message.split("\n")[0].strip()
    if _NO_DRIVER in message or _OLD_DRIVER in message:
        return f"driver_not_loaded: {line}"
    if _NO_DEVICE in message:
        return "not_supported: no CUDA device is visible"
    return f"error: {line}"
