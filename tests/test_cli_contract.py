"""What holds for every command: help, JSON, pipes, our own trouble. Bad requests: `tests/cli`."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from farm import schema
from farm.cli import cli
from farm.store import LocalStore, job_key
from tests.cli import world as place
from tests.cli.world import Said, World, with_json
from tests.farm import make

FARM = Path(sys.executable).with_name("farm")
RUN = ("run", "sweep.yaml")
GOOD = ("profiles", "get", "r-aaa111/mlp/fp32/b1/cpu")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return place.built(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    place.enter(world, monkeypatch)


@pytest.fixture
def farm(capsys, monkeypatch):
    """Run a command in this process."""

    def run(*words: str) -> Said:
        return place.run(list(words), given={}, capsys=capsys, monkeypatch=monkeypatch)

    return run


# ── settings and places ──────────────────────────────────────────────────────────────────────────


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
    said = farm(*with_json(list(words)))

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


def test_a_full_disk_is_no_bug_of_ours(farm, boom):
    """It is told as what it is, and no report of it is left."""
    boom(OSError(errno.ENOSPC, "No space left on device", "/tmp/farm-x/trace.json"))

    said = farm("boom")

    assert (3, "") == (said.code, said.out)
    assert said.err.startswith("error: no space is left\n  /tmp/farm-x/trace.json\n")
    assert "TMPDIR" in said.err


def test_a_report_that_cannot_be_written_is_shown(farm, boom, monkeypatch, tmp_path):
    boom(ZeroDivisionError("x"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    said = farm("boom")

    assert 70 == said.code
    assert said.err.startswith("Traceback")
    assert "the report stands above" in said.err


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
    [("bogus", 2, "unknown device selector 'bogus'"), ("gpu", 3, "say `cpu`")],
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
        (["--devices", "gpu"], 3, "error: no device 'gpu' here\n"),
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
