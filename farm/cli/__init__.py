"""`farm`: what a person types. Parse, call, render; the work is done in the rooms below.

Nothing heavy is imported until a verb runs, so that `farm --help` answers at once. Every error we
know of becomes one message and the exit code of its kind; anything else is our bug, and the report
of it lies in a file that the message names.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from farm import __version__
from farm.cli import (
    asking,
    cards,
    depot,
    machine,
    nodes,
    profile,
    queueing,
    results,
    rostering,
    runs,
    shelf,
    upkeep,
    verifying,
    views,
    watch,
)
from farm.cli.group import Verbs, refused, usage
from farm.cli.talk import Talk, check_words, stand_aside
from farm.errors import BUG, FarmError, Stopped, lacking
from farm.stopping import stoppable

_READING = (
    *("status", "report", "profiles", "watch", "logs", "nodes", "store", "query", "export"),
    *("verify", "aggregate", "cards"),
)
_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Verbs, context_settings=_HELP, invoke_without_command=True)
@click.version_option(__version__, "-V", "--version", message="farm %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but results, warnings and errors.")
@click.option("-v", "--verbose", is_flag=True, help="Show log lines, and tracebacks of our bugs.")
@click.option("--config", metavar="FILE", help="Read settings from this file alone.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
@click.pass_context
def cli(ctx: click.Context, quiet: bool, verbose: bool, config: str | None, color: Any) -> None:
    """Find out what each model costs on each device, and how far to trust the answer."""
    ctx.obj = Talk(quiet=quiet, verbose=verbose, config=config, color=color)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


cli.add(
    "Run",
    *(runs.run, views.plan, queueing.submit, views.status, watch.watch, watch.logs),
    *(queueing.cancel, runs.retry, runs.resume),
)
cli.add(
    "Results",
    *(results.report, shelf.profiles, verifying.verify, asking.query, asking.export),
    *(rostering.aggregate, results.tag, cards.cards, depot.store),
)
cli.add("One measurement", profile.profile)
cli.add(
    "Farm",
    *(machine.up, machine.down, machine.scheduler, nodes.nodes),
    *(upkeep.doctor, upkeep.config, upkeep.completion),
)


def main(words: list[str] | None = None) -> None:
    """Run a verb and end with its exit code; words: in place of those of the process."""
    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    # A key that is pressed for a completion must not disturb a measurement either.
    if words is None and (verb in _READING or "_FARM_COMPLETE" in os.environ):
        stand_aside()
    talk = Talk.from_words(sys.argv[1:] if words is None else words)
    with stoppable():
        sys.exit(_ended(words, talk))


def _ended(words: list[str] | None, talk: Talk) -> int:
    """Run a verb and return its exit code; whatever went wrong has been told."""
    console = talk.console
    try:
        check_words(sys.argv[1:] if words is None else words, os.environ)
        # Click hands the code of its Exit back instead of raising it; a verb returns nothing.
        return cli.main(words, prog_name="farm", standalone_mode=False) or 0
    except click.ClickException as error:
        return console().error(refused(error), usage=usage(error))
    except Stopped as error:
        return _stopped(error, talk)
    except FarmError as error:
        return console().error(error)
    except (click.Abort, KeyboardInterrupt):
        return _stopped(Stopped("interrupted"), talk)
    # Of the machine, or our bug: a person gets one sentence, and of a bug we get the whole story.
    except Exception as error:
        lack = lacking(error)
        return console().error(lack) if lack is not None else _own_bug(error, talk)


def _stopped(error: Stopped, talk: Talk) -> int:
    if talk.as_json:
        return talk.console().error(error)
    talk.console().say("; ".join(filter(None, (error.what, error.hint))))
    return error.exit_code


def _own_bug(error: Exception, talk: Talk) -> int:
    import traceback

    story = "".join(traceback.format_exception(error))
    try:
        hint = f"the report is {_report(story)}"
    except OSError:
        talk = replace(talk, verbose=True)
        hint = "the report stands above, since no file of it could be written"
    if talk.verbose:
        sys.stderr.write(story)
    what = f"this is a bug in farm: {type(error).__name__}: {str(error)[:200]}"
    talk.console().error(FarmError(what, hint=hint))
    return BUG


def _report(story: str) -> Path:
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="farm-bug-", suffix=".txt", delete=False) as report:
        told = f"farm {__version__}, python {sys.version}\n{sys.argv}\n\n{story}"
        report.write(told.encode(errors="backslashreplace"))
    return Path(report.name)
