"""`farm verify`: what it shows, and the code that says how it ended."""

import json

import msgspec
import numpy as np
import pytest

from farm import identity, npz, schema
from farm.schema import Artifact
from farm.store import blob_key
from tests.farm import make

Y = np.ones((2, 3), np.float32)


@pytest.fixture
def job(shelf, here):
    """The id of a job that kept its output; `ref.npz` and `other.npz` are right and wrong."""
    npz.save(here / "ref.npz", {"y": Y})
    npz.save(here / "other.npz", {"y": Y * 1.5})
    npz.save(here / "words.npz", {"y": np.array(["yes", "no"])})
    data = (here / "ref.npz").read_bytes()
    digest = identity.content_id(data)
    key = blob_key("output", digest, "npz")
    shelf.put_new(key, data, media_type="application/zip")
    kept = Artifact(key=key, sha256=digest, bytes=len(data), media_type="application/zip")
    document = msgspec.structs.replace(make.profile(), artifacts={"output": kept})
    make.put(shelf, document)
    return document.job_id


@pytest.mark.parametrize(
    ("flags", "code", "status"),
    [
        ((), 0, "PASS"),
        (("--reference", "ref.npz", "--max-p50-ms", "10"), 0, "PASS"),
        (("--reference", "other.npz"), 1, "FAIL"),
        (("--max-p50-ms", "9.9"), 1, "FAIL"),
    ],
)
def test_it_ends_with_1_where_a_check_fails(farm, job, flags, code, status):
    said = farm("verify", job, *flags)

    assert (code, "") == (said.code, said.err)
    assert said.out.splitlines()[0].endswith(f"   {status}")
    document = json.loads(farm("verify", job, *flags, "--json").out)
    assert ("farm.verified/v1", status) == (document["schema"], document["status"])


def test_it_ends_with_5_where_what_was_asked_for_cannot_be_told(farm, shelf, here):
    """A job whose output was too large to keep is not accurate for being quick."""
    npz.save(here / "ref.npz", {"y": Y})
    document = make.profile()
    make.put(shelf, document)

    said = farm("verify", document.job_id, "--reference", "ref.npz", "--max-p50-ms", "20")

    assert 5 == said.code
    assert said.out.splitlines()[0].endswith("   UNKNOWN")
    assert "– unknown" in next(line for line in said.out.splitlines() if "accuracy" in line)
    assert 5 == farm("verify", document.job_id, "--reference", "ref.npz", "--json").code
    assert 0 == farm("verify", document.job_id).code


@pytest.mark.parametrize("kind", sorted(schema.ANSWERS))
def test_it_ends_with_3_where_the_job_came_to_an_answer(farm, shelf, kind):
    document = make.profile(status="failed", failure=make.fault(kind))
    make.put(shelf, document)

    said = farm("verify", document.job_id)

    assert (3, "") == (said.code, said.err)
    assert f"{kind} in phase warmup: needed 91 of 80 GiB" in said.out
    assert 5 == farm("verify", document.job_id, "--max-p50-ms", "5").code


def test_a_reference_of_words_is_refused(farm, job):
    said = farm("verify", job, "--reference", "words.npz")

    assert (2, "") == (said.code, said.out)
    assert said.err.startswith("error: array 'y' of 'words.npz' holds no numbers\n")
