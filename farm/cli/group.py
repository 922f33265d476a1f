"""How words become verbs: the order of the list, the nearest known word, and a reader that left."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from farm.errors import Refused, Stopped, did_you_mean


class Verbs(click.Group):
    """A group that lists its verbs in the order they were added and knows the nearest one.

    Without a verb it prints the list. A reader that closes the pipe ends it with 0.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:  # click has become stricter about this from version to version
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise Refused(
                f"no command {args[0]!r}",
                why=f"known: {', '.join(self.commands)}",
                hint=did_you_mean(args[0], list(self.commands)),
            )
        return super().resolve_command(ctx, args)

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with _while_read():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_read():
            return super().invoke(ctx)


def refused(error: click.ClickException) -> Refused:
    """Return a mistake that click found in our words."""
    if isinstance(error, click.NoSuchOption):
        known = list(error.possibilities or [])
        return Refused(
            f"no option {error.option_name!r}", hint=did_you_mean(error.option_name, known)
        )
    message = " ".join(error.format_message().split())
    return Refused(message[:1].lower() + message[1:].rstrip("."))


def usage(error: click.ClickException) -> str:
    """Return one line of usage for a mistake in the words of a verb, "" for any other."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return " ".join(error.ctx.get_usage().removeprefix("Usage: ").split())


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
