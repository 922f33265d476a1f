"""The gates of the host, on a CPU slot that waits and on a GPU slot that does not."""

from typing import Any

import pytest
from msgspec import structs

from farm.gates import gates
from tests.workers.gates.quiet import QUIET_HOST
from workers.gates import Finding, before, static, worst

GATES = gates()


def ahead(*, on_cpu: bool = True, **changes: Any) -> list[Finding]:
    return before(None, structs.replace(QUIET_HOST, **changes), gates=GATES, on_cpu=on_cpu)


def bad(found: list[Finding]) -> dict[str, str]:
    return {each.id: each.verdict for each in found if each.verdict not in ("ok", "skipped")}


def test_a_quiet_host_is_fit() -> None:
    assert {} == bad(ahead())
    assert {"host_cores", "host_pressure", "host_memory", "host_disk"} == {
        each.id for each in ahead()
    }


@pytest.mark.parametrize(
    ("changes", "gate", "on_cpu", "on_gpu"),
    [
        ({"busy_share": 0.06}, "host_cores", "defer", "degraded"),
        ({"some_share": 0.06}, "host_pressure", "defer", "degraded"),
        ({"available_bytes": (3 << 30) - 1}, "host_memory", "defer", "defer"),
        ({"free_share": 0.09}, "host_disk", "degraded", "degraded"),
        ({"free_share": 0.04}, "host_disk", "defer", "defer"),
        ({"busy_share": None}, "host_cores", "unknown", "unknown"),
        ({"available_bytes": None}, "host_memory", "unknown", "unknown"),
        ({"free_share": None}, "host_disk", "unknown", "unknown"),
    ],
)
def test_a_fault_of_the_host_has_its_verdict(
    changes: dict[str, Any], gate: str, on_cpu: str, on_gpu: str
) -> None:
    """Others on the cores are in the way of a CPU slot, and a doubt for a GPU slot."""
    assert ({gate: on_cpu}, {gate: on_gpu}) == (
        bad(ahead(**changes)),
        bad(ahead(on_cpu=False, **changes)),
    )


def test_a_kernel_without_pressure_skips_that_gate() -> None:
    assert {} == bad(ahead(some_share=None))


@pytest.mark.parametrize("limit", [0.05, 0.0499])
def test_a_limit_itself_is_within_it(limit: float) -> None:
    assert {} == bad(ahead(busy_share=limit))


def test_a_clock_that_takes_a_system_call_is_a_doubt() -> None:
    slow = static(None, structs.replace(QUIET_HOST, clocksource="hpet"), gates=GATES)
    none = static(None, structs.replace(QUIET_HOST, clocksource=None), gates=GATES)

    assert ({"host_clock": "degraded"}, {"host_clock": "unknown"}) == (bad(slow), bad(none))
    assert "degraded" == worst(slow)
