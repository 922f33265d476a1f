"""Completion as a shell asks for it: the real program, the real bash, and no word of complaint."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farm import published, tags
from farm.cli import cli, completing
from farm.settings import DEFAULTS
from farm.store import LocalStore, manifest_key
from tests.farm import make

FARM = Path(sys.executable).with_name("farm")
LABEL = "mlp/fp32/b1/cpu"


@pytest.fixture
def runs(shelf):
    """Two runs, a tag and a mark."""
    good = make.profile(run_id="r-aaa111")
    make.put(
        shelf,
        good,
        make.manifest([good.job], run_id="r-aaa111", submitted_at="2026-11-29T09:00:00Z"),
        make.manifest([good.job], run_id="r-bbb222", name="night", tags={"branch": "main"}),
    )
    tags.point(shelf, "base", "r-aaa111")
    return shelf


def offered(*words: str) -> list[str]:
    """What is offered for the last of these words."""
    shell = completing.Bash(cli, {}, "farm", "_FARM_COMPLETE")
    return [each.value for each in shell.get_completions([*words[:-1]], words[-1])]


def program(*words: str, **environ: str) -> list[str]:
    """The same, of the program as bash asks it: it ends with 0 and says nothing else."""
    asked = {
        "_FARM_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(["farm", *words]),
        "COMP_CWORD": str(len(words)),
    }
    said = subprocess.run(
        [FARM], env={**os.environ, **asked, **environ}, capture_output=True, text=True
    )
    assert (0, "") == (said.returncode, said.stderr)
    return [each.removeprefix("plain,") for each in said.stdout.splitlines() if each]


# ── what is offered ──────────────────────────────────────────────────────────────────────────────


def test_verbs_and_their_options_are_offered(here):
    assert list(cli.commands) == offered("")
    assert ["report", "resume", "retry", "run"] == sorted(offered("r"))
    assert ["list", "show", "get", "pull"] == offered("profiles", "")
    assert {"--where", "--since", "--sort", "--json"} <= {*offered("profiles", "list", "--")}
    assert ["failed", "invalid"] == sorted(
        {*offered("report", "--fail-on", "")} & {"failed", "invalid"}
    )


ALL = ["@last", "@last-good", "base", "night", "quickstart", "r-bbb222", "r-aaa111"]


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("", ALL),
        ("@", ["@last", "@last-good"]),
        ("@last-", ["@last-good"]),
        ("r-", ["r-bbb222", "r-aaa111"]),
        ("b", ["base", "branch=main"]),
        ("branch=", ["branch=main"]),
        ("zzz", []),
    ],
)
def test_a_run_is_offered_by_any_of_its_names(runs, word, words):
    """The newest first; a mark once there is a beginning of one."""
    assert words == offered("report", word)


@pytest.mark.parametrize(
    "words",
    [("tag", "new"), ("profiles", "show"), ("profiles", "get")],
)
def test_every_verb_that_takes_a_run_offers_them(runs, words):
    """Where a profile is meant, its label comes after the run."""
    slash = "/" * (words[0] == "profiles")

    assert [f"{each}{slash}" for each in ALL] == offered(*words, "")


@pytest.mark.parametrize(
    "words",
    [("status",), ("watch",), ("resume",), ("retry",), ("cancel",)],
)
def test_the_runs_that_are_measured_are_offered_too(runs, words):
    assert {*ALL} <= {*offered(*words, "")}


def test_a_profile_is_offered_by_the_labels_of_its_run_or_by_its_id(runs):
    (key,) = (each.key for each in runs.list("inbox/"))
    profile_id = key.split(".")[1]

    assert [f"base/{LABEL}"] == offered("profiles", "show", "base/")
    assert [f"@last/{LABEL}"] == offered("profiles", "get", "@last/m")
    assert [profile_id[:12]] == offered("profiles", "show", profile_id[:3])
    assert [profile_id[:20]] == offered("profiles", "show", profile_id[:20])


def test_a_value_is_offered_by_the_fields_of_the_profile(runs):
    """A metric is offered without looking at any."""
    known = offered("profiles", "get", f"base/{LABEL}", "memory.")

    assert "memory.cpu_pss_bytes" in known
    assert ["latency.p50"] == offered("profiles", "list", "--sort", "latency.p5")
    assert ["latency.p50"] == offered("profiles", "get", "abcdef", "latency.p5")


def test_settings_schemas_tags_and_shells_are_offered(runs):
    assert [*DEFAULTS, "schema"] == offered("config", "")
    assert list(published.things()) == offered("config", "schema", "")
    assert [] == offered("config", "store", "")
    assert ["base"] == offered("tag", "")
    assert ["bash"] == offered("completion", "b")


# ── where the store is, and where it is not ──────────────────────────────────────────────────────


def test_the_store_is_that_of_the_words_the_environment_or_the_files(
    runs, here, tmp_path, monkeypatch
):
    other = LocalStore(tmp_path / "other", fsync=False)
    make.put(other, make.manifest(run_id="r-ccc333"))
    (here / "one.toml").write_text(f"store = '{other.root}'")

    assert ["r-bbb222", "r-aaa111"] == offered("report", "r-")
    assert ["r-ccc333"] == offered("report", "--store", str(other.root), "r-")
    assert ["r-ccc333"] == offered("--config", "one.toml", "report", "r-")
    monkeypatch.setenv("FARM_STORE", str(other.root))
    assert ["r-ccc333"] == offered("report", "r-")


def test_the_program_answers_a_shell(runs):
    """With candidates and nothing else."""
    assert ALL == program("report", "")
    assert list(cli.commands) == program("")
    assert [] == program("nope", "x")
    assert [] == program("report", "--store", "s3://Bucket", "")
    assert [] == program("report", "", FARM_STORE="/dev/null")


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--store", "s3://Bucket", ""),
        ("report", "--store", "/dev/null", ""),
        ("report", "--store", "nowhere", ""),
        ("--config", "gone.toml", "report", ""),
        ("--config", "bad.toml", "tag", ""),
        ("profiles", "show", "nowhere/"),
        ("profiles", "get", "nowhere/x", ""),
        ("report", "--nope", ""),
    ],
)
def test_a_store_that_is_broken_has_no_candidates_and_no_complaint(here, words, capfd):
    (here / "bad.toml").write_text("[")

    assert [] == offered(*words)
    assert ("", "") == capfd.readouterr()


def test_a_damaged_document_hides_no_other_candidate(runs):
    for run_id, data in (("r-ccc333", b"{"), ("r-ddd444", b"[" * 100_000), ("r-eee555", b"\xff")):
        runs.put_new(manifest_key(run_id), data)
    runs.put_new("tags/odd.json", b"{}")

    assert ALL == offered("report", "")


def test_no_name_that_a_shell_would_read_as_more_than_a_word_is_offered(runs):
    """A manifest may come from anywhere, and a candidate is put on a command line as it stands."""
    for at, name in enumerate(("$(rm -rf x)", "a b", "a\nb", "`x`", "a;b", "'", "a\x1b[31m", "ä")):
        make.put(runs, make.manifest(run_id=f"r-ccc{at}", name=name))

    assert {"ä"} == {each for each in offered("report", "") if "r-ccc" not in each} - {*ALL}


class Slow:
    """A store that takes its time over each key."""

    def __init__(self, seconds):
        self.seconds = seconds

    def list(self, prefix):
        while True:
            time.sleep(self.seconds)
            yield type("Entry", (), {"key": prefix})


def test_a_listing_that_takes_too_long_is_cut(monkeypatch):
    """A person waits for the key that was pressed."""
    monkeypatch.setattr(completing, "_PATIENCE_S", 0.0)

    assert ["runs/v1/"] == list(completing._keys(Slow(0.001), "runs/v1/"))


# ── bash ─────────────────────────────────────────────────────────────────────────────────────────


def completed(line: str) -> list[str]:
    """What bash puts in place of the last piece of the line, by our script, in a real bash."""
    script = subprocess.run([FARM, "completion", "bash"], capture_output=True, text=True).stdout
    ask = f"""
        {script}
        PATH={FARM.parent}:$PATH
        COMP_LINE=$1 COMP_POINT=${{#1}} COMP_WORDS=() COMP_CWORD=0
        _farm_completion farm
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(
        ["bash", "--norc", "-c", ask, "bash", line], capture_output=True, text=True
    )
    assert (0, "") == (said.returncode, said.stderr)
    return [each for each in said.stdout.splitlines() if each]


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("farm stat", ["status"]),
        ("farm report @last-", ["@last-good"]),
        ("farm report r-a", ["r-aaa111"]),
        ("farm  report   r-a", ["r-aaa111"]),
        ("farm report branch=", ["main"]),
        ("farm report bran", ["branch=main"]),
        ("farm report --store '.farm/store' ni", ["night"]),
        ("farm profiles show base/m", [f"base/{LABEL}"]),
        ("farm report zzz", []),
        ("farm report -o x", []),
        ("farm plan -S precision=bf", ["bf16"]),
        ("farm plan -S measure.compat=y", ["yasp"]),
        ("farm profile cost zoo:ml", ["mlp"]),
    ],
)
def test_bash_completes_words_with_at_signs_and_equal_signs(runs, line, pieces):
    """It cuts a word at `=` itself and replaces the last piece alone; `@` stays in the word."""
    assert pieces == completed(line)


def test_the_script_is_known_to_bash_as_the_completion_of_farm(here):
    script = subprocess.run([FARM, "completion", "bash"], capture_output=True, text=True).stdout

    said = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p farm"], capture_output=True, text=True
    )

    assert (0, "") == (said.returncode, said.stderr)
    assert "complete -o nosort -F _farm_completion farm\n" == said.stdout
