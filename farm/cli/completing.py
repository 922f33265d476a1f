"""What a shell offers where a value of a store or a setting stands: runs, profiles, names, keys.

A completion says nothing but candidates, and soon: where a store is away, broken or slow, it has
none or the first ones.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Final, TypedDict

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

from farm.cli.talk import Talk
from farm.errors import FarmError

if TYPE_CHECKING:
    from farm.store import Store

Candidates = Callable[[click.Context, str], Iterable[str]]
Completer = Callable[[click.Context, click.Parameter, str], list[str]]

_PATIENCE_S: Final = 0.5  # for one listing of a store; a person waits for the key that was pressed
# A name may come from another writer, and what is offered is put on a command line as it stands.
_PLAIN: Final = re.compile(r"[\w@=./:+~,-]+")


class _Outline(TypedDict):
    """What is read of a manifest; the jobs of a large run are passed over."""

    run_id: str
    name: str
    submitted_at: str
    tags: dict[str, str]


def offered(candidates: Candidates) -> Completer:
    """Return a completer that keeps what fits the word so far, and is silent about every error."""

    @wraps(candidates)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            found = list(dict.fromkeys(candidates(ctx, incomplete)))
        except (FarmError, OSError, RuntimeError):  # RuntimeError: nobody's home folder
            return []
        return [each for each in found if each.startswith(incomplete) and _PLAIN.fullmatch(each)]

    return complete


@offered
def run(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer `@last`, `@last-good`, tags, names of sweeps, ids; marks once there is a beginning."""
    yield from _runs(_store(ctx), marks=bool(incomplete))


@offered
def profile(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer runs, then the labels of one; ids of profiles once there is a beginning of one."""
    from farm.runs import find_run
    from farm.store import profile_ids
    from farm.sweep import label_text

    store = _store(ctx)
    wanted, slash, _ = incomplete.partition("/")
    if slash:
        for each in find_run(store, wanted).jobs:
            yield f"{wanted}/{label_text(each.labels)}"
        return
    yield from (f"{each}/" for each in _runs(store, marks=False))
    if re.fullmatch("[0-9a-f]{2,64}", incomplete):
        for key in _keys(store, "inbox/v1/"):
            if ids := profile_ids(key):
                yield ids[1][: max(12, len(incomplete))]


@offered
def field(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the names of values: those of the profile where it is found by run and label."""
    from farm import profiles
    from farm.profiles.values import METRICS

    wanted = ctx.params.get("profile") or ""
    if "/" in wanted:  # any other name of one is found by reading them all
        yield from profiles.fields(profiles.find(_store(ctx), wanted))
    else:
        yield from (*METRICS, "job", "card", "log")


@offered
def metric(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the names of figures."""
    from farm.profiles.values import METRICS

    yield from METRICS


@offered
def tag(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the tags that there are."""
    from farm import tags

    yield from tags.read(_store(ctx)).run_ids


@offered
def key(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the keys of the settings, and `schema`."""
    from farm.settings import DEFAULTS

    yield from (*DEFAULTS, "schema")


@offered
def thing(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer the kinds of documents behind `farm config schema`."""
    from farm import published

    if ctx.params.get("key") == "schema":
        yield from published.things()


def file(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Let the shell offer its own files."""
    return [CompletionItem(incomplete, type="file")]


def folder(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Let the shell offer its own folders."""
    return [CompletionItem(incomplete, type="dir")]


def _store(ctx: click.Context) -> "Store":
    """Return the store that the words so far, the environment and the files mean."""
    talk = Talk(config=ctx.find_root().params.get("config"))
    return talk.store(talk.settings(store=ctx.params.get("store")).store.value)


def _runs(store: "Store", *, marks: bool) -> Iterator[str]:
    from farm import tags
    from farm.runs import LAST, LAST_GOOD

    found = sorted(_outlines(store), key=lambda each: each["submitted_at"], reverse=True)
    yield from (LAST, LAST_GOOD) if found else ()
    yield from tags.read(store).run_ids
    yield from (each["name"] for each in found)
    yield from (each["run_id"] for each in found)
    if marks:
        yield from (f"{key}={mark}" for each in found for key, mark in each["tags"].items())


def _outlines(store: "Store") -> Iterator[_Outline]:
    import msgspec

    for name in _keys(store, "runs/v1/"):
        if name.endswith("/manifest.json"):
            try:
                yield msgspec.json.decode(store.get(name), type=_Outline)
            except (FarmError, msgspec.DecodeError, RecursionError):
                continue  # a damaged run hides no other


def _keys(store: "Store", prefix: str) -> Iterator[str]:
    """Yield keys for as long as a person may be kept waiting."""
    until = time.monotonic() + _PATIENCE_S
    for entry in store.list(prefix):
        yield entry.key
        if time.monotonic() > until:
            return


# Bash cuts words at `=` and `:` too, hands them over in pieces, and replaces only the last piece of
# the one that is completed. So the line is sent as it is, and the first pieces are taken off again.
_BASH: Final = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} cut='' response type value
    local word=${line##*[[:space:]]} breaks=${COMP_WORDBREAKS//[^=:]/}
    if [[ -n $breaks && $word == *["$breaks"]* ]]; then
        cut=${word%%"${word##*["$breaks"]}"}
    fi
    response=$(COMP_WORDS=$line COMP_CWORD= %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    while IFS=, read -r type value; do
        if [[ $type == dir ]]; then
            compopt -o dirnames 2>/dev/null
        elif [[ $type == file ]]; then
            compopt -o default 2>/dev/null
        elif [[ $type == plain ]]; then
            COMPREPLY+=("${value#"$cut"}")
            [[ $value == *[/=:] ]] && compopt -o nospace 2>/dev/null
        fi
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null ||
    complete -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, also of values with `=` and `:` in them."""

    source_template = _BASH

    def source(self) -> str:
        """Return the script without a look at this machine's bash: it may be for another one."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        line, at = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
        words = split_arg_string(line)
        if at.isdecimal():
            return words[1 : int(at)], (words[int(at) :] or [""])[0]
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], incomplete
