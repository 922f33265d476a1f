"""`farm-worker`: serve this machine's devices, or use one of them once, without a farm.

Documents go to stdout, talk goes to stderr. The verbs import what they need themselves, so that
`farm-worker --help` is quick.
"""

import sys
from importlib.metadata import version

import click

from farm.errors import BUG, INTERRUPTED, FarmError, lacking
from farm.stopping import stoppable
from workers import talk
from workers.cli import listing, measuring, serving

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=talk.Verbs, context_settings=_HELP)
@click.version_option(version("profiling-farm"), "-V", "--version")
def cli() -> None:
    """Measure on this machine: for a farm, or once by hand."""


for each in (
    *(serving.start, measuring.run, measuring.measure, measuring.roofs),
    *(serving.card, listing.devices),
):
    cli.add_command(each)


def main(words: list[str] | None = None) -> None:
    """Run a verb; every error we know is one message and its own exit code.

    words: in place of those of the process.
    """
    as_json = "--json" in (sys.argv[1:] if words is None else words)
    with stoppable():
        sys.exit(_ended(words, as_json))


def _ended(words: list[str] | None, as_json: bool) -> int:
    """Run a verb and return its exit code; whatever went wrong has been told."""
    try:
        # Click hands the code of its Exit back instead of raising it; a verb returns nothing.
        return cli.main(words, prog_name="farm-worker", standalone_mode=False) or 0
    except click.ClickException as error:
        talk.complain(talk.refused(error), as_json, usage=talk.usage(error))
        return 2
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except FarmError as error:
        talk.complain(error, as_json)
        return error.exit_code
    # Of the machine, or our bug; the traceback is the report, in the agent's log or on stderr.
    except Exception as error:
        return _other(error, as_json)


def _other(error: Exception, as_json: bool) -> int:
    lack = lacking(error)
    if lack is not None:
        talk.complain(lack, as_json)
        return lack.exit_code
    import logging

    logging.basicConfig()
    logging.getLogger(__name__).exception("a bug in farm-worker")
    talk.complain(FarmError(f"this is a bug in farm-worker: {type(error).__name__}"), as_json)
    return BUG
