"""The layer pass on layers of known time (T8): three tries each, none of them an absolute time."""

import math
from collections.abc import Callable

import pytest

from farm.schema import LayerTable
from farm.trace import shares as trace_shares
from tests.pressure import skip_under_pressure
from tests.workers.backends.torch import spinning
from tests.workers.backends.torch.spinning import Chain, Spin

pytestmark = pytest.mark.timing
_US = 1_000


def tried(check: Callable[[], str]) -> None:
    """Try three times where the machine is quiet; check: returns what is wrong, "" for nothing."""
    for _ in range(3):
        skip_under_pressure()
        wrong = check()
        if not wrong:
            return
    pytest.fail(wrong)


def shares(table: LayerTable) -> dict[str, float]:
    return {row.layer: row.share_pct for row in table.rows if row.type == "Spin"}


def test_shares_of_layers_of_known_time_are_right_within_two_points() -> None:
    """1 : 2 : 4."""

    def check() -> str:
        model = Chain(*(Spin(each * 200 * _US) for each in (1, 2, 4)))
        found = shares(spinning.table(model))
        truth = {"parts.0": 100 / 7, "parts.1": 200 / 7, "parts.2": 400 / 7}
        off = {name: found[name] - share for name, share in truth.items()}
        return "" if max(map(abs, off.values())) <= 2.0 else f"off by {off} points"

    tried(check)


@pytest.mark.seed("S0.32")
def test_layers_of_five_microseconds_are_slowed_by_a_tenth_at_most() -> None:
    """A profiled iteration is not quicker than a clean one, and the ratio is stated."""

    def check() -> str:
        table = spinning.table(Chain(*(Spin(5 * _US) for _ in range(100))))
        perturbation = table.perturbation
        assert perturbation is not None
        return "" if 0.0 <= perturbation <= 0.10 else f"perturbation {perturbation:.1%}"

    tried(check)


@pytest.mark.long
def test_scaled_layers_add_up_to_a_clean_iteration() -> None:
    """Within 5 %: the layers alone, and what is in no row, scaled as they are (T8)."""

    def check() -> str:
        table = spinning.table(Chain(*(Spin(each * 50 * _US) for each in (1, 2, 4))))
        layers = sum(row.scaled_ms or math.nan for row in table.rows if row.type == "Spin")
        inside = sum(row.average_ms for row in table.rows)
        rest = 1 - trace_shares.attributed(inside, table.unattributed_ms)
        assert table.clean_ms is not None
        ratio = layers / table.clean_ms + rest
        return "" if abs(ratio - 1) <= 0.05 else f"{ratio:.3f} of a clean iteration"

    tried(check)


@pytest.mark.long
def test_a_wrapper_costs_less_than_a_third_of_hooks() -> None:
    def check() -> str:
        ours, theirs = (spinning.price_ns(each) for each in (spinning.wrappers, spinning.hooks))
        return "" if ours < theirs / 3 else f"{ours:.0f} ns against {theirs:.0f} ns"

    tried(check)
