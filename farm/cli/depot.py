"""The verbs that keep the catalogue of a store: compact, rebuild, check."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from farm.cli import options
from farm.cli.group import Verbs, verb
from farm.cli.talk import Talk

if TYPE_CHECKING:
    from farm import answers
    from farm.catalog.check import Checked
    from farm.catalog.compact import Compacted

_WRITER: Final = "by-hand"


@click.group(cls=Verbs)
def store() -> None:
    """Keep the catalogue of a store: what reports and queries read."""


@verb(examples=("farm store compact", "farm store compact --every-day"))
@click.option("--every-day", is_flag=True, help="Look at every day, not only the last two.")
@options.store
@click.pass_obj
def compact(talk: Talk, every_day: bool, store: str | None) -> None:
    """Take what has arrived into the catalogue.

    The scheduler does so at the end of every run; queries see what it has not taken as well.
    """
    from farm.catalog.compact import compact as take

    where = talk.store(talk.settings(store=store).store.value)
    where.probe()
    done = take(where, cache=_cache(), now=_now, writer=_WRITER, every_day=every_day)
    _tell(talk, done)


@verb(examples=("farm store rebuild", "farm store rebuild --since 2026-11-01"))
@click.option("--since", metavar="DAY", default="", help="Only what was sent on DAY or later.")
@options.store
@click.pass_obj
def rebuild(talk: Talk, since: str, store: str | None) -> None:
    """Make the catalogue anew from the profiles themselves.

    After damage, or when a newer farm has more columns. The raw profiles are only read.
    """
    from farm.catalog.compact import rebuild as remake

    where = talk.store(talk.settings(store=store).store.value)
    where.probe()
    _tell(talk, remake(where, since=since, cache=_cache(), now=_now, writer=_WRITER))


@verb(examples=("farm store check", "farm store check --deep"))
@click.option("--deep", is_flag=True, help="Read and verify every object.")
@options.store
@click.pass_obj
def check(talk: Talk, deep: bool, store: str | None) -> None:
    """Look for damage in the catalogue; with --deep in everything that it is made from.

    Without --deep: whether each part is there and has its size. Ends with 1 if there is damage;
    foreign files are named and are none. Nothing is changed and nothing is deleted.
    """
    from farm import answers
    from farm.catalog.check import check as look
    from farm.store import check_there

    where = talk.store(talk.settings(store=store).store.value)
    check_there(where)  # nothing is not whole
    found = look(where, now=_now, deep=deep)
    console = talk.console()
    if talk.as_json:
        console.document(
            answers.Checked(
                number=found.number,
                parts=found.parts,
                profiles=found.profiles,
                problems=[answers.Problem(key=key, what=what) for key, what in found.problems],
                orphans=found.orphans,
                foreign=found.foreign,
                **_audited(found),
            )
        )
    else:
        console.show(*_check_lines(found))
        # A rebuild makes tables from documents; it brings back nothing else.
        if any(key.startswith("tables/") for key, _ in found.problems):
            console.next("farm store rebuild")
        elif found.problems:
            console.say("bring these back from a copy; `farm resume RUN` measures what is missing")
    if found.problems:
        raise click.exceptions.Exit(1)


store.add("Commands", compact, check, rebuild)


def _tell(talk: Talk, done: "Compacted") -> None:
    from farm import answers
    from farm.report.words import count

    console = talk.console()
    if talk.as_json:
        console.document(
            answers.Compacted(
                number=done.number,
                added=done.added,
                already=done.already,
                parts=done.parts,
                unreadable=done.unreadable,
                lost=list(done.lost),
            )
        )
    took = f"{count(done.added, 'profile')} in {count(done.parts, 'new part')}"
    console.say(f"catalogue {done.number}: {took if done.parts else 'nothing new'}")
    if done.lost:
        gone = ", ".join(each[:12] for each in done.lost[:5])
        more = "" if len(done.lost) <= 5 else ", …"
        console.warn(
            f"{count(len(done.lost), 'profile')} that the catalogue had cannot be read from the "
            f"inbox any more: {gone}{more}; bring them back from a copy, or measure them again"
        )
    if done.unreadable:
        bad = count(done.unreadable, "object")
        console.warn(f"{bad} of the inbox cannot be read; `farm store check` names them")


def _check_lines(found: "Checked") -> list[str]:
    from farm.report.words import count

    held = f"{count(found.profiles, 'profile')} in {count(found.parts, 'part')}"
    lines = [f"{key}: {what}" for key, what in found.problems]
    lines += [f"{key}: no farm gave this name" for key in found.foreign]
    if found.orphans:
        lines.append(f"{count(len(found.orphans), 'part')} of earlier catalogues besides, harmless")
    if found.audited is not None:
        read = found.audited
        lines.append(
            f"read: {count(read.objects, 'profile')} ({read.waiting} in no part yet), "
            f"{count(read.blobs, 'artefact')} ({read.expired} expired)"
        )
    damage = count(len(found.problems), "problem") if found.problems else "no damage found"
    return [*lines, f"catalogue {found.number}: {held}; {damage}"]


def _audited(found: "Checked") -> "dict[str, answers.Audited]":
    from farm import answers

    read = found.audited
    if read is None:
        return {}
    made = answers.Audited(
        objects=read.objects, waiting=read.waiting, artifacts=read.blobs, expired=read.expired
    )
    return {"audited": made}


def _cache() -> Path:
    from farm.catalog.cache import default_folder

    return default_folder(os.environ)


def _now() -> datetime:
    return datetime.now(UTC)
