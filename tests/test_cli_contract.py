"""The command line as a table: every bad request has its exit code, one message and no traceback.

The codes are those of the decisions; with --json an error is one `farm.error/v1` line on stderr and
stdout stays empty.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from farm import schema
from farm.cli import cli, main
from farm.store import LocalStore, job_key
from tests.farm import make

FARM = Path(sys.executable).with_name("farm")
SWEEP = """
name: small
matrix: {model: mlp, backend: fake, batch: [1, 8], device: cpu}
measure: {repeats: 1}
"""
FAILED = make.job("cnn")


class Place(NamedTuple):
    """A folder with a sweep, and a store with two runs."""

    folder: Path
    good_id: str
    failed_id: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("world")
    for name, text in {
        "sweep.yaml": SWEEP,
        "broken.yaml": "matrix: [",
        "list.yaml": "- 1",
        "unknown.yaml": SWEEP + "matrx: 1\n",
        "empty.yaml": "matrix: {model: [], batch: 1}\n",
        "none.yaml": SWEEP + "exclude: [{model: mlp}]\n",
        "file.txt": "",
        "bad/farm.toml": "stoer = 'x'\n",
        "home/x": "",
    }.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    store = LocalStore(folder / ".farm/store", fsync=False)
    good, failed = make.profile(), make.profile(FAILED, status="failed")
    ids = make.put(store, good, failed)
    make.put(
        store,
        make.manifest([good.job, FAILED, make.job("lstm")], run_id="r-aaa111"),
        make.manifest([good.job], run_id="r-aaa222", submitted_at="2026-11-30T09:00:00Z"),
    )
    return Place(folder, ids[0], ids[1])


@pytest.fixture(autouse=True)
def here(world: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder and the environment are facts of the process; no argument carries them."""
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("HOME", str(world.folder / "home"))
    for name in [each for each in os.environ if each.startswith("FARM_")]:
        if name != "FARM_TEST_RUN":
            monkeypatch.delenv(name)


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def farm(capsys: pytest.CaptureFixture[str]):
    """Run a command in this process."""

    def run(*words: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return run


# ── bad requests ─────────────────────────────────────────────────────────────────────────────────

RUN = ("run", "sweep.yaml")
LAST = ("profiles", "get", "r-aaa111/cnn/fp32/b1/cpu")
GOOD = ("profiles", "get", "r-aaa111/mlp/fp32/b1/cpu")

# words, exit code, what the message holds; a --json is put behind the verb.
BAD: list[tuple[Sequence[str], int, str]] = [
    # words that no verb, flag or setting knows
    (["nope"], 2, "no command 'nope'"),
    (["rnu"], 2, "did you mean `run`?"),
    (["--nope"], 2, "no option '--nope'"),
    (["--color", "pink", "status"], 2, "'pink' is not one of"),
    (["--config", "missing.toml", "status"], 2, "no file 'missing.toml'"),
    (["--config", "bad/farm.toml", "status"], 2, "did you mean `store`?"),
    (["profiles", "lst"], 2, "did you mean `list`?"),
    (["profiles", "--nope"], 2, "no option '--nope'"),
    (["status", "--nope"], 2, "no option '--nope'"),
    (["status", "a", "b"], 2, "unexpected extra argument"),
    (["status", "--store"], 2, "requires an argument"),
    # sweeps
    (["run"], 2, "missing argument 'SWEEP…'"),
    (["plan"], 2, "usage: "),
    (["run", "missing.yaml"], 2, "no file 'missing.yaml'"),
    (["run", "swep.yaml"], 2, "did you mean `sweep.yaml`?"),
    (["run", "home"], 2, "cannot read 'home'"),
    (["run", "broken.yaml"], 2, "broken.yaml: not readable as YAML"),
    (["run", "list.yaml"], 2, "list.yaml: expected keys and values"),
    (["run", "unknown.yaml"], 2, "did you mean `matrix`?"),
    (["run", "empty.yaml"], 2, "an empty list"),
    (["run", "none.yaml"], 2, "no job is left"),
    ([*RUN, "-S", "batch"], 2, "expected KEY=VALUE"),
    ([*RUN, "-S", ""], 2, "expected KEY=VALUE"),
    ([*RUN, "-S", "batch=0"], 2, "expected at least 1, got 0"),
    ([*RUN, "-S", "batch=many"], 2, "expected a whole number"),
    ([*RUN, "-S", "precison=fp16"], 2, "did you mean `precision`?"),
    ([*RUN, "-S", "precision=fp61"], 2, "unknown precision 'fp61'"),
    ([*RUN, "-S", "measure.effort=slow"], 2, "unknown effort 'slow'"),
    ([*RUN, "-S", "measure.repeats=0"], 2, "expected at least 1"),
    ([*RUN, "-S", "model=no_such_model"], 2, "unknown model"),
    ([*RUN, "-S", "model=gone.py:build"], 2, "gone.py"),
    ([*RUN, "-S", "device=GPU:0"], 2, "unknown device"),
    # flags of a run
    ([*RUN, "--effort", "slow"], 2, "'slow' is not one of"),
    ([*RUN, "-t", "tag"], 2, "tag 'tag' is not KEY=VALUE"),
    ([*RUN, "-t", "=x"], 2, "tag '=x' is not KEY=VALUE"),
    ([*RUN, "--timeout", "soon"], 2, "'soon' is no duration"),
    ([*RUN, "--timeout", "0s"], 2, "'0s' is no duration"),
    ([*RUN, "-o", "."], 2, "cannot write '.'"),
    ([*RUN, "-o", "home"], 2, "cannot write 'home'"),
    ([*RUN, "-o", "file.txt/page.html"], 2, "cannot write 'file.txt/page.html'"),
    # stores and secrets
    ([*RUN, "--store", "redis://ada:hunter2@h/0"], 2, "a flag takes no password"),
    ([*RUN, "--store", "s3://bucket"], 2, "this version keeps local stores only"),
    ([*RUN, "--store", "ftp://h/x"], 2, "neither a folder nor file:///FOLDER"),
    ([*RUN, "--store", "file.txt"], 2, "is not a folder"),
    ([*RUN, "--store", ""], 2, "--store"),
    ([*RUN, "--store", "/sys/farm"], 4, "the store refuses"),
    (["status", "--store", "file.txt"], 2, "is not a folder"),
    (["report", "--store", "s3://bucket"], 2, "local stores only"),
    # runs
    (["status", "r-zzz"], 3, "no run 'r-zzz'"),
    (["status", "r-aaa"], 2, "2 runs match: r-aaa111, r-aaa222"),
    (["status", ""], 2, "without a name"),
    (["status", "--state", "failed"], 2, "name one"),
    (["status", "r-aaa111", "--state", "fialed"], 2, "did you mean `failed`?"),
    (["status", "r-aaa111", "--state", "pruned"], 3, "is pruned"),
    (["status", "--limit", "0"], 2, "0 is not in the range"),
    (["status", "--limit", "-1"], 2, "-1 is not in the range"),
    (["plan", "sweep.yaml", "--limit", "many"], 2, "'many' is not a valid integer range"),
    (["plan", "sweep.yaml", "--effort", "slow"], 2, "'slow' is not one of"),
    (["resume"], 2, "missing argument 'RUN'"),
    (["resume", "r-zzz"], 3, "no run 'r-zzz'"),
    (["resume", "r-aaa"], 2, "is ambiguous"),
    (["resume", "@all"], 3, "no run '@all'"),
    (["resume", "r-aaa111", "--timeout", "1w"], 2, "'1w' is no duration"),
    (["resume", "r-aaa111", "-o", "home"], 2, "cannot write 'home'"),
    (["resume", "r-aaa111", "--store", "empty"], 3, "no run in this store yet"),
    # reports
    (["report", "r-zzz"], 3, "no run 'r-zzz'"),
    (["report", "r-aaa"], 2, "is ambiguous"),
    (["report", "--store", "empty"], 3, "no run in this store yet"),
    (["report", "--format", "pdf"], 2, "'pdf' is not one of"),
    (["report", "-o", "file.txt/x.html"], 2, "cannot write 'file.txt/x.html'"),
    (["report", "-o", "/sys/farm/x.html"], 2, "cannot write '/sys/farm/x.html'"),
    (["report", "--fail-on", "sometimes"], 2, "'sometimes' is not one of"),
    # profiles
    (["profiles", "show"], 2, "missing argument 'PROFILE'"),
    (["profiles", "show", "12345"], 2, "'12345' is no profile"),
    (["profiles", "show", "mlp"], 2, "'mlp' is no profile"),
    (["profiles", "show", "ffffffff"], 3, "no profile starts with 'ffffffff'"),
    (["profiles", "show", "r-zzz/mlp"], 3, "no run 'r-zzz'"),
    (["profiles", "show", "r-aaa/mlp"], 2, "is ambiguous"),
    (["profiles", "show", "@last/mpl/fp32/b1/cpu"], 3, "did you mean `mlp/fp32/b1/cpu`?"),
    (["profiles", "show", "r-aaa111/lstm/fp32/b1/cpu"], 3, "farm resume r-aaa111"),
    ([*GOOD, "latncy.p50"], 2, "did you mean `latency.p50`?"),
    ([*GOOD, "zzz"], 2, "a profile has no field 'zzz'"),
    ([*GOOD, "log"], 3, "this profile has no log"),
    ([*GOOD, "card"], 3, "is not in the store"),
    ([*LAST, "latency.p50"], 3, "it ended as oom"),
    (["profiles", "list", "-w", "model"], 2, "'model' is not KEY=VALUE"),
    (["profiles", "list", "-w", "model=none"], 3, "no profile matches"),
    (["profiles", "list", "--since", "soon"], 2, "'soon' is no duration"),
    (["profiles", "list", "--limit", "0"], 2, "0 is not in the range"),
    (["profiles", "list", "--store", "empty"], 3, "no profile matches"),
]
# With --json these are other requests, good ones or not.
PLAIN: list[tuple[Sequence[str], int, str]] = [
    (["--config"], 2, "requires an argument"),
    (["report", "-o", "page.pdf"], 2, "no ending that names a format"),
    (["report", "-o", "page"], 2, "give --format"),
    (["report", "-o", ""], 2, "no ending"),
    (["report", "--format", "html", "-o", ""], 2, "cannot write"),
    (["report", "--format", "html", "-o", "/"], 2, "cannot write '/'"),
    (["report", "--format", "csv", "-o", ".."], 2, "cannot write '..'"),
    (["status", "--limit"], 2, "requires an argument"),
    (["report", "--json", "--format", "csv"], 2, "two forms"),
]


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else ""


def with_json(words: Sequence[str]) -> list[str]:
    """Return the words with --json behind the verb, or at the end where there is none."""
    verb: click.Command | None = cli
    for at, word in enumerate(words):
        if verb is not None and not isinstance(verb, click.Group):
            return [*words[:at], *([] if "--json" in words else ["--json"]), *words[at:]]
        verb = verb.commands.get(word) if isinstance(verb, click.Group) else None
    return [*words, "--json"]


@pytest.mark.parametrize(("words", "code", "holds"), [*BAD, *PLAIN[:-1]], ids=_words)
def test_a_bad_request_gets_its_code_and_one_message(farm, words, code, holds):
    """Lower case, no full stop, nothing on stdout, no traceback; the hint after a blank line."""
    said = farm(*words)

    assert (code, "") == (said.code, said.out)
    first, *more = said.err.splitlines()
    assert first.startswith("error: ")
    assert not first.endswith(".")
    assert not first.removeprefix("error: ")[0].isupper()
    assert holds in said.err
    assert not [line for line in more if line.startswith(("error", "Traceback"))]
    hints = [at for at, line in enumerate(more) if line.startswith("hint: ")]
    assert [at for at in hints if more[at - 1] == ""] == hints
    assert len(hints) <= 1
    assert "hunter2" not in said.err


@pytest.mark.parametrize(("words", "code", "holds"), [*BAD, PLAIN[-1]], ids=_words)
def test_with_json_an_error_is_one_line_and_stdout_is_empty(farm, words, code, holds):
    """The same code and the same words, for a program."""
    said = farm(*with_json(words))

    assert (code, "", 1) == (said.code, said.out, said.err.count("\n"))
    told = json.loads(said.err)
    assert ("farm.error/v1", code) == (told["schema"], told["code"])
    assert {"schema", "code", "what", "why", "hint"} == told.keys()
    assert told["what"]
    assert "hunter2" not in said.err
    if not holds.startswith("usage"):
        assert holds in "\n".join((told["what"], told["why"], told["hint"]))


def test_the_table_is_long_enough():
    """Every verb has its part in it."""
    verbs = {words[0] for words, _, _ in BAD}

    assert len(BAD) >= 45
    assert set(cli.commands) <= verbs


def test_nothing_is_left_behind_by_a_bad_request(world):
    """No half file, no folder of a store that was only asked."""
    names = {str(each.relative_to(world.folder)) for each in world.folder.rglob("*")}

    assert not [each for each in names if each.endswith(".tmp")]
    assert "empty" not in names
    assert ".farm/broker" not in names


def test_settings_from_the_environment_are_named_when_they_are_bad(farm, monkeypatch):
    """The origin of the value, not only the value."""
    monkeypatch.setenv("FARM_EFFORT", "slow")

    said = farm("status")

    assert (2, True) == (
        said.code,
        said.err.startswith("error: FARM_EFFORT: unknown effort 'slow'"),
    )


def test_a_bad_farm_toml_is_refused_by_every_verb(farm, world, monkeypatch):
    monkeypatch.chdir(world.folder / "bad")

    for words in (["status"], [*RUN], ["report"], ["profiles", "list"]):
        said = farm(*words)
        assert (2, True) == (said.code, "unknown setting 'stoer'" in said.err), words


def test_a_folder_that_was_deleted_under_us_is_said_so(farm, tmp_path, monkeypatch):
    """Not a bug of ours: somebody removed the place we stand in."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    for words in (["status"], ["run", "sweep.yaml"], ["profiles", "list"]):
        assert (2, "", "error: the current folder is gone") == (
            *farm(*words)[:2],
            farm(*words).err.splitlines()[0],
        )


# ── good requests ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["-q"]])
def test_farm_alone_prints_the_list_and_ends_with_0(farm, words):
    said = farm(*words)

    assert (0, "") == (said.code, said.err)
    for verb in cli.commands:
        assert f"  {verb} " in said.out


@pytest.mark.parametrize("words", [["profiles"], ["profiles", "-h"]])
def test_farm_profiles_alone_prints_its_list_and_ends_with_0(farm, words):
    said = farm(*words)

    assert (0, "") == (said.code, said.err)
    assert [True] * 3 == [f"  {verb} " in said.out for verb in ("list", "show", "get")]


def _verbs(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, verb in group.commands.items():
        if isinstance(verb, click.Group):
            yield from _verbs(verb, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("verb", list(_verbs()), ids=" ".join)
def test_every_verb_explains_itself_and_takes_json(farm, verb, flag):
    """-h on each, and --json among its options."""
    said = farm(*verb, flag)

    assert (0, "") == (said.code, said.err)
    assert said.out.startswith(f"Usage: farm {' '.join(verb)} ")
    assert "--json" in said.out


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_one_line(farm, flag):
    said = farm(flag)

    assert (0, 1, "") == (said.code, said.out.count("\n"), said.err)
    assert said.out.startswith("farm ")


@pytest.mark.parametrize(
    ("words", "lines", "schema"),
    [
        (["status"], 1, "farm.runs/v1"),
        (["status", "r-aaa111"], 1, "farm.jobs/v1"),
        (["report", "r-aaa111"], 1, "farm.report/v1"),
        (["profiles", "list"], 2, "farm.profile_row/v1"),
        (["profiles", "list", "--limit", "1"], 1, "farm.profile_row/v1"),
        (["profiles", "show", "r-aaa111/mlp-fp32-b1-cpu"], 1, "farm.profile/v1"),
        ([*GOOD], 1, "farm.fields/v1"),
        ([*GOOD, "latency.p50"], 1, "farm.value/v1"),
        ([*GOOD, "job"], 1, "farm.value/v1"),
        ([*GOOD, "memory.cpu_pss_bytes"], 1, "farm.value/v1"),
    ],
)
def test_with_json_stdout_is_json_and_stderr_is_empty(farm, words, lines, schema):
    """Each line one document that names its schema."""
    said = farm(*with_json(words))

    assert (0, "", lines) == (said.code, said.err, said.out.count("\n"))
    assert {schema} == {json.loads(line)["schema"] for line in said.out.splitlines()}


def test_a_bare_value_is_the_only_thing_on_stdout(farm):
    """A null too, whose reason is talk."""
    assert (0, "10.0\n", "") == farm(*GOOD, "latency.p50")
    assert (0, "null\n", "memory.cpu_pss_bytes is null: no_permission\n") == farm(
        *GOOD, "memory.cpu_pss_bytes"
    )
    assert (0, "null\n", "") == farm("-q", *GOOD, "memory.cpu_pss_bytes")


def test_a_report_fails_only_on_what_it_is_asked_to(farm):
    """0 rendered; 1 for what is missing; an answer such as oom is none of it."""
    codes = {
        each: farm("report", "r-aaa111", "--fail-on", each).code
        for each in ("never", "failed", "missing", "invalid")
    }

    assert {"never": 0, "failed": 0, "missing": 1, "invalid": 1} == codes
    assert 0 == farm("report", "r-aaa222", "--fail-on", "invalid").code


def test_damage_in_the_store_is_told_and_is_a_bad_answer(farm, world, tmp_path):
    """One byte among the profiles: a warning in the list, 1 from the report."""
    store = LocalStore(tmp_path / "store", fsync=False)
    document = make.profile()
    make.put(store, document, make.manifest([document.job]))
    (profile,) = (tmp_path / "store/inbox").rglob("*.json")
    profile.write_bytes(profile.read_bytes().replace(b"mlp", b"mpl"))

    listed = farm("profiles", "list", "--store", str(tmp_path / "store"))
    report = farm("report", "--store", str(tmp_path / "store"))

    assert (3, True) == (listed.code, "warning: unreadable: inbox/v1/" in listed.err)
    assert (1, True) == (report.code, "✗ inbox/v1/" in report.out)


def test_a_report_is_written_by_the_ending_of_its_name(farm, world, tmp_path):
    """Whole, into a folder that it makes, and nothing on stdout."""
    for name, start in {
        "a.html": "<!doctype html>",
        "b.csv": "run_id,",
        "c.md": "#",
        "d.json": '{"schema":"farm.report/v1"',
    }.items():
        said = farm("report", "r-aaa222", "-o", str(tmp_path / "new" / name))

        assert (0, "") == (said.code, said.out)
        assert (tmp_path / "new" / name).read_text().startswith(start)
    assert 4 == len(list((tmp_path / "new").iterdir()))


# ── our own trouble ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def boom(monkeypatch: pytest.MonkeyPatch):
    """A verb that raises what it is told."""

    def add(error: BaseException) -> None:
        @click.command()
        @click.option("--json", "as_json", is_flag=True)
        def verb(as_json: bool) -> None:
            raise error

        monkeypatch.setitem(cli.commands, "boom", verb)

    return add


def test_a_bug_of_ours_is_one_sentence_and_a_report(farm, boom):
    """70; the traceback lies in a file that the message names, or is shown with -v."""
    boom(ZeroDivisionError("secret \x1b[31m"))

    plain, loud = farm("boom"), farm("-v", "boom")

    assert (70, "") == (plain.code, plain.out)
    assert plain.err.startswith("error: this is a bug in farm: ZeroDivisionError: secret \\x1b[31m")
    assert "Traceback" not in plain.err
    report = Path(plain.err.split("the report is ")[1].strip())
    assert "ZeroDivisionError" in report.read_text()
    assert "Traceback" in loud.err
    for each in (plain, loud):
        Path(each.err.split("the report is ")[1].strip()).unlink()


def test_a_bug_of_ours_with_json_is_one_line(farm, boom):
    boom(ZeroDivisionError("x"))

    said = farm("boom", "--json")

    assert (70, "", 1) == (said.code, said.out, said.err.count("\n"))
    told = json.loads(said.err)
    assert 70 == told["code"]
    Path(told["hint"].removeprefix("the report is ")).unlink()


def test_ctrl_c_ends_with_130(farm, boom):
    """One word for a person, one line for a program."""
    boom(KeyboardInterrupt())

    assert (130, "", "interrupted\n") == farm("boom")
    said = farm("boom", "--json")
    assert (130, 130, 1) == (said.code, json.loads(said.err)["code"], said.err.count("\n"))


# ── real processes ───────────────────────────────────────────────────────────────────────────────


def test_a_pipe_that_is_closed_ends_quietly_with_0():
    """Whatever was still to be said."""
    for words in (["status"], ["--help"], [], ["profiles", "list", "--json"]):
        read, write = os.pipe()
        os.close(read)
        said = subprocess.run([FARM, *words], stdout=write, stderr=subprocess.PIPE, text=True)
        os.close(write)

        assert (0, "") == (said.returncode, said.stderr), words


def test_head_takes_one_line_and_nobody_complains():
    """`farm profiles list | head -1`, as a shell runs it."""
    said = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{FARM}' report --format csv | head -1"],
        capture_output=True,
        text=True,
    )

    assert (0, 1, "") == (said.returncode, said.stdout.count("\n"), said.stderr)


def test_the_program_ends_as_its_function_does():
    """The installed command: code, streams, and no traceback at exit."""
    bad = subprocess.run([FARM, "status", "r-zzz", "--json"], capture_output=True, text=True)
    closed = subprocess.run(["bash", "-c", f"'{FARM}' status >&-"], capture_output=True, text=True)

    assert (3, "", 3) == (bad.returncode, bad.stdout, json.loads(bad.stderr)["code"])
    assert (0, "") == (closed.returncode, closed.stderr)


@pytest.mark.parametrize(
    ("devices", "code", "holds"),
    [("bogus", 2, "unknown device selector 'bogus'"), ("gpu", 3, "use --devices cpu")],
)
def test_a_plan_refuses_devices_as_the_worker_words_it(farm, devices, code, holds):
    """The worker program knows the devices; its error comes through whole."""
    said = farm("plan", "sweep.yaml", "--devices", devices)

    assert (code, "", True) == (said.code, said.out, holds in said.err)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("words", "code", "holds"),
    [
        (["--devices", "bogus"], 2, "error: unknown device selector 'bogus'\n  known: all, cpu"),
        (["--devices", "gpu"], 3, "error: no device 'gpu' to serve\n"),
        (["-S", "device=h300"], 3, "no device here takes hw.h300"),
    ],
)
def test_a_run_that_can_measure_nothing_says_why_and_leaves_no_run(farm, words, code, holds):
    """What the agent refused is said as it said it; a sweep without a device is no result."""
    said = farm(*RUN, *words)

    assert (code, "", True) == (said.code, said.out, holds in said.err)
    assert 2 == len(json.loads(farm("status", "--json").out)["runs"])


@pytest.mark.redis
def test_a_run_that_nobody_here_can_complete_is_not_waited_for(farm, tmp_path):
    """Resumed on a machine without its device: 3 and the class, instead of for ever."""
    store = LocalStore(tmp_path / "store", fsync=False)
    gone = make.job(device="h300")
    make.put(store, make.manifest([gone]))
    store.put_new(job_key(gone.job_id), schema.encode(gone))

    said = farm("resume", "@last", "--store", str(store.root))

    assert (3, "") == (said.code, said.out)
    for words in (
        "1 of 1 job missing",
        "1 job left out: no device here takes hw.h300",
        f"error: no device here takes what is missing in {make.RUN}\n  hw.h300",
    ):
        assert words in said.err


@pytest.mark.redis
def test_a_state_folder_that_cannot_be_written_is_unreachable(farm, monkeypatch):
    monkeypatch.setenv("FARM_STATE", "/sys/farm")

    assert 4 == farm(*RUN).code


def test_the_next_step_of_a_plan_asks_the_same_question(farm, world):
    """A command to paste, with every flag that changes what is measured."""
    words = ["-S", "batch=4, 8", "--effort", "quick", "--force"]

    said = farm("plan", "sweep.yaml", *words)

    assert (0, True) == (said.code, "2 jobs: 2 to measure" in said.out)
    assert said.err == "next: farm run sweep.yaml -S 'batch=4, 8' --effort quick --force\n"
