"""How words become verbs: the list in its sections, what every verb takes, the nearest word."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import click

from farm.errors import Refused, Stopped, did_you_mean

_SETTING: Final = re.compile(r"([A-Za-z][\w-]*)=(.+)", re.DOTALL)
_SPARE: Final = re.compile(r"Got unexpected extra arguments? \((.+)\)", re.DOTALL)
_OFF: Final = frozenset({"false", "no", "off", "0"})


class Verb(click.Command):
    """A verb. It takes --json, -q and -v wherever they stand, and shows examples in its help."""

    def __init__(self, *words: Any, examples: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*words, **more)
        self.examples = examples
        self.params += [
            _shared("--json", "as_json", help="Print JSON: one object, or one a line."),
            _shared("-q", "--quiet", "quiet", hidden=True),
            _shared("-v", "--verbose", "verbose", hidden=True),
        ]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for each in self.examples:
                    formatter.write_text(each)


def verb(name: str | None = None, *, examples: tuple[str, ...] = ()) -> Callable[[Any], Verb]:
    """Return what makes a verb of a function; examples: command lines to paste."""

    def made(function: Any) -> Verb:
        named = name or function.__name__.rstrip("_")
        found: Verb = click.command(named, cls=Verb, examples=examples)(function)
        return found

    return made


class Verbs(click.Group):
    """A group that lists its verbs in sections, in the order they were added.

    Without a verb it prints the list. A reader that closes the pipe ends it with 0.
    """

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._sections: dict[str, str] = {}

    def add(self, section: str, *verbs: click.Command) -> None:
        """Add verbs under the heading of a section."""
        for each in verbs:
            self.add_command(each)
            self._sections[each.name or ""] = section

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {self._sections.get(name, "Commands"): None for name in self.commands}
        for title in titles:
            rows = [
                (name, each.get_short_help_str(limit=200))
                for name, each in self.commands.items()
                if self._sections.get(name, "Commands") == title
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Click has become stricter about this from version to version. A completion begins with
        # no word at all, and wants no list for it.
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # A completion asks with half a word, and wants no error for it.
        if not ctx.resilient_parsing and args[0] not in self.commands and args[0][:1] != "-":
            near = did_you_mean(args[0], list(self.commands))
            raise Refused(
                f"no command {args[0]!r}",
                why=f"known: {', '.join(self.commands)}",
                hint=f"`{ctx.command_path} -h` explains them" if args[0] == "help" else near,
            )
        return super().resolve_command(ctx, args)

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with _while_read():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_read():
            return super().invoke(ctx)


def options(command: click.Command) -> dict[str, bool]:
    """Return the options of a verb by their names without dashes, and whether each takes a value.

    What every verb takes is none of them.
    """
    found: dict[str, bool] = {}
    for each in command.params:
        if isinstance(each, click.Option) and each.expose_value:
            names = (*each.opts, *each.secondary_opts)
            found |= {name[2:]: not each.is_flag for name in names if name.startswith("--")}
    return found


def as_option(word: str, known: Mapping[str, bool]) -> str | None:
    """Return how `weights=x.pt` is written as an option, "" where no option is near; S4.2.

    None where the word has no such form. known: as `options`.
    """
    found = _SETTING.fullmatch(word)
    if found is None:
        return None
    given, value = found[1].lower().replace("_", "-"), found[2]
    if given not in known:
        near = did_you_mean(given, list(known)).partition("`")[2].partition("`")[0]
        return "" if not near else f"did you mean `{_spelt(near, value, known)}`?"
    return f"write `{_spelt(given, value, known)}`"


def _spelt(name: str, value: str, known: Mapping[str, bool]) -> str:
    if known[name]:
        return f"--{name} {shlex.quote(value)}"
    off = f"no-{name}"
    return f"--{off}" if value.lower() in _OFF and off in known else f"--{name}"


def refused(error: click.ClickException) -> Refused:
    """Return a mistake that click found in our words."""
    if isinstance(error, click.NoSuchOption):
        known = list(error.possibilities or [])
        return Refused(
            f"no option {error.option_name!r}", hint=did_you_mean(error.option_name, known)
        )
    message = " ".join(error.format_message().split())
    hint = _nearest(error) or _dashes(error, message)
    return Refused(message[:1].lower() + message[1:].rstrip("."), hint=hint)


def _dashes(error: click.ClickException, message: str) -> str:
    """Return how a word too many is written as an option, if it looks like one."""
    spare = _SPARE.match(message)
    if spare is None or not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    known = options(error.ctx.command)
    hints = (as_option(each, known) for each in spare[1].split())
    return next((each for each in hints if each), "")


def _nearest(error: click.ClickException) -> str:
    """Return the nearest of the words that a flag takes, if it got another."""
    param = error.param if isinstance(error, click.BadParameter) else None
    if param is None or not isinstance(param.type, click.Choice):
        return ""
    given = error.message.partition(" is not one of ")[0].strip("'\"")
    return did_you_mean(given, [str(each) for each in param.type.choices])


def usage(error: click.ClickException) -> str:
    """Return one line of usage for a mistake in the words of a verb, "" for any other."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return " ".join(error.ctx.get_usage().removeprefix("Usage: ").split())


def _shared(*names: str, **more: Any) -> click.Option:
    """Return a flag that goes into the verb's Talk and not into its arguments."""

    def note(ctx: click.Context, option: click.Parameter, value: bool) -> None:
        if value and ctx.obj is not None:
            ctx.obj = replace(ctx.obj, **{str(option.name): True})

    return click.Option(list(names), is_flag=True, expose_value=False, callback=note, **more)


@contextmanager
def _while_read() -> Iterator[None]:
    """End quietly with 0 when the reader of stdout is gone; click would end with 1.

    Ctrl-C is one of our errors from here on; click would write a line of its own.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise Stopped("interrupted") from error
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # else Python complains when it flushes at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
