"""Profiles from the command line: the order of a list, a folder of them."""

import json

import pytest

from farm import schema
from tests.farm import make


@pytest.fixture(autouse=True)
def profiles(shelf):
    """A slow one, a fast one, and one that failed."""
    slow, fast = make.profile(p50_ms=30.0), make.profile(make.job(batch=8), p50_ms=2.0)
    make.put(shelf, slow, fast, make.profile(make.job("cnn"), status="failed"))


def lines(said):
    return [json.loads(each) for each in said.out.splitlines()]


def test_a_sorted_list_is_cut_after_it_is_sorted(farm):
    """The fastest of all, not of the newest ones."""
    said = farm("profiles", "list", "--sort", "latency.p50", "--limit", "2", "--json")

    assert [2.0, 30.0] == [each["p50_ms"] for each in lines(said)]
    said = farm("profiles", "list", "--sort", "throughput", "--json")
    assert ["mlp", "mlp", "cnn"] == [each["model"] for each in lines(said)]
    assert ["ok", "ok", "failed"] == [each["status"] for each in lines(said)]


def test_a_value_is_told_with_the_reason_of_its_null(farm):
    (slow,) = lines(farm("profiles", "list", "-w", "model=mlp", "-w", "batch=1", "--json"))

    for field, value, why in (
        ("memory.cpu_pss_bytes", None, "no_permission"),
        ("latency.p50", 30.0, ""),
    ):
        said = farm("profiles", "get", slow["profile_id"], field, "--json")
        assert {
            "schema": "farm.value/v1",
            "field": field,
            "value": value,
            "why": why,
        } == json.loads(said.out)


def test_a_pull_says_how_many_and_where(farm, here):
    said = farm("profiles", "pull", "-w", "model=mlp", "-o", "out/mlp")

    assert (0, "", "2 profiles into out/mlp\n") == said
    found = sorted((here / "out/mlp").iterdir())
    assert ["mlp-fp32-b1-cpu", "mlp-fp32-b8-cpu"] == [each.name[:15] for each in found]
    assert "mlp" == schema.decode(found[0].read_bytes(), schema.Profile).job.workload.model.name


def test_a_second_pull_takes_what_is_new_and_says_what_it_kept(farm):
    farm("profiles", "pull", "-w", "model=mlp", "-o", "out")

    said = farm("profiles", "pull", "-o", "out", "--artifacts", "log")
    told = farm("profiles", "pull", "-o", "out", "--force", "--json")

    assert (
        "1 profile and 0 artefacts into out; 2 files kept, --force writes them anew\n" == said.err
    )
    assert {
        "schema": "farm.pulled/v1",
        "folder": "out",
        "profiles": 3,
        "artifacts": 0,
        "kept": 0,
        "damaged": 0,
    } == json.loads(told.out)
    assert (0, "") == (told.code, told.err)


def test_a_pull_of_damage_warns_and_is_a_bad_answer(farm, shelf):
    """The others are there all the same."""
    document = make.profile(make.job("lstm"))
    digest = "0" * 64
    artifact = schema.Artifact(
        key=f"blobs/v1/log/00/{digest}.txt.gz", sha256=digest, bytes=1, media_type="x/y"
    )
    make.put(shelf, schema.Profile(**fields(document), artifacts={"log": artifact}))

    said = farm("profiles", "pull", "-o", "out", "--artifacts", "log")

    assert (1, "") == (said.code, said.out)
    assert said.err.startswith(f"warning: blobs/v1/log/00/{digest}.txt.gz is not in the store")
    assert said.err.endswith("4 profiles and 0 artefacts into out\n")


def fields(document):
    return {
        name: getattr(document, name) for name in document.__struct_fields__ if name != "artifacts"
    }


def test_what_cannot_be_read_is_told_beside_what_is_pulled(farm, shelf):
    (path, *_) = sorted((shelf.root / "inbox").rglob("*.json"))
    path.write_bytes(path.read_bytes() + b" ")

    said = farm("profiles", "pull", "-o", "out")

    assert (0, True) == (said.code, said.err.startswith("warning: unreadable: inbox/v1/"))
    assert said.err.endswith("2 profiles into out\n")
