"""`farm`: what a person types. Parse, call, render; the work is done in the rooms below.

Nothing heavy is imported until a verb runs, so that `farm --help` answers at once. Every error we
know of becomes one message and the exit code of its kind; anything else is our bug, and the report
of it lies in a file that the message names.
"""

import os
import sys
from pathlib import Path
from typing import Any

import click

from farm import __version__
from farm.cli import results, runs
from farm.cli.talk import Talk
from farm.errors import BUG, INTERRUPTED, FarmError, Refused, did_you_mean

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Verbs(click.Group):
    """A group that lists its verbs in the order they were added and knows the nearest one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

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


@click.group(cls=_Verbs, context_settings=_HELP, no_args_is_help=False, invoke_without_command=True)
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


for _verb in (runs.run, runs.plan, runs.status, runs.resume, results.report, results.profiles):
    cli.add_command(_verb)


def main(words: list[str] | None = None) -> None:
    """Run a verb and end with its exit code; words: in place of those of the process."""
    talk = Talk.from_words(sys.argv[1:] if words is None else words)
    try:
        # Click hands the code of its Exit back instead of raising it; a verb returns nothing.
        sys.exit(cli.main(words, standalone_mode=False) or 0)
    except click.ClickException as error:
        sys.exit(talk.console().error(Refused(_lower(error.format_message())), usage=_usage(error)))
    except FarmError as error:
        sys.exit(talk.console().error(error))
    except (click.Abort, KeyboardInterrupt):
        talk.console().say("interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    # Our bug, whatever it is: a person gets one sentence, and we get the whole story.
    except Exception as error:
        sys.exit(_own_bug(error, talk))


def _own_bug(error: Exception, talk: Talk) -> int:
    import tempfile
    import traceback

    story = "".join(traceback.format_exception(error))
    with tempfile.NamedTemporaryFile(
        "w", prefix="farm-bug-", suffix=".txt", delete=False
    ) as report:
        report.write(f"farm {__version__}, python {sys.version}\n{sys.argv}\n\n{story}")
    if talk.verbose:
        sys.stderr.write(story)
    name = Path(report.name)
    talk.console().error(
        FarmError(
            f"this is a bug in farm: {type(error).__name__}: {str(error)[:200]}",
            hint=f"the report is {name}",
        )
    )
    return BUG


def _usage(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return error.ctx.get_usage().removeprefix("Usage: ")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")
