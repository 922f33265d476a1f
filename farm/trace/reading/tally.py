"""What had to be mended in a file, and what was left out of it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

REPAIRED: Final = (
    *("bom", "non_finite", "escape", "control", "utf8", "structure", "number_text"),
    *("null_name", "gzip", "trailing_data", "unmatched", "clipped_dur"),
)
DROPPED: Final = (
    *("unparsable", "truncated", "no_phase", "no_ts"),
    *("negative_dur", "absurd_dur", "zero_ts"),
)


@dataclass(frozen=True)
class Tally:
    """Counters by the names above; one event may count under several of `repaired`."""

    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def repair(self, name: str, times: int = 1) -> None:
        """Count what was mended; nothing is noted for 0 times."""
        assert name in REPAIRED, name
        if times:
            self.repaired[name] += int(times)

    def drop(self, name: str, times: int = 1) -> None:
        """Count what was left out; nothing is noted for 0 times."""
        assert name in DROPPED, name
        if times:
            self.dropped[name] += int(times)
