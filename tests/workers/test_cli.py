"""The command line of a node: documents on stdout, one message and a code for a bad request."""

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from farm import schema
from farm.schema import Profile, SystemCard
from tests.workers.agents import job
from workers.cli import cli, main
from workers.health import Health

FARM_WORKER = Path(sys.executable).with_name("farm-worker")
HEAVY = {
    *("celery", "duckdb", "jinja2", "kombu", "msgspec", "numpy", "onnxruntime", "pyarrow"),
    *("pynvml", "redis", "rich", "scipy", "torch", "yaml"),
}


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder and the environment are facts of the process; no argument carries them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [each for each in os.environ if each.startswith("FARM_")]:
        if name != "FARM_TEST_RUN":
            monkeypatch.delenv(name)


@pytest.fixture
def worker(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command in this process."""

    def run(*words: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return run


PLACES = ("--state-dir", "state", "--lock-dir", "locks")
LAYERS = (*PLACES, "--profile-layers", "--profile-output")

# words, exit code, what the message holds; a --json is put behind the verb.
BAD: list[tuple[Sequence[str], int, str]] = [
    (["frob"], 2, "no such command 'frob'"),
    (["--nope"], 2, "no option '--nope'"),
    (["run"], 2, "missing argument 'JOB'"),
    (["run", "gone.json"], 2, "cannot read the job 'gone.json'"),
    (["run", "."], 2, "cannot read the job '.'"),
    (["run", "empty.json"], 2, "'empty.json' is not a job"),
    (["run", "other.json"], 2, "expected a document of schema 'farm.job/v1'"),
    (["run", "job.json", "--effort", "slow"], 2, "'slow' is not one of"),
    (["run", "job.json", "--fail-on", "never-ever"], 2, "'never-ever' is not one of"),
    (["run", "job.json", "-o", "."], 2, "cannot write '.'"),
    (["run", "job.json", "-o", "none/profile.json"], 2, "cannot write 'none/profile.json'"),
    (["run", "job.json", "--device", "gpu", *PLACES], 3, "say `cpu`"),
    (["run", "job.json", "--device", "cpu:9", *PLACES], 3, "no device 'cpu:9' here"),
    (["run", "job.json", "--device", "bogus", *PLACES], 2, "unknown device selector 'bogus'"),
    (["run", "job.json", "--name", "A B", *PLACES], 2, "'A B' is no name of a node"),
    (["run", "job.json", "--state-dir", "job.json"], 2, "cannot make the state folder"),
    (["run", "job.json", "--state-dir", "state", "--lock-dir", "job.json"], 3, "lock folder"),
    (["run", "job.json", *LAYERS, "other.json"], 2, "'other.json' cannot be a layer CSV"),
    (["run", "job.json", *LAYERS, "words.csv"], 2, "'words.csv' is no layer CSV"),
    (["run", "job.json", *LAYERS, ""], 2, "a layer CSV without a name"),
    (["measure"], 2, "missing argument 'ASKED'"),
    (["measure", "gone.json"], 2, "cannot read the job 'gone.json'"),
    (["measure", "empty.json"], 2, "'empty.json' asks for nothing"),
    (["measure", "job.json"], 2, "expected a document of schema 'farm.asked/v1'"),
    (["roofs", "--device", "bogus", *PLACES], 2, "unknown device selector 'bogus'"),
    (["roofs", "--device", "cpu:9", *PLACES], 3, "no device 'cpu:9' here"),
    (["card", "--device", "gpu", *PLACES], 3, "no GPU here"),
    (["card", "--device", "bogus", *PLACES], 2, "known: all, cpu, cpu:0, gpu"),
    (["card", "x"], 2, "unexpected extra argument"),
    (["devices", "--devices", "cpu:9", *PLACES], 3, "no device 'cpu:9' here"),
    (["devices", "--cpu-slots", "0", *PLACES], 2, "0 CPU slots"),
    (["devices", "--cpu-slots", "many", *PLACES], 2, "'many' is not a valid integer"),
    (["start"], 2, "no broker is named"),
    (["start", "--drain", "soon"], 2, "no broker is named"),
]


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else ""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "job.json").write_bytes(schema.encode(job()))
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "other.json").write_text('{"schema": "farm.profile/v1"}')
    (tmp_path / "words.csv").write_text("a,b\n")
    return tmp_path


@pytest.mark.parametrize(("words", "code", "holds"), BAD, ids=_words)
def test_a_bad_request_gets_its_code_and_one_message(
    worker: Callable[..., Said], files: Path, words: Sequence[str], code: int, holds: str
) -> None:
    """Lower case, no full stop, nothing on stdout, no traceback."""
    said = worker(*words)

    assert (code, "") == (said.code, said.out)
    first, *more = said.err.splitlines()
    assert first.startswith("error: ")
    assert not first.endswith(".")
    assert not first.removeprefix("error: ")[0].isupper()
    assert holds in said.err
    assert not [line for line in more if line.startswith(("error", "Traceback"))]
    assert not [each for each in files.iterdir() if each.name.endswith(".tmp")]


@pytest.mark.parametrize(("words", "code", "holds"), BAD, ids=_words)
def test_with_json_an_error_is_one_line_and_stdout_is_empty(
    worker: Callable[..., Said], files: Path, words: Sequence[str], code: int, holds: str
) -> None:
    at = 1 if words[0] in cli.commands else len(words)
    said = worker(*words[:at], "--json", *words[at:])

    assert (code, "", 1) == (said.code, said.out, said.err.count("\n"))
    told = json.loads(said.err)
    assert ("farm.error/v1", code) == (told["schema"], told["code"])
    assert holds in "\n".join((told["what"], told["why"], told["hint"]))


@pytest.mark.parametrize(
    ("environ", "words", "code", "holds"),
    [
        ({}, ["--drain", "soon"], 2, "'soon' is no duration"),
        ({"FARM_LEASE_S": "x"}, [], 2, "FARM_LEASE_S: 'x' is no number"),
        ({"FARM_LEASE_S": "0"}, [], 2, "FARM_LEASE_S: '0' is out of range"),
        ({"FARM_LEASE_S": "nan"}, [], 2, "FARM_LEASE_S: 'nan' is out of range"),
        ({"FARM_BROKER": "localhost:6379"}, [], 2, "FARM_BROKER: broker is no address"),
        ({"FARM_STORE": "s3://Bucket"}, [], 2, "is no name of a bucket"),
        ({"FARM_STORE": "job.json"}, [], 2, "is not a folder"),
        ({"FARM_STORE": "/sys/farm"}, [], 4, "the store refuses"),
        ({"FARM_STORE": "store"}, ["--devices", "gpu"], 3, "say `cpu`"),
        ({"FARM_STORE": "store"}, [], 4, "the broker cannot be reached"),
    ],
)
def test_an_agent_that_could_not_serve_refuses_to_start(
    worker: Callable[..., Said],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    words: list[str],
    code: int,
    holds: str,
) -> None:
    """Rather than crash and come back for ever: store, broker, devices, times (rule 14)."""
    for name, value in {"FARM_BROKER": "redis://127.0.0.1:1/0", **environ}.items():
        monkeypatch.setenv(name, value)

    said = worker("start", *PLACES, *words)

    assert (code, "") == (said.code, said.out)
    assert holds in said.err
    assert "Traceback" not in said.err


# ── good requests ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_the_command_alone_prints_its_list(worker: Callable[..., Said], words: list[str]) -> None:
    said = worker(*words)

    assert (0, "") == (said.code, said.err)
    for verb in cli.commands:
        assert f"  {verb} " in said.out


@pytest.mark.parametrize("verb", sorted(cli.commands))
def test_every_verb_explains_itself_and_takes_json(worker: Callable[..., Said], verb: str) -> None:
    said = worker(verb, "-h")

    assert (0, "") == (said.code, said.err)
    assert said.out.startswith(f"Usage: farm-worker {verb} ")
    assert "--json" in said.out


def test_help_imports_nothing_heavy() -> None:
    """Nor any of our own packages that would."""
    code = f"""if True:
        import sys
        from workers.cli import main
        try:
            main(["--help"])
        except SystemExit as end:
            code = end.code
        print(code, sorted({HEAVY!r} & set(sys.modules)))
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "0 []" == said.stdout.splitlines()[-1]


def test_a_card_is_one_document_and_the_same_one_twice(worker: Callable[..., Said]) -> None:
    """What its numbers depend on does not change while nobody changes it."""
    first, second = worker("card", *PLACES), worker("card", *PLACES, "--json")

    assert (0, "", first.out) == (first.code, first.err, second.out)
    assert 1 == first.out.count("\n")
    card = schema.decode(first.out.encode(), SystemCard)
    assert card.node.node_id[:8] == card.node.name


FAKE = (*PLACES, "--fake", "2xH100", "--devices", "gpu")


def test_what_a_device_suffers_from_is_listed_and_cleared(worker: Callable[..., Said]) -> None:
    """By its slot, its number or its UUID; the other one is as good as before."""
    assert 0 == worker("devices", *FAKE).code
    Health(Path("state"), "1").fall_ill(severity="hard", cause="xid", note="xid: Xid 79")

    ill = worker("devices", *FAKE)
    document = json.loads(worker("devices", *FAKE, "--json").out)
    cleared = worker("devices", *FAKE, "--clear", "1", "--reason", "new cable")

    assert ["quarantine: xid: Xid 79" in each for each in ill.out.splitlines()] == [False, True]
    assert ["", "quarantine: xid: Xid 79"] == [each["trouble"] for each in document["slots"]]
    assert (0, 0) == (ill.code, cleared.code)
    assert "quarantine" not in cleared.out
    assert ["new cable"] == [each.cleared for each in Health(Path("state"), "1").history()]


def test_a_machine_on_which_nothing_can_be_used_ends_with_3(worker: Callable[..., Said]) -> None:
    worker("devices", *FAKE)
    for number in ("0", "1"):
        Health(Path("state"), number).fall_ill(severity="soft", cause="throttle", note="hot")

    said = worker("devices", *FAKE)

    assert 3 == said.code
    assert 2 == said.out.count("quarantine: hot")
    assert "no device here can be used" in said.err


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (("--clear", "gpu:0"), 2, "--clear and --reason go together"),
        (("--reason", "x"), 2, "--clear and --reason go together"),
        (("--clear", "gpu:7", "--reason", "x"), 3, "no device 'gpu:7' here"),
        (("--clear", "gpu:0", "--reason", "x"), 3, "gpu:0 suffers from nothing"),
    ],
)
def test_a_fault_that_is_none_cannot_be_cleared(
    worker: Callable[..., Said], words: Sequence[str], code: int, what: str
) -> None:
    said = worker("devices", *FAKE, *words)

    assert code == said.code
    assert what in said.err


def test_devices_are_lines_for_people_and_one_document_for_programs(
    worker: Callable[..., Said],
) -> None:
    lines = worker("devices", *PLACES, "--name", "n1")
    document = json.loads(worker("devices", *PLACES, "--name", "n1", "--json").out)

    assert 1 == lines.out.count("\n")
    assert lines.out.startswith("cpu:0  ")
    (slot,) = document["slots"]
    assert ("farm.devices/v1", "n1", "cpu:0") == (document["schema"], slot["node"], slot["slot"])
    assert slot["system_class"] in lines.out
    assert 2 == worker("devices", *PLACES, "--cpu-slots", "2").out.count("\n")


def test_a_node_is_named_by_the_environment_too(
    worker: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag beats it, and a name that cannot stand in a queue is refused from either."""

    def node(*words: str) -> object:
        return json.loads(worker("devices", *PLACES, "--json", *words).out)["slots"][0]["node"]

    monkeypatch.setenv("FARM_NODE_NAME", "n1")

    assert ("n1", "n2") == (node(), node("--name", "n2"))
    monkeypatch.setenv("FARM_NODE_NAME", "a/b")
    assert "'a/b' is no name of a node" in worker("devices", *PLACES).err


def options(**more: str | int | bool) -> bytes:
    """A job that a quick effort measures in a second a repeat."""
    asked = job(**{"duration_us": 1000, **more})
    return schema.encode(asked)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_a_job_by_hand_is_one_profile_on_stdout(
    worker: Callable[..., Said], stdin: Callable[[bytes], None]
) -> None:
    """From a pipe; talk is on stderr; without broker and store."""
    stdin(options())

    said = worker("run", "-", "--effort", "quick", *PLACES)

    assert (0, 1) == (said.code, said.out.count("\n"))
    profile = schema.decode(said.out.encode(), Profile)
    assert ("ok", "by-hand") == (profile.status, profile.run_id)
    assert len(profile.repeats) in (2, 3)  # one in place of a disturbed one, on a busy machine
    assert schema.decode(options(), schema.Job) == profile.job
    assert "repeat 1 of 2: load" == said.err.splitlines()[0]
    assert "repeat 2 of 2: memory" in said.err.splitlines()


@pytest.mark.parametrize(
    ("fail", "code", "words"),
    [
        ("raise", 1, "model_error in phase first: "),
        ("unsupported", 0, "unsupported in phase first: "),
        ("oom", 0, "oom in phase first: "),
    ],
)
def test_a_failure_is_a_profile_and_the_code_that_it_earns(
    worker: Callable[..., Said], tmp_path: Path, fail: str, code: int, words: str
) -> None:
    """An answer such as `oom` ends with 0."""
    (tmp_path / "job.json").write_bytes(options(fail=fail))

    said = worker("run", "job.json", "--effort", "quick", *PLACES)

    assert code == said.code
    assert "failed" == schema.decode(said.out.encode(), Profile).status
    assert words in said.err


def test_a_failed_job_has_a_profile_and_no_layers(
    worker: Callable[..., Said], tmp_path: Path
) -> None:
    """What was measured is printed before anything is asked of its layers."""
    (tmp_path / "job.json").write_bytes(options(fail="unsupported", fail_at="load"))

    said = worker("run", "job.json", *LAYERS, "layers.csv")

    assert (0, "failed") == (said.code, schema.decode(said.out.encode(), Profile).status)
    assert not (tmp_path / "layers.csv").exists()


def test_a_profile_can_go_into_a_file(worker: Callable[..., Said], tmp_path: Path) -> None:
    """Whole, and nothing on stdout; with --json nothing on stderr either."""
    (tmp_path / "job.json").write_bytes(options(fail="unsupported", fail_at="load"))
    words = ("run", "job.json", *PLACES, "-o", "profile.json")

    plain, quiet = worker(*words), worker(*words, "--json")

    assert (0, "", True) == (plain.code, plain.out, "profile written to" in plain.err)
    assert (0, "", "") == quiet
    assert schema.decode((tmp_path / "profile.json").read_bytes(), Profile).failure
    assert {"job.json", "profile.json", "state", "locks"} == {e.name for e in tmp_path.iterdir()}


# ── our own trouble ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def boom(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """A verb that raises what it is told."""

    def add(error: BaseException) -> None:
        @click.command()
        @click.option("--json", "as_json", is_flag=True)
        def verb(as_json: bool) -> None:
            raise error

        monkeypatch.setitem(cli.commands, "boom", verb)

    return add


def test_a_bug_of_ours_ends_with_70_and_says_so_last(
    worker: Callable[..., Said], boom: Callable[[BaseException], None], caplog: Any
) -> None:
    """The traceback is the report, in the agent's log; a program reads the last line."""
    boom(ZeroDivisionError("x"))

    plain, quiet = worker("boom"), worker("boom", "--json")

    assert (70, 70, "", "") == (plain.code, quiet.code, plain.out, quiet.out)
    assert "error: this is a bug in farm-worker: ZeroDivisionError" in plain.err
    assert 70 == json.loads(quiet.err.splitlines()[-1])["code"]
    assert "ZeroDivisionError" in caplog.text


def test_a_full_disk_is_no_bug_of_ours(
    worker: Callable[..., Said], boom: Callable[[BaseException], None]
) -> None:
    boom(OSError(errno.ENOSPC, "No space left on device", "/tmp/x"))

    plain, quiet = worker("boom"), worker("boom", "--json")

    assert (3, 3, "") == (plain.code, quiet.code, plain.out)
    assert plain.err.startswith("error: no space is left")
    assert "no space is left" == json.loads(quiet.err)["what"]


def test_ctrl_c_ends_with_130(
    worker: Callable[..., Said], boom: Callable[[BaseException], None]
) -> None:
    boom(KeyboardInterrupt())

    assert (130, "") == worker("boom")[:2]


def test_a_pipe_that_is_closed_ends_quietly_with_0(tmp_path: Path) -> None:
    """Whatever was still to be said."""
    for words in (["--help"], ["card", *PLACES], ["devices", *PLACES, "--json"]):
        read, write = os.pipe()
        os.close(read)
        said = subprocess.run(
            [FARM_WORKER, *words], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, text=True
        )
        os.close(write)

        assert (0, "") == (said.returncode, said.stderr), words
