"""One line of the page: two sides measured in turn, and how they compare."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median, quantiles

ROUNDS = 7


@dataclass(frozen=True)
class Row:
    """ours and bare: medians in the unit; ratio: median of the rounds' ratios, with quartiles."""

    what: str
    beside: str
    unit: str
    ours: float
    bare: float
    ratio: float
    low: float
    high: float


def compare(
    what: str,
    beside: str,
    unit: str,
    ours: Callable[[], float],
    bare: Callable[[], float],
    *,
    rounds: int = ROUNDS,
) -> Row:
    """Measure both sides in turn, after one round that does not count."""
    ours(), bare()
    pairs = [(ours(), bare()) for _ in range(rounds)]
    ratios = [mine / other for mine, other in pairs]
    low, _, high = quantiles(ratios, n=4)
    return Row(
        what,
        beside,
        unit,
        median(mine for mine, _ in pairs),
        median(other for _, other in pairs),
        median(ratios),
        low,
        high,
    )


def page(rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of the page as the rows come in."""
    yield f"{'what':<44}{'beside':<34}{'ours':>10}{'bare':>10} {'unit':<7}{'ratio':>7}  quartiles"
    for each in rows:
        yield (
            f"{each.what:<44}{each.beside:<34}{each.ours:>10.3g}{each.bare:>10.3g} "
            f"{each.unit:<7}{each.ratio:>7.2f}  {each.low:.2f} to {each.high:.2f}"
        )
