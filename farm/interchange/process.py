"""One process of a profile on its own: its samples, and the doubts that are about it."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farm import schema
from farm.errors import Bad
from farm.schema import INVALIDATING, Profile, Quality, Repeat
from farm.stats import processes, spread
from farm.stats.percentiles import FloatArray

# Doubts about several processes together, which say nothing about one.
_ABOUT_SEVERAL: Final = frozenset({"processes_disagree", "repeats_missing"})


class Process(NamedTuple):
    """samples_ms: of every measured call, in order. quality: of this process alone.

    repeat: what the profile tells of it.
    """

    samples_ms: FloatArray
    quality: Quality
    repeat: Repeat


def that_counts(profile: Profile, samples: dict[str, NDArray[np.int64]]) -> Process:
    """Return the process whose calls stand for a profile: the last one that is not invalid.

    samples: `latency_ns_0` of the first process and so on. A disturbed process is measured anew;
    calls of two are never mixed, because a file holds as many as were asked for (S1.26). If all
    are invalid the last one stands for them. Raises Bad if there is none.
    """
    good = [each for each in profile.repeats if INVALIDATING.isdisjoint(each.flags)]
    chosen = (good or profile.repeats)[-1:]
    name = f"latency_ns_{chosen[0].index}" if chosen else ""
    if name not in samples or not isinstance(profile.quality, Quality):
        raise Bad("no sample is left of what was measured")
    taken = np.asarray(samples[name], dtype=np.float64) / 1e6
    return Process(taken, _alone(profile, profile.quality, chosen[0], taken), chosen[0])


def _alone(profile: Profile, quality: Quality, repeat: Repeat, samples_ms: FloatArray) -> Quality:
    if len(profile.repeats) == 1:
        return quality
    of_any = {flag for each in profile.repeats for flag in each.flags}
    of_all = set(quality.flags) - of_any - _ABOUT_SEVERAL  # of the slot, whoever measured on it
    flags = sorted({*repeat.flags, *of_all})
    contended = "contended" in flags
    return Quality(
        validity=schema.validity(flags),
        stability=processes.stability(
            iqr_rel=spread.iqr_rel(samples_ms),
            drift=spread.drift(samples_ms),
            proc_cv=None,
            caused_share=None,
            bimodal="bimodal" in flags,
            n=len(samples_ms),
            repeats=1,
        ),
        quiet="false" if contended else quality.quiet,
        flags=flags,
        neighbours=quality.neighbours if contended else [],
    )
