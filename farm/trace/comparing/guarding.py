"""What has to be the same for two analyses to be compared, and what else differs between them."""

from typing import Final

from farm.schema import INVALIDATING
from farm.trace.analysis.bounds import REFUSALS
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.record import Differs

# In the order in which they are told. One of them may be what a person changed.
SETTINGS: Final = (
    *("model_digest", "batch", "imgsz", "precision", "device", "driver", "framework"),
)
NAMES: Final = {"model_digest": "model"}  # as a person calls a setting
_PLAIN: Final = "plain"


def apart(before: Analysis, after: Analysis) -> list[str]:
    """Return why the two are incomparable, each as one phrase; [] if they are not.

    What one side does not tell is no difference. Source: `traces.md` §9.
    """
    found = [
        f"different {what}: {one} and {other}"
        for what, one, other in (
            ("modes", before.mode, after.mode),
            ("items", before.config.get("item"), after.config.get("item")),
        )
        if one != other and None not in (one, other)
    ]
    for side, each in (("before", before), ("after", after)):
        if each.bound in REFUSALS:
            found.append(f"{side} was refused a bound: {each.bound}, {each.bound_why}")
        if spoiled := [flag for flag in each.quality.flags if flag in INVALIDATING]:
            found.append(f"{side} is invalid: {', '.join(spoiled)}")
    if is_plain(before) != is_plain(after):
        plain = "before" if is_plain(before) else "after"
        other = "after" if is_plain(before) else "before"
        found.append(f"{plain} is a plain step, and {other} one with the profiler beside it")
    return found


def is_plain(side: Analysis) -> bool:
    """Return whether its step was taken without a profiler; that of a trace alone was not."""
    return side.config.get("step") == _PLAIN


def differing(before: Analysis, after: Analysis) -> list[Differs]:
    """Return the settings that both sides tell, and that are not the same."""
    return [
        Differs(key=each, before=before.config[each], after=after.config[each])
        for each in SETTINGS
        if _tells(before, each)
        and _tells(after, each)
        and before.config[each] != after.config[each]
    ]


def unknown(before: Analysis, after: Analysis) -> list[str]:
    """Return the settings that only one side tells."""
    return [each for each in SETTINGS if _tells(before, each) != _tells(after, each)]


def _tells(side: Analysis, setting: str) -> bool:
    return side.config.get(setting) is not None
