"""How `farm-worker` speaks: its list of verbs, its documents, its errors.

Documents go to stdout, talk goes to stderr. A terminal library is not there on every node.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from farm.errors import FarmError, Refused, did_you_mean


class Verbs(click.Group):
    """A group that prints its verbs without one, and ends with 0 when nobody reads any more."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with _while_read():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_read():
            return super().invoke(ctx)


def document(data: bytes) -> None:
    """Write one JSON document as one line on stdout."""
    click.echo(data)  # flushes, so that a reader that is gone is noticed here


def complain(error: FarmError, as_json: bool, *, usage: str = "") -> None:
    """Say an error on stderr, as a line of JSON where JSON was asked for."""
    if as_json:
        document = {
            "schema": "farm.error/v1",
            "code": error.exit_code,
            "what": error.what,
            "why": error.why,
            "hint": error.hint,
        }
        click.echo(json.dumps(document), err=True)
        return
    click.echo(f"error: {error.what}", err=True)
    for line in [*error.why.splitlines(), *([f"usage: {usage}"] if usage else [])]:
        click.echo(f"  {line}", err=True)
    if error.hint:
        click.echo(f"\nhint: {error.hint}", err=True)


def refused(error: click.ClickException) -> Refused:
    """Return a mistake that click found in our words."""
    if isinstance(error, click.NoSuchOption):
        name, known = error.option_name, list(error.possibilities or [])
        return Refused(f"no option {name!r}", hint=did_you_mean(name, known))
    message = " ".join(error.format_message().split())
    return Refused(message[:1].lower() + message[1:].rstrip("."))


def usage(error: click.ClickException) -> str:
    """Return one line of usage for a mistake in the words of a verb, "" for any other."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return " ".join(error.ctx.get_usage().removeprefix("Usage: ").split())


@contextmanager
def _while_read() -> Iterator[None]:
    """End quietly with 0 when the reader of stdout is gone; click would end with 1."""
    try:
        yield
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # else Python complains when it flushes at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
