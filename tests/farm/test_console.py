"""The console: data on stdout, talk on stderr, and each stream gets what it can use."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from farm.console import Console, JobLine, RunState
from farm.errors import Refused, Unreachable
from farm.report import text
from farm.report.table import Column, Datum, Table
from tests.farm.report import hostile, sample

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def console(*, terminal=False, environ=None, columns=80, **more):
    """A console with both its streams."""
    out, err = (Terminal(), Terminal()) if terminal else (io.StringIO(), io.StringIO())
    return Console(out, err, environ=environ or {}, columns=columns, **more), out, err


TABLE = Table(
    "Cells",
    (Column("model", cut=True), Column("p50", "ms", right=True), Column("quality", cut=True)),
    (
        (Datum("resnet18"), Datum("9.30", 9.3), Datum("✓ stable", tone="good")),
        (Datum("vit_tiny"), Datum("114.10", 114.1), Datum("✗ contended", tone="bad")),
    ),
    ("±: the larger side",),
)
STATE = RunState(
    run_id="r-7f3a91",
    name="int8-on-ampere",
    total=31,
    done=24,
    failed=1,
    running=3,
    queued=3,
    elapsed_s=252,
    left_s=60,
    lines=(
        JobLine("gpu-03", "a100-80gb", "vit_tiny int8 b32", "measuring", 11.42, "repeat 2 of 3"),
        JobLine("gpu-07", "h200", "resnet18 fp16 b32", "failed", None, "timed out"),
    ),
)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def test_a_pipe_gets_the_columns_plain_and_whole():
    """No colour, no line under the header, numbers flush right, units in the header."""
    made, out, err = console()

    made.show(TABLE)

    assert out.getvalue().splitlines() == [
        "Cells",
        "model     p50 ms  quality",
        "resnet18    9.30  ✓ stable",
        "vit_tiny  114.10  ✗ contended",
        "±: the larger side",
    ]
    assert "" == err.getvalue()


def test_a_pipe_cuts_nothing():
    """`| grep` finds the end of a name of 10,000 characters."""
    made, out, _ = console()
    long = "x" * 10_000

    made.show(Table("", (Column("model", cut=True),), ((Datum(long),),)))

    assert long in out.getvalue()


@pytest.mark.parametrize("columns", [75, 80, 100, 300])
def test_a_terminal_gets_at_most_its_columns_and_at_most_a_hundred(columns):
    """Names are cut with an ellipsis, and lines of talk are broken between words."""
    made, out, _ = console(terminal=True, color="never", columns=columns)

    made.show(*text.blocks(sample.report()))

    assert max(map(len, out.getvalue().splitlines())) <= min(columns, 100)


@pytest.mark.parametrize(
    ("asked", "width"), [("77", 77), ("300", 100), ("", 100), ("wide", 100), ("9" * 5000, 100)]
)
def test_a_width_that_is_no_number_of_columns_is_not_taken(asked, width):
    """Whatever COLUMNS holds, nothing fails over it."""
    made, out, _ = console(terminal=True, color="never", environ={"COLUMNS": asked}, columns=None)

    made.show(Table("", (Column("model", cut=True),), ((Datum("x" * 300),),)))

    assert width == max(map(len, out.getvalue().splitlines()))


def test_a_terminal_too_narrow_leaves_out_spare_columns_and_says_so():
    """Nobody misses a column without knowing: memory goes before the latency does."""
    made, out, _ = console(terminal=True, color="never", columns=80)

    made.show(*text.blocks(sample.report()))

    assert "p50 ms" in out.getvalue()
    assert "no room for: peak MiB" in out.getvalue()


def test_a_terminal_never_cuts_a_number():
    """A number that lost a digit is another number."""
    made, out, _ = console(terminal=True, color="never", columns=20)
    row = (Datum("a long name of a model"), Datum("1234567.89", 1234567.89), Datum("✓ stable"))

    made.show(Table("", TABLE.columns, (row,)))

    assert "1234567.89" in out.getvalue()
    assert "a long…" in out.getvalue()


def test_wide_letters_take_the_room_that_they_have():
    """Columns stay under each other for names in Chinese."""
    made, out, _ = console()
    rows = tuple((Datum(name), Datum("1.0", 1.0)) for name in ("模型", "model"))

    made.show(Table("", (Column("name", cut=True), Column("ms", right=True)), rows))

    lines = out.getvalue().splitlines()
    assert "模型   1.0" == lines[1]
    assert "model  1.0" == lines[2]


# ── colour ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("terminal", "color", "environ", "coloured"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (True, "auto", {"TERM": "dumb"}, False),
        (True, "never", {}, False),
        (False, "always", {}, True),
        (True, "always", {"NO_COLOR": "1"}, True),
    ],
)
def test_colour_is_for_who_can_use_it(terminal, color, environ, coloured):
    """A flag beats NO_COLOR, NO_COLOR beats the terminal, and an empty NO_COLOR says nothing."""
    made, out, _ = console(terminal=terminal, color=color, environ=environ)

    made.show(TABLE)

    assert coloured == ("\x1b[" in out.getvalue())


def test_each_stream_is_judged_alone():
    """`farm report > file` on a terminal colours the talk and not the file."""
    out, err = io.StringIO(), Terminal()
    made = Console(out, err, environ={}, columns=80)

    made.show(TABLE)
    made.next("farm report r-1")

    assert "\x1b[" not in out.getvalue()
    assert "\x1b[" in err.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_no_name_steers_the_terminal(terminal):
    """Whatever a model is called, no control or direction character reaches the screen."""
    made, out, err = console(terminal=terminal, color="never", columns=100)

    made.show(*text.blocks(hostile.report()))
    made.error(Refused("\x1b[2J", why="\x07\nsecond", hint="\u202e"))
    made.next("\x1b]0;title\x07")

    for stream in (out, err):
        assert not [each for each in "\x1b\x07\u202e\r" if each in stream.getvalue()]


# ── talk ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_error_says_what_why_and_what_next():
    """The form of the house: what, why indented, a blank line, the hint."""
    made, out, err = console()
    error = Refused(
        "configs/sweeps/night.yaml: unknown precision 'fp61'",
        why="at matrix.precision[0]; known: fp32, bf16",
        hint="did you mean `fp16`?",
    )

    code = made.error(error)

    assert 2 == code
    assert "" == out.getvalue()
    assert err.getvalue() == (
        "error: configs/sweeps/night.yaml: unknown precision 'fp61'\n"
        "  at matrix.precision[0]; known: fp32, bf16\n"
        "\n"
        "hint: did you mean `fp16`?\n"
    )


def test_a_usage_error_shows_one_line_of_usage():
    """And nothing where there is nothing to say."""
    made, _, err = console()

    made.error(Refused("no such option '--fast'"), usage="farm run SWEEP…")

    assert ["error: no such option '--fast'", "  usage: farm run SWEEP…"] == (
        err.getvalue().splitlines()
    )


def test_with_json_an_error_is_one_line_and_stdout_stays_empty():
    """A program reads the code and the words from one object."""
    made, out, err = console(as_json=True)

    code = made.error(
        Unreachable("no broker", why="connection refused\nat 127.0.0.1", hint="farm up")
    )

    assert 4 == code
    assert "" == out.getvalue()
    assert 1 == err.getvalue().count("\n")
    assert {
        "schema": "farm.error/v1",
        "code": 4,
        "what": "no broker",
        "why": "connection refused\nat 127.0.0.1",
        "hint": "farm up",
    } == json.loads(err.getvalue())


@pytest.mark.parametrize("silent", [{"quiet": True}, {"as_json": True}])
def test_the_silent_say_only_what_changes_belief(silent):
    """No hint, no progress, no talk; warnings and errors stay."""
    made, out, err = console(**silent)

    made.say("measuring")
    made.next("farm report")
    with made.progress() as progress:
        progress.update(STATE)

    assert "" == out.getvalue() + err.getvalue()
    made.warn("the disk is nearly full")
    assert "warning: the disk is nearly full\n" == err.getvalue()


def test_a_document_is_one_line_on_stdout():
    """A program reads it with `json.loads`, from bytes or from plain data."""
    made, out, _ = console(as_json=True)

    made.document(b'{"schema":"farm.report/v1"}')
    made.document({"schema": "farm.plan/v1", "name": "é"})

    assert ["farm.report/v1", "farm.plan/v1"] == [
        json.loads(each)["schema"] for each in out.getvalue().splitlines()
    ]


def test_data_goes_out_unchanged_except_on_a_terminal():
    """A file gets the bytes; a screen gets them harmless."""
    plain, out, _ = console()
    plain.data("a,\x1b[31m\n")
    screen, shown, _ = console(terminal=True)
    screen.data("a,\x1b[31m\n")

    assert "a,\x1b[31m\n" == out.getvalue()
    assert "a,\\x1b[31m\n" == shown.getvalue()


# ── progress ─────────────────────────────────────────────────────────────────────────────────────


def state(elapsed_s: float, done: int, *, total=10, lines=(), **more: int) -> RunState:
    """So far a run is after so many seconds; one job of it runs."""
    ended = done + sum(more.values())
    return RunState(
        run_id="r-1",
        name="night",
        total=total,
        done=done,
        failed=more.pop("failed", 0),
        running=1,
        queued=total - 1 - ended,
        elapsed_s=elapsed_s,
        left_s=None,
        lines=lines,
        **more,
    )


def told(*states: RunState) -> list[list[str]]:
    """Return the lines that a pipe gets at each state, and those of the end as the last."""
    clock = Clock()
    made, _, err = console(clock=clock)
    said: list[list[str]] = []

    def take() -> None:
        said.append(err.getvalue().splitlines())
        err.truncate(0)
        err.seek(0)

    with made.progress() as progress:
        for each in states:
            clock.now = each.elapsed_s
            progress.update(each)
            take()
    take()
    return said


def test_what_holds_a_run_up_is_said_once_and_uploads_are_counted_apart():
    """They are neither running nor queued: the device is free, and nothing waits for it."""
    held = replace(
        state(1.0, 2), uploading=3, queued=4, notes=("measured profiles wait on node n1: away",)
    )

    first, second, *_ = told(held, replace(held, elapsed_s=2.0))

    assert "measured profiles wait on node n1: away" == first[0]
    assert "2 done · 1 running · 3 uploading · 4 queued" in first[1]
    assert [] == second


def counts(said: list[list[str]]) -> list[int]:
    return [len(each) for each in said]


def bad(label: str, word: str = "failed", note: str = "timed out", node: str = "gpu-3") -> JobLine:
    return JobLine(node, "h200", label, word, None, note)


def test_at_first_a_change_is_a_line_at_most_once_a_second():
    """Ten thousand quick jobs do not make ten thousand lines, and the last is told."""
    quick = [state(each / 100, each) for each in range(9)]

    said = told(*quick, state(1.0, 9), state(1.5, 9))

    assert [1, *[0] * 8, 1, 0, 0] == counts(said)
    assert "9 done" in said[9][0]


def test_at_first_ten_silent_seconds_make_a_line():
    """Nothing changed, and the reader knows that it goes on."""
    assert [1, 0, 1, 0, 1, 0] == counts(
        told(*[state(each, 3) for each in (0.0, 9.9, 10.0, 15.0, 20.0)])
    )


@pytest.mark.parametrize(
    ("after", "change_s", "alive_s"), [(21, 10, 30), (301, 30, 60), (3601, 60, 300)]
)
def test_the_longer_a_run_goes_the_rarer_are_its_lines(after, change_s, alive_s):
    """A change, and a sign of life while nothing changes."""
    changing = told(state(after, 1), state(after + change_s - 0.1, 2), state(after + change_s, 3))
    silent = told(state(after, 1), state(after + alive_s - 0.1, 1), state(after + alive_s, 1))

    assert [1, 0, 1, 0] == counts(changing)
    assert [1, 0, 1, 0] == counts(silent)


def test_an_hour_of_two_thousand_jobs_makes_a_log_that_one_can_read():
    """At most some 150 lines, and one for each failure."""
    states = []
    for look in range(7200):
        at = look / 2
        ended = int(at / 1.8)
        failed = range(250, ended + 1, 250)
        lines = tuple(bad(f"job {each}") for each in failed)[-5:]
        states.append(state(at, ended - len(failed), total=2000, failed=len(failed), lines=lines))

    lines = [line for said in told(*states) for line in said]

    complaints = [line for line in lines if line.startswith("failed ")]
    assert [
        f"failed  job {each} on gpu-3: timed out" for each in range(250, 2000, 250)
    ] == complaints
    assert 50 < len(lines) - len(complaints) <= 150


def test_a_failure_is_told_at_once_and_once():
    """Whatever the pace; a job that was given up is as bad."""
    failing = bad("vit/b8")
    given_up = bad("vit/b1", "dead", "its worker was lost", node="gpu-7")

    said = told(
        state(4000.0, 1),
        state(4000.5, 1, failed=1, lines=(failing,)),
        state(4001.0, 1, failed=2, lines=(given_up, failing)),
        state(4001.5, 1, failed=2, lines=(given_up, failing)),
    )

    assert ["failed  vit/b8 on gpu-3: timed out"] == said[1]
    assert ["dead  vit/b1 on gpu-7: its worker was lost"] == said[2]
    assert [] == said[3]


def test_no_failure_steers_the_reader_of_a_log():
    """What a model raised may hold anything."""
    said = told(state(0.0, 1, failed=1, lines=(bad("x", note="\x1b[2J\x07"),)))

    assert "failed  x on gpu-3: \\x1b[2J\\x07" == said[0][0]


@pytest.mark.parametrize("word", ["out of memory", "not supported there", "cancelled", "done"])
def test_an_answer_or_a_cancel_is_no_complaint(word):
    """Somebody asked for it."""
    (said, _) = told(state(0.0, 1, lines=(bad("x", word),)))

    assert [line for line in said if line.startswith("night")] == said


def test_what_failed_what_is_answered_and_what_was_cancelled_are_counted_apart():
    answered = (("not supported there", 1), ("out of memory", 2))
    run = RunState("r-1", "night", 10, 3, 1, 0, 0, 60.0, None, (), 3, answered)

    ((line,), _) = told(run)

    assert (
        "night  r-1   10 jobs: 3 done · 1 failed · 1 not supported there · 2 out of memory"
        " · 3 cancelled   1m00s" == line
    )


@pytest.mark.parametrize(
    "later", [state(0.5, 2), state(0.5, 1, failed=1), state(0.5, 1, cancelled=1)]
)
def test_the_end_of_a_run_is_told_unless_it_was(later):
    """Its last change came too soon after the last line."""
    assert [1, 0, 1] == counts(told(state(0.0, 1), later))
    assert [1, 0, 0] == counts(told(state(0.0, 1), state(0.5, 1)))


def test_a_line_of_progress_holds_the_counts_and_the_time():
    """Who reads one line of a log knows how far the run is, and what it does."""
    made, _, err = console()

    with made.progress() as progress:
        progress.update(STATE)

    assert err.getvalue().splitlines() == [
        "failed  resnet18 fp16 b32 on gpu-07: timed out",
        "int8-on-ampere  r-7f3a91   31 jobs: 24 done · 3 running · 3 queued · 1 failed"
        "   4m12s, ~1m00s left   vit_tiny int8 b32 (measuring, repeat 2 of 3)",
    ]


def test_on_a_terminal_the_view_is_redrawn_and_leaves_one_line():
    """Live while it runs; afterwards the screen holds what is worth keeping."""
    made, out, err = console(terminal=True, columns=100)

    with made.progress() as progress:
        progress.update(STATE)
        progress.update(STATE)

    shown = err.getvalue()
    assert "" == out.getvalue()
    assert "gpu-03" in shown
    assert "11.42" in shown
    assert "✗ failed" in shown
    assert "\x1b[" in shown
    assert shown.rstrip().endswith("left")


def test_the_live_view_ends_when_the_run_breaks():
    """An exception passes through, and the cursor is there again."""
    made, _, err = console(terminal=True)

    def broken() -> None:
        with made.progress() as progress:
            progress.update(STATE)
            raise KeyError("x")

    with pytest.raises(KeyError):
        broken()

    assert "\x1b[?25h" in err.getvalue()


# ── the end of a pipe ────────────────────────────────────────────────────────────────────────────


def run(code: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    script = f"import os, sys\nfrom farm.console import Console\n{code}"
    return subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -c "$0" | head -n 1; exit 0', script],
        cwd=ROOT,
        env=os.environ | environ,
        capture_output=True,
        timeout=30,
    )


def test_a_pipe_that_head_closed_ends_quietly_with_0():
    """`farm report | head` is no failure, and says nothing about pipes."""
    code = (
        "try:\n"
        "    made = Console(sys.stdout, sys.stderr, environ={})\n"
        "    for each in range(100_000):\n"
        "        made.data('a line\\n')\n"
        "except SystemExit as end:\n"
        "    print('ended with', end.code, file=sys.stderr)\n"
        "    raise\n"
    )

    said = run(code)

    assert b"a line\n" == said.stdout
    assert b"ended with 0\n" == said.stderr


def test_a_listener_to_the_talk_who_leaves_ends_nothing():
    """Progress has no reader any more; the run goes on."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    out = io.StringIO()
    made = Console(out, Gone(), environ={})

    made.say("measuring")
    made.next("farm report")
    made.show("done")

    assert "done\n" == out.getvalue()


def test_a_stream_without_our_signs_gets_them_spelled():
    """An old locale prints an escape, never a traceback."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    made = Console(out, io.StringIO(), environ={})

    made.show(TABLE)

    out.seek(0)
    assert "\\u2713 stable" in out.read()


def test_the_console_starts_without_heavy_libraries():
    """The first line of any command waits for neither rich nor msgspec."""
    code = (
        "import sys; from farm.console import Console; "
        "Console(sys.stdout, sys.stderr, environ={}).show('hello'); "
        "print(sorted({'rich', 'msgspec', 'jinja2', 'numpy'} & set(sys.modules)))"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ["hello", "[]"] == said.stdout.splitlines()
