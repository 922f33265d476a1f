"""The verbs that look after the farm itself: its settings, and the help of a shell."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import get_completion_class

from farm.cli import completing
from farm.cli.group import verb
from farm.cli.talk import Talk, current_folder
from farm.errors import Refused, did_you_mean

if TYPE_CHECKING:
    from farm.settings import File, Settings

# Where each shell looks, and what must be said once so that it does.
_PLACES: Final = {
    "bash": ("~/.local/share/bash-completion/completions/farm", ""),
    "zsh": ("~/.zfunc/_farm", "in ~/.zshrc, before compinit: fpath+=~/.zfunc"),
    "fish": ("~/.config/fish/completions/farm.fish", ""),
}


@verb(examples=("farm doctor", "FARM_BROKER=redis://broker:6379/0 farm doctor --json"))
@click.option("--store", metavar="DIR", help="Where profiles are kept.  [.farm/store]")
@click.pass_obj
def doctor(talk: Talk, store: str | None) -> None:
    """Look for what keeps the farm from working, and name the cure.

    Settings, packages, this machine, the broker, the store. Nothing is changed but a probe in the
    store. It ends with 0 if all is well or only doubtful, 4 if what failed is away, else 1 or 2.
    """
    from farm import doctor as room
    from farm.errors import FarmError

    found: Settings | FarmError
    try:
        found = talk.settings(store=store)
    except FarmError as error:  # a bad setting is a finding like any other
        found = error
    told = room.examine(found, room.Surroundings.real(environ=os.environ))
    console = talk.console()
    if talk.as_json:
        console.document(room.document(told))
    else:
        console.show(*room.blocks(told))
        console.data(room.cures(told))
    if code := room.exit_code(told):
        raise click.exceptions.Exit(code)


@verb(
    examples=(
        "farm config",
        "farm config store",
        "farm config --path",
        "farm config schema profile",
    )
)
@click.argument("key", required=False, shell_complete=completing.key)
@click.argument("thing", required=False, shell_complete=completing.thing)
@click.option("--path", "paths", is_flag=True, help="List the files of settings.")
@click.pass_context
def config(ctx: click.Context, key: str | None, thing: str | None, paths: bool) -> None:
    """Show the effective settings and where each comes from, or the one of KEY.

    `farm config schema THING` prints the JSON Schema of a document; without a THING, the names.
    """
    talk: Talk = ctx.obj
    if key == "schema":
        _schema(talk, thing)
    elif thing is not None:
        raise click.UsageError(f"unexpected extra argument ({thing})", ctx)
    elif paths and key is not None:
        raise click.UsageError("--path takes no KEY", ctx)
    elif talk.as_json:
        talk.console().document(_document(talk, key))
    elif paths:
        _show_files(talk)
    elif key is not None:
        talk.console().data(f"{_shown(talk.settings(), key)[0]}\n")
    else:
        _show_settings(talk)


@verb(examples=("farm completion bash > ~/.local/share/bash-completion/completions/farm",))
@click.argument("shell", type=click.Choice([*_PLACES]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes words of `farm` in SHELL: bash, zsh or fish."""
    from farm import answers

    talk: Talk = ctx.obj
    console = talk.console()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "farm", "_FARM_COMPLETE").source()
    if talk.as_json:
        console.document(answers.Completion(shell=shell, script=script))
        return
    console.data(script)
    # Whoever sends it somewhere knows already; a start file of a shell wants no talk at all.
    if sys.stdout is not None and sys.stdout.isatty():
        place, further = _PLACES[shell]
        console.next(f"farm completion {shell} > {place}")
        if further:
            console.say(further)


def _schema(talk: Talk, thing: str | None) -> None:
    from farm import answers, published

    console = talk.console()
    if thing is None:
        names = list(published.things())
        console.document(answers.Schemas(things=names)) if talk.as_json else console.show(*names)
        return
    found = published.json_schema(thing)
    console.document(found) if talk.as_json else console.data(f"{json.dumps(found, indent=2)}\n")


def _document(talk: Talk, key: str | None) -> Any:
    from farm import answers
    from farm.settings import DEFAULTS, READ

    chosen = talk.settings()
    told = []
    for each in DEFAULTS if key is None else [key]:
        value, origin = _shown(chosen, each)
        told.append(answers.Setting(key=each, value=value, origin=origin))
    files = [str(each.path) for each in _files(talk) if each.state == READ]
    return answers.Config(settings=told, files=files)


def _show_settings(talk: Talk) -> None:
    from farm.report.table import Column, Datum, Table
    from farm.settings import DEFAULTS

    chosen = talk.settings()
    rows = []
    for key in DEFAULTS:
        value, origin = _shown(chosen, key)
        rows.append((Datum(key), Datum(value or "–"), Datum(origin)))
    notes = () if chosen.broker.value else ("broker –: the embedded one",)
    columns = (Column("setting"), Column("value"), Column("origin"))
    talk.console().show(Table("", columns, tuple(rows), notes))


def _show_files(talk: Talk) -> None:
    from farm.report.table import Column, Datum, Table

    rows = tuple((Datum(str(each.path)), Datum(each.state)) for each in _files(talk))
    talk.console().show(Table("", (Column("file"), Column("state")), rows))


def _shown(chosen: "Settings", key: str) -> tuple[str, str]:
    """Return a setting as it may be printed, and its origin; raise Refused for an unknown key."""
    from farm.settings import DEFAULTS, Setting, shown

    if key not in DEFAULTS:
        known = [*DEFAULTS, "schema"]
        why = f"known: {', '.join(DEFAULTS)}"
        raise Refused(f"no setting {key!r}", why=why, hint=did_you_mean(key, known))
    found: Setting = getattr(chosen, key)
    return shown(found.value), found.origin


def _files(talk: Talk) -> "tuple[File, ...]":
    from farm.settings import files

    return files(talk.config, env=os.environ, cwd=current_folder(), home=Path.home())
