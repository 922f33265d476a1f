"""The catalogue kept from the command line: what was done, what is damaged, what to do next."""

import json

import pytest
from msgspec.structs import replace

from tests.farm import make


@pytest.fixture(autouse=True)
def profiles(shelf, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shelf.probe()
    (card,) = make.put(shelf, make.card())
    for batch in (1, 8):
        make.put(shelf, replace(make.profile(make.job(batch=batch)), card_id=card))


def parts(shelf):
    return sorted(shelf.root.glob("tables/profiles/v1/month=*/*.parquet"))


def test_a_compaction_says_what_it_took_and_a_second_one_that_there_is_nothing(farm):
    assert (0, "", "catalogue 1: 2 profiles in 1 new part\n") == farm("store", "compact")
    assert (0, "", "catalogue 1: nothing new\n") == farm("store", "compact")


def test_an_empty_store_is_compacted_to_nothing(farm, tmp_path):
    said = farm("store", "compact", "--store", str(tmp_path / "empty"))

    assert (0, "", "catalogue 0: nothing new\n") == said


def test_what_is_no_profile_is_counted_and_named_by_a_check(farm, shelf):
    (shelf.root / "inbox/v1/date=2026-11-30/x.json").write_text("{")

    said = farm("store", "compact", "--every-day")
    checked = farm("store", "check")

    assert "1 object of the inbox cannot be read" in said.err
    assert "inbox/v1/date=2026-11-30/x.json: no farm gave this name" in checked.out


def test_a_whole_store_checks_well(farm):
    farm("store", "compact")

    said = farm("store", "check", "--deep")

    assert (0, "") == (said.code, said.err)
    assert "catalogue 1: 2 profiles in 1 part; no damage found" == said.out.splitlines()[-1]


@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_a_damaged_part_is_found_and_a_rebuild_cures_it(farm, shelf, how):
    farm("store", "compact")
    (part,) = parts(shelf)
    data = part.read_bytes()
    part.unlink()
    if how != "gone":
        part.write_bytes(data[:-9] if how == "cut" else data[:-9] + b"x" + data[-8:])

    said = farm("store", "check", "--deep")
    assert 1 == said.code
    assert f"tables/profiles/v1/{part.parent.name}/{part.name}: " in said.out
    assert "next: farm store rebuild" in said.err

    assert 0 == farm("store", "rebuild").code
    healed = farm("store", "check")
    assert (0, True) == (healed.code, "2 profiles in 1 part" in healed.out)
    answer = farm("query", "SELECT count(*) AS n FROM profiles", "--format", "csv")
    assert (0, "n\n2\n") == (answer.code, answer.out)


def test_a_check_tells_a_program_the_same(farm, shelf):
    farm("store", "compact")
    (part,) = parts(shelf)
    part.unlink()

    said = farm("store", "check", "--json")

    told = json.loads(said.out)
    assert (1, 2, 1) == (said.code, told["profiles"], told["parts"])
    assert [part.name] == [each["key"].rpartition("/")[2] for each in told["problems"]]
    assert "audited" not in told
    assert 2 == json.loads(farm("store", "check", "--deep", "--json").out)["audited"]["objects"]
