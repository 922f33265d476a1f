"""Profiles in a folder: the bytes of the store, nothing overwritten, nothing half written."""

import re

import msgspec
import pytest

from farm import identity, profiles, schema
from farm.errors import Bad, NoResult, Refused
from farm.schema import Artifact
from farm.store import LocalStore, blob_key
from farm.store.content import landing
from tests.farm import make


def with_artifacts(store, document, **kinds):
    """The profile with these bytes as its artefacts, which the store holds."""
    artifacts = {}
    for kind, data in kinds.items():
        digest = identity.content_id(data)
        key = blob_key(kind, digest, "txt.gz" if kind == "log" else "npz")
        store.put_new(key, data)
        artifacts[kind] = Artifact(key=key, sha256=digest, bytes=len(data), media_type="x/y")
    return msgspec.structs.replace(document, artifacts=artifacts)


@pytest.fixture
def shelf(store):
    first = with_artifacts(store, make.profile(), log=b"a log", samples=b"PK 1")
    second = with_artifacts(store, make.profile(make.job(batch=8)), log=b"another log")
    make.put(store, first, second)
    return store


def rows(store):
    return profiles.listed(store, (), since=None, all_attempts=True, now=None).rows


def pull(store, folder, *kinds, force=False):
    return profiles.pull(store, rows(store), folder, kinds=kinds, force=force)


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def test_a_profile_is_one_file_that_is_named_by_label_and_id(shelf, tmp_path):
    """Byte for byte as it is stored, so that its id is the hash of the file."""
    found = pull(shelf, tmp_path / "new" / "out")

    assert (2, 0, 0, []) == found
    for row in rows(shelf):
        batch = row.profile.job.workload.batch
        data = (tmp_path / f"new/out/mlp-fp32-b{batch}-cpu-{row.profile_id[:12]}.json").read_bytes()
        assert row.profile_id == identity.content_id(data)
        assert row.profile == schema.decode(data, schema.Profile)


def test_artefacts_of_the_kinds_asked_for_come_along(shelf, tmp_path):
    """A profile without one is no error."""
    found = pull(shelf, tmp_path / "out", "samples", "log")

    assert (2, 3, 0, []) == found
    endings = sorted(each.partition(".")[2] for each in names(tmp_path / "out"))
    assert ["json", "json", "log.txt.gz", "log.txt.gz", "samples.npz"] == endings
    (samples,) = (tmp_path / "out").glob("*.samples.npz")
    assert b"PK 1" == samples.read_bytes()
    assert (tmp_path / "out" / f"{samples.name.partition('.')[0]}.json").exists()


def test_what_is_there_is_kept_unless_it_is_forced(shelf, tmp_path):
    """A file that somebody edited too."""
    pull(shelf, tmp_path)
    path = next(tmp_path.glob("mlp*.json"))
    path.write_text("mine")

    assert (0, 2, 2, []) == pull(shelf, tmp_path, "log")
    assert "mine" == path.read_text()
    assert (2, 2, 0, []) == pull(shelf, tmp_path, "log", force=True)
    assert "mine" != path.read_text()


class Interrupted(LocalStore):
    """A store whose owner presses Ctrl-C at the n-th object that is copied out."""

    def __init__(self, root, left):
        super().__init__(root, fsync=False)
        self.left = left

    def get(self, key, *, to=None, sha256=None):
        self.left -= 1
        if self.left == 0:
            with landing(to) as out:  # where the copy is made
                out.write(b"half of")
                raise KeyboardInterrupt
        return super().get(key, to=to, sha256=sha256)


def test_an_interrupted_pull_is_completed_by_the_same_words(shelf, tmp_path):
    """No half file is left, and none is fetched twice."""
    found, store = rows(shelf), Interrupted(shelf.root, 2)
    with pytest.raises(KeyboardInterrupt):
        profiles.pull(store, found, tmp_path / "out", kinds=["log"], force=False)

    assert 1 == len(names(tmp_path / "out"))
    assert (1, 2, 1, []) == pull(shelf, tmp_path / "out", "log")
    assert 4 == len(names(tmp_path / "out"))


def test_a_damaged_or_missing_object_stops_none_of_the_others(shelf, tmp_path):
    for path in (shelf.root / "blobs").rglob("*.txt.gz"):
        path.unlink()
    (samples,) = (shelf.root / "blobs").rglob("*.npz")
    samples.write_bytes(b"no")

    found = pull(shelf, tmp_path / "out", "samples", "log")

    assert (2, 0, 0) == found[:3]
    assert [Bad, NoResult, NoResult] == sorted(
        (Bad if isinstance(each, Bad) else NoResult for each in found.damaged),
        key=lambda kind: kind.__name__,
    )
    assert 2 == len(names(tmp_path / "out"))


def test_no_name_of_a_model_leads_out_of_the_folder(store, tmp_path):
    """Whatever it holds; two that become equal are told apart by their ids."""
    hostile = ["../../etc/x", "..", "a b;rm -rf /", "ä\n\x1b[31m", "x" * 300]
    make.put(store, *(make.profile(make.job(each, ref="m:f")) for each in hostile))

    pull(store, tmp_path / "out")

    found = names(tmp_path / "out")
    assert len(hostile) == len(found)
    for each in found:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{12}\.json", each)
        assert len(each) < 130
    assert ["out", "store"] == names(tmp_path)


def test_an_unknown_kind_is_refused_before_anything_is_written(shelf, tmp_path):
    with pytest.raises(Refused) as caught:
        pull(shelf, tmp_path / "out", "log", "smaples")

    assert ("unknown kind of artefact 'smaples'", "did you mean `samples`?") == (
        caught.value.what,
        caught.value.hint,
    )
    assert not (tmp_path / "out").exists()


def test_a_kind_that_every_farm_knows_is_no_slip_where_no_profile_has_it(store, tmp_path):
    make.put(store, make.profile())

    assert (1, 0, 0, []) == pull(store, tmp_path / "out", "samples")
