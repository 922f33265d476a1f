"""What a capture knows better than its trace does, as far as the analysis needs it."""

from collections.abc import Mapping
from typing import NamedTuple


class Known(NamedTuple):
    """Milliseconds of a plain step, which no profiler slowed down.

    step_ms: median of so many unsynchronised steps, None without any; wall_ms: of all of them;
    step_cv: their sample deviation over their mean, None for a single one. dataload_ms,
    dataload_frac: what the clean steps waited for data in the mean, None where nothing loads any.
    stages: of an inference, timed apart. on_gpu: whether a GPU computed. allocator_retries: of the
    measured passes. reserved: the reserved share of the device's memory, None where nobody knows.
    """

    step_ms: float | None
    steps: int = 0
    wall_ms: float = 0.0
    step_cv: float | None = None
    dataload_ms: float | None = None
    dataload_frac: float | None = None
    stages: Mapping[str, float] = {}
    on_gpu: bool = False
    allocator_retries: int = 0
    reserved: float | None = None

    @property
    def mean_ms(self) -> float | None:
        """The mean plain step, which is what means of its parts add up to."""
        return self.wall_ms / self.steps if self.steps else None
