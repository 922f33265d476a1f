"""The gates of a GPU: what its readings say, each rule on its own.

A rule returns its verdict and what it saw. A reading that the device does not offer skips its gate;
one that should be there and fails leaves it unknown.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from workers.gates.record import Baseline, Severity, Verdict
from workers.gpu import Process, Reading, State

Limits = Mapping[str, Any]
Said = tuple[Verdict, str, Severity]

_MIB: Final = 1 << 20
_BROKEN: Final = {15: "the GPU is lost", 16: "a reset is required", 18: "driver and library differ"}
OK: Final[Said] = ("ok", "", "")


def nvml(state: State | None, hangs: int, limits: Limits) -> Said:
    """What its driver says of the GPU itself; None where it did not answer."""
    if hangs >= limits["hangs"]:
        return "quarantine", f"its driver hung {hangs} times in a row", "hard"
    if state is None:
        return "unknown", "its driver did not answer", ""
    codes = {each.code for each in state.readings.values()}
    for code, words in _BROKEN.items():
        if code in codes:
            return "quarantine", words, "hard"
    return OK


def recovery_action(state: State, limits: Limits) -> Said:
    found = state.readings.get("recovery_action", Reading(reason="not_probed"))
    if found.value is None:
        return _unread(found)
    said = f"its driver asks for recovery action {found.value}"
    if found.value in limits["quarantine"]:
        return "quarantine", said, "hard"
    return ("degraded", said, "") if found.value in limits["degraded"] else OK


def xid(state: State, since_ns: int, limits: Limits) -> Said:
    """The errors since a moment, by the worst of them; those of a job blame the job."""
    new = [each for at, each in state.xids if at >= since_ns]
    said = f"Xid {', '.join(map(str, new))}"
    if any(each in limits["quarantine"] for each in new):
        return "quarantine", said, "hard"
    if any(each not in limits["job"] for each in new):
        return "degraded", said, ""
    return ("degraded", said, "job") if new else OK


def ecc_uncorrected(state: State, limits: Limits) -> Said:
    found = state.readings.get("ecc_uncorrected", Reading(reason="not_probed"))
    if found.value is None:
        return _unread(found)
    if found.value > limits["quarantine"]:
        return "quarantine", f"{found.value} uncorrected memory errors since the boot", "hard"
    return OK


def ecc_corrected(first: State, last: State, limits: Limits) -> Said:
    grown, why = _grown(first, last, "ecc_corrected")
    if grown is None:
        return why
    many = grown > limits["degraded"]
    return ("degraded", f"{grown} corrected memory errors in the repeat", "") if many else OK


def remap(state: State, limits: Limits) -> Said:
    """Rows that were remapped, or the pages that older GPUs retire."""
    rows = state.readings.get("remapped", Reading(reason="not_probed"))
    pending = state.readings.get("retired_pending", Reading(reason="not_probed"))
    if rows.value is None and pending.value is None:
        return _unread(rows)
    _, uncorrectable, waits, failed = [*(rows.value or ()), 0, 0, 0, 0][:4]
    pages = sum(
        state.readings.get(name, Reading()).value or 0
        for name in ("retired_single", "retired_double")
    )
    if failed:
        return "quarantine", "a row could not be remapped", "hard"
    if pages >= limits["pages"]:
        return "quarantine", f"{pages} pages are retired", "hard"
    if waits or pending.value:
        return "degraded", "memory waits for a reset to be remapped", ""
    if uncorrectable >= limits["uncorrectable"]:
        return "degraded", f"{uncorrectable} rows were remapped for good", ""
    return OK


def contention(
    state: State, own: Collection[int], names: Mapping[int, str], limits: Limits
) -> Said:
    """Who else is on it. own: processes of ours; names: of the others, where they are known."""
    if state.processes is None:
        return "unknown", f"the list of its processes: {state.processes_reason}", ""
    foreign = [each for each in state.processes if each.pid not in own or not each.pid]
    if not foreign:
        return OK
    said = f"on it: {', '.join(sorted({_name(each, names) for each in foreign}))}"
    if all(names.get(each.pid) in limits["display"] for each in foreign):
        return "degraded", said, ""
    return "defer", said, ""


def device_memory(state: State, baseline: Baseline, waited_s: float | None, limits: Limits) -> Said:
    """Memory that no process explains: a job that died may have left it, and may yet let it go.

    waited_s: for that, None after a repeat, whose own end may be the reason.
    """
    used = state.readings.get("memory_used_bytes", Reading(reason="not_probed"))
    if used.value is None:
        return _unread(used)
    if state.processes:
        return "skipped", "a process has it", ""
    if baseline.used_bytes is None:
        most = limits["without_baseline_bytes"]
    else:
        most = baseline.used_bytes + limits["over_baseline_bytes"]
    if used.value <= most:
        return OK
    said = f"{used.value // _MIB} MiB are used, and no process has them"
    if waited_s is None:
        return "degraded", said, ""
    if waited_s < limits["wait_s"]:
        return "defer", said, ""
    return "quarantine", f"{said}, for {waited_s:.0f} s", "soft"


def device_idle(states: Sequence[State], limits: Limits) -> Said:
    """Whether it computes for somebody, in two of the last three looks at it."""
    seen = [each.readings.get("utilization_pct", Reading()).value for each in states[-3:]]
    known = [each for each in seen if each is not None]
    if not known:
        return _unread(states[-1].readings.get("utilization_pct", Reading(reason="not_probed")))
    busy = [each for each in known if each > limits["busy_pct"]]
    if len(busy) >= 2:
        return "defer", f"it is busy to {max(busy)} %", ""
    return OK


def temperature(state: State, baseline: Baseline, waited_s: float, limits: Limits) -> Said:
    """Whether it has cooled down, which it gets a minute for; idle and too hot is a fault."""
    now = state.readings.get("temperature_c", Reading(reason="not_probed"))
    if now.value is None:
        return _unread(now)
    slowdown = state.readings.get("slowdown_c", Reading()).value
    if slowdown and now.value >= slowdown:
        return "quarantine", f"{now.value} °C while idle, and it slows down from {slowdown}", "hard"
    if baseline.idle_c is not None and now.value > baseline.idle_c + limits["over_idle_c"]:
        verdict: Verdict = "degraded" if waited_s >= limits["wait_s"] else "defer"
        return verdict, f"{now.value} °C, and {baseline.idle_c} °C when idle", ""
    return OK


def power_limit(state: State, limits: Limits) -> Said:
    now = state.readings.get("power_limit_mw", Reading(reason="not_probed"))
    usual = state.readings.get("power_default_mw", Reading(reason="not_probed"))
    if now.value is None or not usual.value:
        return _unread(now if now.value is None else usual)
    if now.value < limits["share_of_default"] * usual.value:
        watts = f"{now.value / 1000:.0f} W of {usual.value / 1000:.0f} W"
        return "degraded", f"its power is limited to {watts}", ""
    return OK


def pcie_replay(first: State, last: State, limits: Limits) -> Said:
    """Packets that had to be sent again, by minute, lane and generation of the link."""
    grown, why = _grown(first, last, "pcie_replays")
    lanes = last.readings.get("pcie_width", Reading(reason="not_probed"))
    if grown is None or not lanes.value:
        return why if grown is None else _unread(lanes)
    rates = limits["per_min_per_lane"]
    at = last.readings.get("pcie_gen", Reading()).value or len(rates)
    most = lanes.value * rates[min(at, len(rates)) - 1]
    per_min = grown / max(1.0, (last.at_ns - first.at_ns) / 60e9)
    said = f"{grown} packets of its link were sent again"
    if per_min > limits["quarantine_factor"] * most:
        return "quarantine", said, "soft"
    return ("degraded", said, "") if per_min > most else OK


def nvlink(first: State, last: State, limits: Limits) -> Said:
    grown, why = _grown(first, last, "nvlink_errors")
    if grown is None:
        return why
    return ("degraded", f"{grown} errors on its links", "") if grown > limits["errors"] else OK


def mode(state: State, limits: Limits) -> Said:
    """A change that waits for a reset, or a mode in which nothing may compute."""
    computes = state.readings.get("compute_mode", Reading(reason="not_probed"))
    if computes.value == limits["prohibited"]:
        return "quarantine", "its compute mode is prohibited", "hard"
    cut = state.readings.get("mig_mode", Reading(reason="not_supported"))
    if cut.value is not None and cut.value[0] != cut.value[1]:
        return "degraded", "a change of its MIG mode waits for a reset", ""
    return OK if computes.value is not None else _unread(computes)


def _unread(found: Reading) -> Said:
    skips = found.reason.partition(":")[0] == "not_supported"
    return ("skipped" if skips else "unknown"), found.reason or "not_probed", ""


def _grown(first: State, last: State, name: str) -> tuple[int | None, Said]:
    none = Reading(reason="not_probed")
    then, now = (each.readings.get(name, none) for each in (first, last))
    if then.value is None or now.value is None:
        return None, _unread(now if now.value is None else then)
    return max(0, now.value - then.value), OK  # a counter that fell was begun anew


def _name(process: Process, names: Mapping[int, str]) -> str:
    return names.get(process.pid) or (f"pid {process.pid}" if process.pid else "an unseen process")
