"""The flags that several verbs share, and what their words mean."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farm.cli import candidates
from farm.cli.talk import Talk, current_folder
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.sweep import Plan

F = TypeVar("F", bound=Callable[..., Any])

sets = click.option(
    *("-S", "--set", "sets"),
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=candidates.setting,
    help="Override part of a sweep.",
)
tag = click.option("-t", "--tag", "marks", multiple=True, metavar="KEY=VALUE", help="Mark the run.")
effort = click.option(
    "--effort",
    type=click.Choice(["quick", "standard", "thorough"]),
    help="How long to try.  [as the sweep says, or standard]",
)
devices = click.option(
    "--devices",
    default="all",
    show_default=True,
    metavar="SEL",
    help="Which of this machine's devices: all, cpu, cpu:0, …",
)
given = click.option(
    *("--input", "given"),
    metavar="NPZ",
    shell_complete=candidates.arrays,
    help="Its arrays are the inputs.  [drawn with a fixed seed]",
)
store = click.option("--store", metavar="DIR", help="Where profiles are kept.  [.farm/store]")
timeout = click.option("--timeout", metavar="D", help="Give up waiting after 90s, 10m, …")
force = click.option("--force", is_flag=True, help="Measure again what has a profile.")
output = click.option("-o", "--output", metavar="FILE", help="The page.  [.farm/reports/RUN.html]")
no_report = click.option("--no-report", is_flag=True, help="Write no page.")
watch = click.option("--watch", is_flag=True, help="Stay and show how it goes.")
yes = click.option("-y", "--yes", is_flag=True, help="Ask no question.")
sweeps = click.argument(
    "sweeps", nargs=-1, required=True, metavar="SWEEP…", shell_complete=candidates.yaml_file
)


def limit(of: str, default: int = 20) -> Callable[[F], F]:
    """Return the flag that bounds how many rows are shown."""
    return click.option(
        "--limit",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        help=f"Show so many {of}.",
    )


def planned(
    sweeps: Sequence[str], sets: Sequence[str], *, talk: Talk, effort: str | None
) -> "Plan":
    """Return the plan; a flag beats what the sweep says, and that beats the settings."""
    from farm.sweep import expand, load

    said = [*sets, f"measure.effort={effort}"] if effort else list(sets)
    return expand(
        load(list(sweeps), said, root=current_folder()), effort=talk.settings().effort.value
    )


def tags(words: Sequence[str]) -> dict[str, str]:
    """Return the tags of `KEY=VALUE`, of equal keys the last; raises Refused for other words."""
    found = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise Refused(f"tag {word!r} is not KEY=VALUE", hint="for example -t driver=new")
        found[key] = value
    return found


def duration(word: str | None) -> float | None:
    """Return the seconds of a time-out, None for none; raises Refused for other words."""
    from farm.effort import duration_s

    if word is None:
        return None
    seconds = duration_s(word)
    if seconds is None:
        raise Refused(f"--timeout {word!r} is no duration", why="write 90s, 10m or 7d")
    return float(seconds)
