"""Settings, schemas and shells from the command line."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from farm import published

FARM = Path(sys.executable).with_name("farm")
SHELLS = {"bash": "complete ", "zsh": "#compdef farm", "fish": "complete --no-files"}


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def settled(here, monkeypatch):
    """A store from the environment, a broker with a password and an effort from two files."""
    monkeypatch.setenv("FARM_STORE", "/mnt/store")
    (here / "farm.toml").write_text("broker = 'redis://me:s3cret@host/0'\n")
    (here / "one.toml").write_text("effort = 'quick'\n")
    return here


def rows(said):
    return [re.split(r"\s{2,}", each.strip()) for each in said.out.splitlines()]


def test_every_setting_is_shown_with_its_origin_and_without_its_password(farm, settled):
    said = farm("config")

    assert [
        ["setting", "value", "origin"],
        ["store", "/mnt/store", "FARM_STORE"],
        ["endpoint_url", "–", "default"],
        ["path_style", "auto", "default"],
        ["sse", "none", "default"],
        ["broker", "redis://me:***@host/0", str(settled / "farm.toml")],
        ["state", ".farm", "default"],
        ["effort", "standard", "default"],
    ] == rows(said)
    assert (0, "") == (said.code, said.err)


def test_a_named_file_is_the_origin_of_what_it_sets(farm, settled):
    """And of no other key; without a broker, the embedded one is meant."""
    said = farm("--config", "one.toml", "config")

    assert ["effort", "quick", "--config one.toml"] == rows(said)[7]
    assert ["broker –: the embedded one"] == rows(said)[-1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("store", "/mnt/store"),
        ("broker", "redis://me:***@host/0"),
        ("effort", "standard"),
    ],
)
def test_one_setting_is_printed_bare(farm, settled, key, value):
    assert (0, f"{value}\n", "") == farm("config", key)


def test_with_json_settings_are_one_document(farm, settled):
    """The files are those that are read."""
    said = json.loads(farm("config", "--json").out)

    jsonschema.validate(said, published.json_schema("config"))
    keys = ["store", "endpoint_url", "path_style", "sse", "broker", "state", "effort"]
    assert keys == [each["key"] for each in said["settings"]]
    assert [str(settled / "farm.toml")] == said["files"]
    assert "s3cret" not in json.dumps(said)
    one = json.loads(farm("config", "store", "--json").out)
    assert [{"key": "store", "value": "/mnt/store", "origin": "FARM_STORE"}] == one["settings"]


def test_the_files_are_listed_the_strongest_first(farm, settled):
    """Also where one of them cannot be used: this is how one finds it."""
    (settled / "farm.toml").write_text("stoer = 1")

    said = farm("config", "--path")

    assert (0, "") == (said.code, said.err)
    assert [
        ["file", "state"],
        [str(settled / "farm.toml"), "read"],
        [str(settled / "pyproject.toml"), "not there"],
        [str(Path(os.environ["HOME"]) / ".config/farm/farm.toml"), "not there"],
    ] == rows(said)
    assert 2 == farm("config").code


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────


def test_the_kinds_of_documents_are_listed(farm):
    assert list(published.things()) == farm("config", "schema").out.splitlines()
    told = json.loads(farm("config", "schema", "--json").out)
    assert {"schema": "farm.schemas/v1", "things": list(published.things())} == told


def test_a_schema_is_printed_to_be_read_or_as_one_line(farm):
    said, line = farm("config", "schema", "profile"), farm("config", "schema", "profile", "--json")

    assert (0, "", 0, "") == (said.code, said.err, line.code, line.err)
    assert published.json_schema("profile") == json.loads(said.out) == json.loads(line.out)
    assert said.out.startswith('{\n  "$schema": "https://json-schema.org/draft/2020-12/schema",\n')
    assert 1 == line.out.count("\n")


# ── shells ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_all_that_is_on_stdout_and_a_start_file_hears_no_talk(farm, shell):
    said, told = farm("completion", shell), farm("completion", shell, "--json")

    assert (0, "") == (said.code, said.err)
    assert SHELLS[shell] in said.out
    assert "_FARM_COMPLETE=" in said.out
    assert {"schema": "farm.completion/v1", "shell": shell, "script": said.out} == json.loads(
        told.out
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_person_is_told_where_the_script_belongs(here, shell):
    """Somebody who sees the script on the screen, and nobody else."""
    master, terminal = pty.openpty()
    with os.fdopen(master, "rb"):
        said = subprocess.run(
            [FARM, "completion", shell], stdout=terminal, stderr=subprocess.PIPE, text=True
        )
        os.close(terminal)

    place = {"bash": "completions/farm", "zsh": "~/.zfunc/_farm", "fish": "completions/farm.fish"}
    assert 0 == said.returncode
    assert said.stderr.startswith(f"next: farm completion {shell} > ~/")
    assert said.stderr.splitlines()[0].endswith(place[shell])
