"""What is offered where a model, a device, a file or a setting of a sweep stands."""

import click
import pytest

from farm import hardware, models, presets
from farm.cli import candidates, cli, completing
from farm.schema import PRECISIONS
from farm.sweep import axes, measuring
from farm.trace.analysis import kernels

CODE = "import os\n\nLIMIT = 3\n\n\ndef build(): ...\n\n\ndef _own(): ...\n\n\nclass Net: ...\n"


def offered(*words: str) -> list[str]:
    """What is offered for the last of these words."""
    shell = completing.Bash(cli, {}, "farm", "_FARM_COMPLETE")
    return [each.value for each in shell.get_completions([*words[:-1]], words[-1])]


@pytest.fixture
def there(here):
    names = ("a.yaml", "b.yml", "c.txt", "night/d.yaml", ".hidden/e.yaml", "odd name.yaml")
    for name in (*names, "in.npz", "net.onnx", "layers.csv", "trt.json", "syntax.py", "a.json.gz"):
        path = here / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("def (")
    (here / "net.py").write_text(CODE)
    return here


FOLDERS = ["night/"]


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_yaml_files_and_the_folders_on_the_way_are_offered(there):
    """Of the folder that the word names; no name that a shell would read as two words."""

    def found(word):
        return completing_of(candidates.yaml_file, word)

    assert ["a.yaml", "b.yml", "night/"] == found("")
    assert ["night/d.yaml"] == found("night/")
    assert [".hidden/"] == found(".h")
    assert [f"{there}/a.yaml"] == found(f"{there}/a")
    assert [] == found("nowhere/")


def completing_of(completer, word):
    return completer(click.Context(cli), cli.params[0], word)


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("plan",),
        ("submit",),
        ("run", "b.yml"),
        ("aggregate", "--roster"),
    ],
)
def test_every_verb_that_takes_a_yaml_file_offers_them(there, words):
    assert ["a.yaml"] == offered(*words, "a")


@pytest.mark.parametrize(
    "words",
    [
        ("profile", "callable", "--inputs"),
        ("profile", "layers", "--input"),
        ("profile", "cost", "--input"),
        ("verify", "--reference"),
    ],
)
def test_arrays_are_offered_where_arrays_are_read(there, words):
    assert ["in.npz", *FOLDERS] == offered(*words, "")


def test_layer_tables_are_offered_where_they_are_read_or_appended_to(there):
    assert ["layers.csv", *FOLDERS] == offered("profile", "layers", "--profile-output", "")


def test_whatever_can_be_compared_is_offered_on_both_sides(there):
    """Traces, plain or packed, layer tables, callable JSONs."""
    for words in (("profile", "compare"), ("profile", "compare", "trt.json")):
        assert ["a.json.gz", "layers.csv", *FOLDERS, "trt.json"] == offered(*words, "")


READING = ("summary", "get", "phases", "kernels", "ops", "what-if")


@pytest.mark.parametrize("verb", READING)
def test_traces_are_offered_where_they_are_read(there, verb):
    """Plain or packed."""
    assert ["a.json.gz", *FOLDERS, "trt.json"] == offered("profile", verb, "")


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def test_a_model_is_a_name_of_the_zoo_a_graph_or_what_a_file_defines(there):
    files = ["net.onnx", "net.py:", *FOLDERS, "syntax.py:"]

    assert [*models.zoo(), *files] == offered("profile", "cost", "")
    assert ["zoo:mlp"] == offered("profile", "cost", "zoo:ml")
    assert ["net.py:build", "net.py:Net"] == offered("profile", "cost", "net.py:")
    assert ["net.py:build"] == offered("profile", "layers", "net.py:b")


def test_a_layer_profile_may_stand_for_a_model(there):
    assert {"layers.csv", "trt.json", "mlp"} <= {*offered("profile", "layers", "")}
    assert not {"layers.csv", "trt.json"} & {*offered("profile", "cost", "")}


def test_a_function_is_never_a_name_of_the_zoo(there):
    assert ["net.py:", *FOLDERS, "syntax.py:"] == offered("profile", "callable", "--model", "")
    assert ["net.py:build", "net.py:Net"] == offered("profile", "callable", "--model", "net.py:")


@pytest.mark.parametrize("word", ["syntax.py:", "gone.py:", "night/gone.py:b"])
def test_a_file_that_cannot_be_read_offers_nothing_and_complains_of_nothing(there, word, capfd):
    assert [] == offered("profile", "cost", word)
    assert ("", "") == capfd.readouterr()


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def test_the_devices_whose_peaks_are_known_are_offered_in_any_case(here):
    assert ["all", *hardware.table()] == offered("profile", "cost", "--spec", "")
    assert ["H100-PCIe", "H100-SXM", "H100-NVL"] == offered("profile", "cost", "--spec", "H100")
    assert ["h100-PCIe", "h100-SXM", "h100-NVL"] == offered("profile", "cost", "--spec", "h100")


def test_a_device_is_offered_by_its_kind(here):
    for verb in ("callable", "layers"):
        assert ["cpu", "cuda"] == offered("profile", verb, "--device", "")


def test_a_category_of_kernels_is_offered_by_its_name(here):
    for words in (("kernels", "t", "--category"), ("what-if", "t", "--remove-category")):
        assert [*kernels.categories()] == offered("profile", *words, "")
        assert ["embedding", "elementwise"] == sorted(offered("profile", *words, "e"), reverse=True)


def test_the_usual_phases_of_a_step_are_offered(here):
    for verb in ("kernels", "ops"):
        assert ["unphased", "unattributed"] == offered("profile", verb, "t", "--phase", "un")
        assert ["forward"] == offered("profile", verb, "t", "--phase", "f")


@pytest.mark.parametrize("verb", ["run", "plan", "submit"])
def test_a_setting_is_offered_by_its_key_and_then_by_its_words(here, verb):
    keys = [f"{each}=" for each in axes.FIXED] + [f"measure.{each}=" for each in measuring.KEYS]

    assert keys == offered(verb, "-S", "")
    assert [f"measure.compat={each}" for each in presets.NAMES] == offered(
        verb, "-S", "measure.compat="
    )
    assert [f"precision={each}" for each in PRECISIONS] == offered(verb, "--set", "precision=")
    assert ["model=mlp"] == offered(verb, "-S", "model=ml")
    assert [] == offered(verb, "-S", "batch=")
