"""Ids: equal things have equal ones, in every process and spelling, and one change changes what it
must and nothing else."""

import json
import subprocess
import sys
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import identity
from farm.errors import NoResult, Refused
from farm.schema import Job, Model
from tests.farm import make

LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
PLAIN = st.recursive(
    LEAF,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def ids(job: Job) -> dict[str, str]:
    return {
        name: getattr(job, name) for name in ("cell_id", "workload_id", "protocol_id", "job_id")
    }


def changed(job: Job, path: str, value: object) -> Job:
    """The job with one field set."""
    plain = msgspec.to_builtins(job)
    *parents, last = path.split(".")
    inside = plain
    for each in parents:
        inside = inside[each]
    inside[last] = value
    return msgspec.convert(plain, Job)


@given(PLAIN)
def test_the_order_of_keys_does_not_count(value: object) -> None:
    """A document and the same one with its keys turned round are one thing."""

    def turned(each: object) -> object:
        if isinstance(each, dict):
            return {key: turned(each[key]) for key in reversed(list(each))}
        return [turned(one) for one in each] if isinstance(each, list) else each

    assert identity.canonical(value) == identity.canonical(turned(value))


@given(PLAIN)
def test_the_canonical_form_is_json_of_the_same_value(value: object) -> None:
    """Nothing is lost on the way into an id but the form of Unicode."""
    normal = json.loads(unicodedata.normalize("NFC", json.dumps(value, ensure_ascii=False)))

    assert normal == json.loads(identity.canonical(value))


def test_two_spellings_of_a_letter_are_one() -> None:
    """A composed and a decomposed é give one id."""
    assert identity.short_hash({"name": "caf\u00e9"}) == identity.short_hash({"name": "cafe\u0301"})


@pytest.mark.parametrize("value", [1.5, float("nan"), {"a": [0.0]}, {1: 2}, {"a": object()}])
def test_what_has_several_spellings_is_refused(value: object) -> None:
    """Floats, foreign objects and keys that are no text are in no id."""
    with pytest.raises(Refused):
        identity.canonical(value)


def test_ids_are_the_same_in_every_process() -> None:
    """No hash seed, no order of sets, no address gets into an id."""
    code = (
        "from tests.farm import make; j = make.job(); "
        "print(j.cell_id, j.workload_id, j.protocol_id, j.job_id)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "77")
    }

    assert {" ".join(ids(make.job()).values())} == said


@pytest.mark.parametrize(
    ("path", "value", "moved"),
    [
        ("workload.model.name", "other", {"cell_id", "workload_id", "job_id"}),
        ("workload.model.digest", "f" * 64, {"workload_id", "job_id"}),
        ("workload.model.ref", "elsewhere:build", {"workload_id", "job_id"}),
        ("workload.inputs.seed", 1, {"cell_id", "workload_id", "job_id"}),
        ("workload.inputs.digest", "e" * 64, {"workload_id", "job_id"}),
        ("workload.inputs.spec.x.shape", ["batch", 65], {"cell_id", "workload_id", "job_id"}),
        ("workload.precision", "bf16", {"cell_id", "workload_id", "job_id"}),
        ("workload.batch", 2, {"cell_id", "workload_id", "job_id"}),
        ("workload.backend", "fake", {"cell_id", "workload_id", "job_id"}),
        ("workload.backend_options", {"a": 1}, {"cell_id", "workload_id", "job_id"}),
        ("protocol.warmup", 5, {"protocol_id", "job_id"}),
        ("protocol.gc", "on", {"protocol_id", "job_id"}),
        ("protocol.denormals", "flush", {"protocol_id", "job_id"}),
        ("selector.value", "epyc_1c", {"job_id"}),
        ("selector.environment", "torch-29", {"job_id"}),
    ],
)
def test_one_changed_field_changes_exactly_the_ids_it_must(
    path: str, value: object, moved: set[str]
) -> None:
    """Content digests move reuse and not history; how it is measured moves the protocol alone."""
    before, after = ids(make.job()), ids(changed(make.job(), path, value))

    assert moved == {name for name in before if before[name] != after[name]}


def test_a_new_content_continues_the_same_cell() -> None:
    """Rule 2: a model under one name with other bytes is the same cell, measured anew."""
    one, two = make.job(), make.job()
    model = msgspec.structs.replace(two.workload.model, digest="a" * 64)
    assert isinstance(model, Model)
    two = msgspec.structs.replace(two, workload=msgspec.structs.replace(two.workload, model=model))

    assert one.cell_id == two.cell_id
    assert one.workload_id != two.workload_id


def test_memory_that_differs_by_pages_is_one_system() -> None:
    """Sizes are rounded to whole GiB: MemTotal moves with the kernel."""
    stable = {"memory_bytes": 25_276_514_304, "cpu": {"l3_bytes": 33_554_432}}

    same = {"memory_bytes": 25_276_514_304 + 40_960, "cpu": {"l3_bytes": 33_554_432}}
    more = {"memory_bytes": 2 * 25_276_514_304, "cpu": {"l3_bytes": 33_554_432}}
    cache = {"memory_bytes": 25_276_514_304, "cpu": {"l3_bytes": 2 * 33_554_432}}

    assert identity.system_id(stable) == identity.system_id(same)
    assert 3 == len({identity.system_id(each) for each in (stable, more, cache)})


def test_a_beginning_names_one_or_asks_which() -> None:
    """A unique prefix is enough, a whole id wins, several are listed, none is said."""
    known = ["abc1", "abc2", "abd", "ab"]

    assert "abd" == identity.match("abd", known, thing="run")
    assert "ab" == identity.match("ab", known, thing="run")
    with pytest.raises(Refused, match="'abc' is ambiguous"):
        identity.match("abc", known, thing="run")
    with pytest.raises(NoResult, match="no run starts with 'x'"):
        identity.match("x", known, thing="run")
