"""All gates of one moment together: what each found, and what follows from the worst of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from farm.gates import Gate
from workers.gates import gpu, host
from workers.gates.record import RISING, Baseline, Finding, HostState, Phase, Verdict
from workers.gpu import State

Gates = Mapping[str, Gate]
Rule = Callable[[Mapping[str, object]], gpu.Said]


def static(state: State | None, found: HostState | None, *, gates: Gates) -> list[Finding]:
    """Return what holds until something is changed: modes, and the clock of the host."""
    rules: dict[str, Rule] = {}
    if found is not None:
        rules["host_clock"] = lambda limits: host.host_clock(found, limits)
    if state is not None:
        rules |= {
            "nvml": lambda limits: gpu.nvml(state, 0, limits),
            "mode": lambda limits: gpu.mode(state, limits),
        }
    return list(_judged("static", rules, gates))


def before(
    states: Sequence[State] | None,
    found: HostState | None,
    *,
    gates: Gates,
    on_cpu: bool,
    baseline: Baseline = Baseline(),  # noqa: B008 - it cannot be changed
    waited_s: Mapping[str, float] | None = None,
    since_ns: int = 0,
    hangs: int = 0,
    own: Collection[int] = (),
    names: Mapping[int, str] | None = None,
) -> list[Finding]:
    """Return what a repeat would begin with.

    states: the last looks at the GPU, none where its driver does not answer, None on a CPU slot.
    found: the host, None where nobody looked.
    on_cpu: whether the cores themselves are measured. waited_s: by gate, for what passes: for the
    device to cool down, and for memory to be let go.
    since_ns: errors of the driver count from then. own: processes of ours; names: of all.
    """
    rules = {} if found is None else _of_host(found, on_cpu=on_cpu)
    waited = {"temperature": 0.0, "device_memory": 0.0, **(waited_s or {})}
    if states is not None:
        now = states[-1] if states else None
        rules["nvml"] = lambda limits: gpu.nvml(now, hangs, limits)
        if now is not None:
            rules |= _of_state(now, since_ns, own, names or {})
            rules |= {
                "device_idle": lambda limits: gpu.device_idle(states, limits),
                "device_memory": lambda limits: gpu.device_memory(
                    now, baseline, waited["device_memory"], limits
                ),
                "temperature": lambda limits: gpu.temperature(
                    now, baseline, waited["temperature"], limits
                ),
                "power_limit": lambda limits: gpu.power_limit(now, limits),
            }
    return list(_judged("before", rules, gates))


def after(
    first: State,
    last: State,
    *,
    gates: Gates,
    baseline: Baseline = Baseline(),  # noqa: B008 - it cannot be changed
    own: Collection[int] = (),
    names: Mapping[int, str] | None = None,
) -> list[Finding]:
    """Return what a repeat has left: first and last are the GPU before and after it."""
    rules = _of_state(last, first.at_ns, own, names or {})
    rules |= {
        "device_memory": lambda limits: gpu.device_memory(last, baseline, None, limits),
        "ecc_corrected": lambda limits: gpu.ecc_corrected(first, last, limits),
        "pcie_replay": lambda limits: gpu.pcie_replay(first, last, limits),
        "nvlink": lambda limits: gpu.nvlink(first, last, limits),
    }
    return list(_judged("after", rules, gates))


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of those that have an effect, `ok` of none."""
    verdicts = {each.verdict for each in findings if each.enforced} - {"skipped"}
    return next((each for each in reversed(RISING) if each in verdicts), "ok")


def _of_host(found: HostState, *, on_cpu: bool) -> dict[str, Rule]:
    return {
        "host_cores": lambda limits: host.host_cores(found, on_cpu, limits),
        "host_pressure": lambda limits: host.host_pressure(found, on_cpu, limits),
        "host_memory": lambda limits: host.host_memory(found, limits),
        "host_disk": lambda limits: host.host_disk(found, limits),
    }


def _of_state(
    state: State,
    since_ns: int,
    own: Collection[int],
    names: Mapping[int, str],
) -> dict[str, Rule]:
    return {
        "recovery_action": lambda limits: gpu.recovery_action(state, limits),
        "xid": lambda limits: gpu.xid(state, since_ns, limits),
        "ecc_uncorrected": lambda limits: gpu.ecc_uncorrected(state, limits),
        "remap": lambda limits: gpu.remap(state, limits),
        "contention": lambda limits: gpu.contention(state, own, names, limits),
    }


def _judged(phase: Phase, rules: Mapping[str, Rule], gates: Gates) -> Iterator[Finding]:
    for name, rule in rules.items():
        gate = gates[name]
        if phase not in gate.phases:
            continue
        verdict, reason, severity = rule(gate.limits)
        yield Finding(
            id=name,
            phase=phase,
            verdict=verdict,
            reason=reason,
            severity=severity,
            enforced=gate.mode == "enforce",
        )
