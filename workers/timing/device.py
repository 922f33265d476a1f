"""Timing a device that works on its own: events in its queue, and a pipelined loop.

The host clock and the device are arguments. A backend whose calls return finished work has no such
device, and gets None with a reason here, never a number. Formulas: `measurement.md` §4, §9.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol, TypeVar

Clock = Callable[[], int]
E = TypeVar("E")

MOST_EVENT_PAIRS: Final = 200
IN_FLIGHT: Final = 4
_BOUND_SHARE: Final = 0.8
_RELIABLE_NS: Final = 50_000  # an event's quantum is about 0.5 µs: 1 % of it
_AHEAD_FACTOR: Final = 2  # the blocking kernel lasts twice what queueing behind it should take
_LONGEST_SPIN_NS: Final = 250_000_000


class StreamDevice(Protocol[E]):
    """A device that works through one queue, in order, while the host goes on."""

    def event(self) -> E:
        """Make an event that can be timed; it costs too much to be made inside a loop."""

    def record(self, event: E, /) -> None:
        """Queue the event: it happens when all that was queued before has ended."""

    def wait(self, event: E, /) -> None:
        """Return when the event has happened."""

    def done(self, event: E, /) -> bool:
        """Whether the event has happened, without waiting for it."""

    def elapsed_ns(self, begin: E, end: E, /) -> int:
        """Return the device's time between two events that have happened."""

    def synchronize(self) -> None:
        """Return when nothing is queued any more, on any visible device."""

    def spin(self, ns: int, /) -> bool:
        """Queue a kernel that keeps the device busy about so long; False where there is none."""


@dataclass(frozen=True, kw_only=True)
class DeviceTime:
    """Time on the device and time to queue it, per iteration, in ns; the two are never mixed.

    gpu_time_ns: None with a reason where it could not be had. enqueue_ns: host time of a step
    without waiting. enqueue_bound: the host queues no faster than the device works.
    behind_spin: the times were taken behind a blocking kernel.
    """

    gpu_time_ns: "array[int] | None"
    enqueue_ns: "array[int] | None"
    enqueue_bound: bool = False
    behind_spin: bool = False
    reason: str = ""

    @property
    def reliable(self) -> bool:
        """Whether the times stand well above the quantum of an event: the median from 50 µs on."""
        return bool(self.gpu_time_ns) and median(self.gpu_time_ns or ()) >= _RELIABLE_NS


def pass_iterations(typical_ns: float, *, budget_ns: int) -> int:
    """Return how many event pairs fit a budget: at most 200, at least 6 however slow the step."""
    fitting = int(budget_ns / typical_ns) if typical_ns > 0 else MOST_EVENT_PAIRS
    return max(6, min(MOST_EVENT_PAIRS, fitting))


def gpu_time_pass(
    step: Callable[[], object],
    device: StreamDevice[E] | None,
    *,
    clock: Clock,
    iterations: int = MOST_EVENT_PAIRS,
    prepare: Callable[[], object] | None = None,
) -> DeviceTime:
    """Return device and queueing time of so many iterations, all read after one final wait.

    prepare: what is queued before each of them and belongs to neither time, such as a flush.

    Device time means something only while the queue is never empty. Where the host takes 0.8 of the
    device's pace or more, the pass is taken again behind a blocking kernel, in groups small enough
    that the kernel still runs when the last iteration of a group has been queued. A launch queue
    holds about 1,000 launches, so that a long pass is held back to the device's pace and looks as
    if it were bound by queueing: the second pass, whose queue is free, decides whether the median
    of queueing is 0.8 of that of the device (`measurement.md` §4).
    """
    if device is None:
        why = "not_supported: this device has no events"
        return DeviceTime(gpu_time_ns=None, enqueue_ns=None, reason=why)
    count = min(iterations, MOST_EVENT_PAIRS)
    pairs = [(device.event(), device.event()) for _ in range(count)]
    device.synchronize()
    began = clock()
    enqueue_ns = _queue(step, prepare, device, pairs, clock)
    each_ns = (clock() - began) / count
    device.synchronize()
    times_ns = _read(device, pairs)
    pace_ns = device.elapsed_ns(pairs[0][0], pairs[-1][1]) / count
    if each_ns < _BOUND_SHARE * pace_ns and not _is_bound(enqueue_ns, times_ns):
        return DeviceTime(gpu_time_ns=times_ns, enqueue_ns=enqueue_ns)
    free_ns, why = _behind_spin(step, prepare, device, pairs, clock, each_ns)
    if why:
        return DeviceTime(gpu_time_ns=None, enqueue_ns=enqueue_ns, enqueue_bound=True, reason=why)
    times_ns = _read(device, pairs)
    return DeviceTime(
        gpu_time_ns=times_ns,
        enqueue_ns=free_ns,
        enqueue_bound=_is_bound(free_ns, times_ns),
        behind_spin=True,
    )


def pipelined(
    step: Callable[[], object],
    device: StreamDevice[E],
    *,
    clock: Clock,
    at_least_ns: int = 1_000_000_000,
    budget_ns: int = 10_000_000_000,
    in_flight: int = IN_FLIGHT,
    progress: Callable[[int], None] = lambda _done: None,
) -> "array[int]":
    """Return completion stamps, ns, of iterations of which at most `in_flight` are queued at once.

    It runs for `at_least_ns` and 30 completions; slow steps until `budget_ns`, then at least 5.
    The host waits for the oldest event only, in order, and never for the whole device. A stamp is
    the device's: a host that was busy with the next step would see the completion late, the first
    one most of all. progress: hears the completions.
    """
    origin, ring = device.event(), [device.event() for _ in range(in_flight)]
    stamps = array("q")
    device.synchronize()
    began, sent = clock(), 0
    device.record(origin)
    while True:
        slot = ring[sent % in_flight]
        if sent >= in_flight:
            device.wait(slot)
            stamps.append(began + device.elapsed_ns(origin, slot))
            spent_ns = clock() - began
            if is_long_enough(len(stamps), spent_ns, at_least_ns=at_least_ns, budget_ns=budget_ns):
                break
            progress(len(stamps))
        y = step()
        device.record(slot)
        y = None
        sent += 1
    del y
    for index in range(len(stamps), sent):
        slot = ring[index % in_flight]
        device.wait(slot)
        stamps.append(began + device.elapsed_ns(origin, slot))
    return stamps


def completions(
    step: Callable[[], object],
    device: StreamDevice[E],
    count: int,
    *,
    clock: Clock,
    progress: Callable[[int], None] = lambda _queued: None,
) -> "array[int]":
    """Return count + 1 stamps, ns: of the begin and of each completion, nobody waiting between.

    The stamps are the device's, so that a host that runs ahead of it changes none. progress: hears
    how many were queued.
    """
    events = [device.event() for _ in range(count + 1)]
    device.synchronize()
    began, y = clock(), None
    device.record(events[0])
    for queued, event in enumerate(events[1:], start=1):
        y = step()
        device.record(event)
        y = None
        progress(queued)
    del y
    device.synchronize()
    return array("q", (began + device.elapsed_ns(events[0], each) for each in events))


def is_long_enough(done: int, spent_ns: int, *, at_least_ns: int, budget_ns: int) -> bool:
    """Whether a throughput pass may end: after 30 completions, or 5 once the budget is spent.

    And never before `at_least_ns`. Source: `measurement.md` §9.
    """
    if spent_ns < at_least_ns:
        return False
    return done >= 30 or (done >= 5 and spent_ns >= budget_ns)


def _queue(
    step: Callable[[], object],
    prepare: Callable[[], object] | None,
    device: StreamDevice[E],
    pairs: Sequence[tuple[E, E]],
    clock: Clock,
) -> "array[int]":
    """Queue an iteration between each pair of events; return what queueing each took."""
    into = array("q", bytes(8 * len(pairs)))
    for i, (begin, end) in enumerate(pairs):
        if prepare is not None:
            prepare()
        device.record(begin)
        t0 = clock()
        y = step()
        t1 = clock()
        device.record(end)
        into[i] = t1 - t0
        y = None
    del y
    return into


def _behind_spin(
    step: Callable[[], object],
    prepare: Callable[[], object] | None,
    device: StreamDevice[E],
    pairs: Sequence[tuple[E, E]],
    clock: Clock,
    each_ns: float,
) -> tuple["array[int]", str]:
    """Fill the pairs anew; return the queueing times, and why it could not be done, or "".

    each_ns: what queueing an iteration with its events takes the host.
    """
    gate, into, at = device.event(), array("q"), 0
    spin_ns = max(1.0, _AHEAD_FACTOR * each_ns)
    group = max(1, min(len(pairs), int(_LONGEST_SPIN_NS / spin_ns)))
    while at < len(pairs):
        part = pairs[at : at + group]
        if not device.spin(math.ceil(spin_ns * len(part))):
            return into, "not_supported: the host queues too slowly, and no kernel can block"
        device.record(gate)
        queued_ns = _queue(step, prepare, device, part, clock)
        ahead = not device.done(gate)
        device.synchronize()
        if ahead:
            into.extend(queued_ns)
            at += len(part)
        elif len(part) == 1:
            return into, "below_resolution: a step waits for the device, or fills its launch queue"
        else:
            group = len(part) // 2
    return into, ""


def _is_bound(enqueue_ns: "array[int]", times_ns: "array[int]") -> bool:
    return median(enqueue_ns) >= _BOUND_SHARE * median(times_ns)


def _read(device: StreamDevice[E], pairs: Sequence[tuple[E, E]]) -> "array[int]":
    return array("q", (device.elapsed_ns(begin, end) for begin, end in pairs))
