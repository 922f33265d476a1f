"""GPUs through the real bindings and a library that a test writes, in the probe as it is."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from farm.gates import gates
from tests.fake_nvml import compiled
from tests.fake_nvml.compiled import State
from tests.workers.gates.quiet import QUIET_HOST
from workers import gpu
from workers.gates import after, before, static
from workers.gpu import Board, Hung, Probe, Reading

pytestmark = pytest.mark.skipif(not compiled.has_compiler(), reason="no compiler")

GPU = "GPU-00000000-0000-0000-0000-000000000000"
GIB = 1 << 30
USED = sorted(
    {
        name
        for each in Path(gpu.__file__).parent.glob("*.py")
        for name in re.findall(r'"(nvml[A-Z]\w+)"', each.read_text())
    }
)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled.built(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state", count=1)


@pytest.fixture
def probe(built: Path, state: State) -> Iterator[Probe]:
    with Probe(environ=state.environ(built)) as found:
        yield found


def boards(probe: Probe) -> list[Board]:
    return probe.boards().boards


def reasons(found: Mapping[str, Reading]) -> dict[str, str]:
    return {name: each.reason for name, each in found.items() if each.value is None}


# ── which there are ──────────────────────────────────────────────────────────────────────────────


def test_a_gpu_is_what_its_driver_says(probe: Probe, state: State) -> None:
    state.set(_0__uuid="GPU-5a", _0__name="NVIDIA L4", _0__capability=89, _0__cores=7424)

    (found,) = boards(probe)

    assert ("GPU-5a", "gpu", "NVIDIA L4", "0000:01:00.0") == (
        *(found.uuid, found.kind, found.name, found.pci_bdf),
    )
    assert (58, 80 * GIB, tuple(range(8))) == (found.sm_count, found.memory_bytes, found.cpus)


def test_a_gpu_that_is_cut_is_its_slices(probe: Probe, state: State) -> None:
    """The whole of it is no device then."""
    state.set(count=2, _1__mig=1, _1__mig__0__uuid="MIG-a", _1__mig__3__uuid="MIG-b")
    state.set(_1__mig__3__attributes="32,2,2,19968")

    whole, first, second = boards(probe)

    assert ("gpu", "mig", "mig") == (whole.kind, first.kind, second.kind)
    assert ("MIG-a", "1g.10gb", "16/132", "10/80", 16) == (
        *(first.uuid, first.profile, first.sm_ratio, first.memory_ratio, first.sm_count),
    )
    assert ("2g.20gb", 19968 << 20, True) == (
        *(second.profile, second.memory_bytes, second.has_siblings),
    )
    assert first.parent == second.parent != whole.uuid


def test_a_slice_alone_has_no_siblings_and_one_without_slices_is_said(
    probe: Probe, state: State
) -> None:
    state.set(count=2, _0__mig=1, _0__mig__0__uuid="MIG-a", _1__mig=1)

    found = probe.boards()

    assert [False] == [each.has_siblings for each in found.boards]
    assert "GPU 1: mig is on, and no slice was made" == found.why


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ({"fail__nvmlInitWithFlags": 4}, "no_permission"),
        ({"fail__nvmlInitWithFlags": 9}, "driver_not_loaded"),
        ({"fail__nvmlInitWithFlags": 18}, "error: RM has detected"),
        ({"fail__nvmlInitWithFlags": 999}, "error: Unknown Error (999)"),
        ({"fail__nvmlDeviceGetCount_v2": 4}, "no_permission"),
        ({"count": 0}, ""),
        ({"_0__fail__nvmlDeviceGetHandleByIndex_v2": 15}, "GPU 0: gpu_lost"),
    ],
)
def test_a_driver_that_shows_none_gives_its_reason(
    probe: Probe, state: State, lines: dict[str, object], why: str
) -> None:
    """N4: never an error, and never a device that cannot be used."""
    state.set(**lines)

    found = probe.boards()

    assert [] == found.boards
    assert found.why.startswith(why)
    assert bool(why) == bool(found.why)


def test_one_lost_gpu_does_not_hide_the_others(probe: Probe, state: State) -> None:
    state.set(count=3, _1__fail__nvmlDeviceGetHandleByIndex_v2=15)

    found = probe.boards()

    assert ([0, 2], "GPU 1: gpu_lost") == ([each.index for each in found.boards], found.why)


def test_a_gpu_without_a_uuid_is_no_device(probe: Probe, state: State) -> None:
    """Nobody could be pinned to it, and two of them would be one."""
    state.set(count=2, _1__fail__nvmlDeviceGetUUID=4)

    found = probe.boards()

    assert [0] == [each.index for each in found.boards]
    assert "GPU 1: nobody can be pinned to it without its UUID" == found.why


def test_a_gpu_that_is_gone_is_none_any_more(probe: Probe, state: State) -> None:
    state.set(count=2)
    gone = boards(probe)[1]

    state.set(count=1)

    assert [0] == [each.index for each in boards(probe)]
    with pytest.raises(LookupError, match="KeyError"):
        probe.state(gone.uuid)


# ── how one fares ────────────────────────────────────────────────────────────────────────────────


def test_a_healthy_gpu_answers_every_question(probe: Probe) -> None:
    """N23: so every name that is used is one that bindings and library have."""
    (board,) = boards(probe)

    found, facts = probe.state(board.uuid), probe.facts(board.uuid)
    probe.watch(board.uuid, 10.0)
    sample = _first(probe, board.uuid)

    assert ({}, {}, {}) == (reasons(found.readings), reasons(facts), sample.missing)
    assert ([], [], "") == (found.xids, found.processes, found.processes_reason)
    assert ("hopper", "9.0", 700, "13.0") == tuple(
        facts[name].value
        for name in ("architecture", "compute_capability", "power_default_w", "cuda_driver")
    )
    assert (345e6, 70.0, 34) == (sample.sm_clock_hz, sample.power_w, sample.temperature_c)


def _first(probe: Probe, uuid: str) -> Any:
    while not (found := probe.samples(uuid).samples):
        pass
    return found[0]


def test_a_change_is_seen_by_the_next_question(probe: Probe, state: State) -> None:
    (board,) = boards(probe)

    state.set(_0__uncorrected=2, _0__proc=["77:1024", "4194305:5"], _0__gproc="9:0")
    found = probe.state(board.uuid)

    assert 2 == found.readings["ecc_uncorrected"].value
    assert [(77, "compute", 1024), (0, "compute", 5), (9, "graphics", 0)] == [
        (each.pid, each.kind, each.used_bytes) for each in found.processes or ()
    ]


def test_errors_of_the_driver_are_told_with_their_moment(probe: Probe, state: State) -> None:
    (board,) = boards(probe)
    before_ns = probe.state(board.uuid).at_ns

    state.set(_0__xid=[79, 31])
    found = probe.state(board.uuid)

    assert [79, 31] == [xid for _, xid in found.xids]
    assert all(before_ns < at <= found.at_ns for at, _ in found.xids)


def test_memory_of_an_old_driver_counts_what_it_reserves(tmp_path: Path, state: State) -> None:
    """And an event reason is asked by the name that it had."""
    lacks = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons")
    old = compiled.built(tmp_path / "old", without=lacks)
    state.set(_0__memory_used=1 << 20, _0__events=4)
    with Probe(environ=state.environ(old)) as probe:
        (board,) = boards(probe)
        found = probe.state(board.uuid).readings
        probe.watch(board.uuid, 10.0)
        sample = _first(probe, board.uuid)

    assert (641 << 20, 80 * GIB, 4) == (
        found["memory_used_bytes"].value,
        found["memory_total_bytes"].value,
        sample.events,
    )
    assert found["memory_reserved_bytes"].reason.startswith("not_supported")


def test_a_power_that_is_only_an_average_is_better_than_none(probe: Probe, state: State) -> None:
    state.set(_0__field__186__fail=3, _0__field__185=123_000)
    (board,) = boards(probe)
    probe.watch(board.uuid, 10.0)

    assert 123.0 == _first(probe, board.uuid).power_w


# ── what fails ───────────────────────────────────────────────────────────────────────────────────

GATES = gates(enforced=True)
# The symbols behind names of the bindings that are no symbols themselves.
SYMBOLS = {
    "nvmlInit": "nvmlInitWithFlags",
    "nvmlDeviceGetCount": "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex": "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetPciInfo": "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetMemoryInfo": "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetAttributes": "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses": "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses": "nvmlDeviceGetMPSComputeRunningProcesses_v3",
}


@pytest.mark.parametrize("name", USED)
def test_a_call_that_fails_costs_what_it_tells_and_is_never_fit(
    probe: Probe, state: State, name: str
) -> None:
    """N14: no crash, and no reading that stands for another; what fails is not healthy."""
    (board,) = boards(probe)
    for code in (3, 4, 13, 15, 999):
        state.set(**{f"fail__{SYMBOLS.get(name, name)}": code})

        looks = [probe.state(board.uuid) for _ in range(2)]
        facts = probe.facts(board.uuid)

        said = [
            *before(looks, QUIET_HOST, gates=GATES, on_cpu=False),
            *after(looks[0], looks[1], gates=GATES),
            *static(looks[1], QUIET_HOST, gates=GATES),
        ]
        lost = reasons(looks[1].readings)
        fit = {each.id for each in said if each.verdict not in ("ok", "skipped")}
        assert ("nvml" in fit) == (code == 15 and bool(lost)), code
        assert bool(fit) <= bool(lost or looks[1].processes is None), code
        assert all(each.reason for each in said if each.verdict != "ok"), code
        assert all(each for each in [*lost.values(), *reasons(facts).values()]), code


@pytest.mark.parametrize("symbol", ["nvmlDeviceGetTemperature", "nvmlDeviceGetCount_v2"])
def test_a_call_that_hangs_is_given_up(built: Path, state: State, symbol: str) -> None:
    """N2: the next question finds a probe that answers."""
    with Probe(environ=state.environ(built), deadline_s=10.0) as probe:
        ask: Callable[[], object] = probe.boards
        if symbol == "nvmlDeviceGetTemperature":
            (board,) = boards(probe)
            ask = lambda: probe.state(board.uuid)  # noqa: E731
        probe._deadline_s = 0.3
        state.set(**{f"sleep__{symbol}": 60_000})

        with pytest.raises(Hung, match="said nothing"):
            ask()

        state.set(**{f"sleep__{symbol}": None})
        probe._deadline_s = 10.0
        assert 1 == len(boards(probe))


def test_every_function_that_is_used_is_one_of_the_bindings() -> None:
    import pynvml

    assert [] == [name for name in USED if not hasattr(pynvml, name)]
    assert len(USED) > 40
