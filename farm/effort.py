"""How long we try: the three levels of effort, and the words for durations and repeats."""

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from farm.schema import Effort

Level = Literal["quick", "standard", "thorough"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
# `measurement.md` §2: the half-width of the median in parts per million, the budget of one pass.
EFFORTS: Final[Mapping[str, Effort]] = {
    "quick": Effort(
        level="quick", repeats=2, half_width_ppm=20_000, budget_ms=2_000, layer_budget_ms=1_000
    ),
    "standard": Effort(level="standard", repeats=3, half_width_ppm=5_000, budget_ms=10_000),
    "thorough": Effort(
        level="thorough", repeats=5, half_width_ppm=5_000, budget_ms=10_000, tails=True
    ),
}
DAY_S: Final = 86_400

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": DAY_S}


def duration_s(word: str) -> int | None:
    """Return the seconds of `90s`, `10m`, `6h` or `7d`, or None if the word is no duration."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smhd])", word)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def repeat_words(number: int, wanted: int) -> str:
    """Return which repeat of how many this is, from 1; beyond those asked it replaces another.

    0 is the child that carries instruments, after the last repeat.
    """
    if number == 0:
        return "instruments"
    if number > wanted:
        return f"repeat {number}, in place of a disturbed one"
    return f"repeat {number} of {wanted}"
