"""What an attempt leaves is packed under its digests, the profile last, equal as equal bytes."""

import dataclasses
import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from farm import identity, schema
from farm.schema import Captured, Failure, Profile, Traced
from farm.store import card_key
from tests.workers import make
from tests.workers.scripted import TRACED, Child, order
from tests.workers.test_station import Bench
from workers.launch import Ended
from workers.packing import artifacts, pack
from workers.record import OUTPUT, TRACE, Assignment


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, None)
    yield made
    made.close()


def packed(bench: Bench, profile: Profile) -> tuple[schema.Struct, list[bytes]]:
    return pack(
        profile,
        bench.folder,
        card=make.card(),
        entry="a.base",
        fence="17",
        effort="e",
        today="2026-11-30",
    )


def test_a_parcel_has_artefacts_and_card_before_the_profile_that_names_them(bench: Bench) -> None:
    page, contents = packed(bench, bench.measure(Child()))

    *others, card, profile = page.goods
    assert [hashlib.sha256(each).hexdigest() for each in contents] == [
        each.sha256 for each in page.goods
    ]
    named = schema.decode(contents[-1], Profile)
    assert {each.key for each in others} == {each.key for each in named.artifacts.values()}
    assert card_key(identity.content_id(contents[-2])) == card.key
    assert ("", "a.base", "DONE", "ok") == (profile.key, page.entry, page.end, page.cause)
    assert page.sent_as.startswith("inbox/v1/date=2026-11-30/")
    assert profile.sha256 in page.sent_as


@pytest.mark.parametrize(
    ("status", "entry", "end"), [("failed", "a.base", "FAILED"), ("infra", "", "DONE")]
)
def test_an_attempt_that_broke_is_packed_as_what_it_is(
    bench: Bench, status: str, entry: str, end: str
) -> None:
    """A failure of the job ends its entry; trouble of ours is evidence that none waits for."""
    fault = Failure(kind="oom", phase="load", message="no", hint="", retryable=False)
    broken = replace(bench.measure(Child()), status=status, failure=fault)

    page, _ = packed(bench, broken)

    assert (entry, end, "oom") == (page.entry, page.end, page.cause)


def test_samples_and_log_are_kept_under_their_digests(bench: Bench) -> None:
    """Every repeat's arrays in one file, every child's words in another; both compressed."""
    bench.measure(Child(), order(repeats=2))

    found = {kind: (goods, data) for kind, goods, data in artifacts(bench.folder)}

    assert {"samples", "log"} == set(found)
    for goods, data in found.values():
        digest = hashlib.sha256(data).hexdigest()
        assert (digest, len(data), True) == (goods.sha256, goods.bytes, digest in goods.key)
    with np.load(io.BytesIO(found["samples"][1])) as arrays:
        assert {"latency_ns_0", "latency_ns_1"} <= set(arrays.files)
    log = gzip.decompress(found["log"][1]).decode()
    assert 2 == log.count("hello from the model")


def test_the_output_is_of_a_repeat_that_ended_well(bench: Bench) -> None:
    """The first one died and was taken anew; what it wrote before is nobody's answer."""
    child = Child("crashed", during=lambda i: keep(bench.folder / f"repeat-{i}", i))
    bench.measure(child, order(repeats=1))

    found = {kind: data for kind, _, data in artifacts(bench.folder)}

    assert b"output 1" == found["output"]


def keep(folder: Path, index: int) -> None:
    (folder / OUTPUT).write_text(f"output {index}")


def test_what_more_than_ten_repeats_printed_is_in_their_order(tmp_path: Path) -> None:
    for index in range(12):
        (tmp_path / f"repeat-{index}").mkdir()
        (tmp_path / f"repeat-{index}/output.log").write_text(f"{index}")

    log = gzip.decompress(artifacts(tmp_path)[0][2]).decode()

    assert [f"── repeat-{index} ──" for index in range(12)] == log.splitlines()[::2]


def test_an_attempt_that_left_nothing_has_no_artefacts(tmp_path: Path) -> None:
    assert [] == artifacts(tmp_path)


TRACING = make.order(1, layers=False, flops=False, trace=True)


class Broke(Child):
    """Its trace was written, and what was timed beside it broke."""

    def __call__(self, assignment: Assignment, **how: Any) -> Ended:
        ended = super().__call__(assignment, **how)
        if not assignment.instruments or ended.record is None:
            return ended
        reasons = {"trace": "phase_failed: RuntimeError: no"}
        return dataclasses.replace(ended, record=replace(ended.record, trace=None, reasons=reasons))


@pytest.mark.seed("S4.46")
def test_a_trace_is_packed_with_what_was_found_beside_it(bench: Bench) -> None:
    """Each under its digest, and the profile names both; the trace is compressed."""
    profile = bench.measure(Child(), TRACING)

    page, contents = packed(bench, profile)

    named = schema.decode(contents[-1], Profile)
    assert Traced(iterations=3, bytes=len(TRACED)) == named.trace
    held = {each.key: data for each, data in zip(page.goods, contents, strict=True)}
    packed_trace, beside = (held[named.artifacts[name].key] for name in ("trace", "captured"))
    assert TRACED == gzip.decompress(packed_trace)
    assert named.artifacts["trace"].key.endswith(".json.gz")
    assert [30, 31, 32] == schema.decode(beside, Captured).traced_ns


def test_a_packed_trace_has_equal_bytes_whenever_it_is_packed(bench: Bench) -> None:
    """No time of day stands in it."""
    bench.measure(Child(), TRACING)

    first, again = (
        {kind: data for kind, _, data in artifacts(bench.folder)}["trace"] for _ in range(2)
    )

    assert (first, b"\0" * 4) == (again, first[4:8])


def test_an_attempt_whose_trace_broke_packs_none(bench: Bench) -> None:
    """Its file is there, and the profile says why it does not count."""
    profile = bench.measure(Broke(), TRACING)

    kinds = {kind for kind, _, _ in artifacts(bench.folder)}

    assert (bench.folder / "instrumented" / TRACE).exists()
    assert (None, {"samples", "log", "captured"}) == (profile.trace, kinds)
    assert "phase_failed: RuntimeError: no" == profile.null_reasons["trace"]


def test_equal_artefacts_have_equal_bytes(bench: Bench) -> None:
    """An attempt may be repeated from here on: it keeps the same objects."""
    bench.measure(Child())

    assert artifacts(bench.folder) == artifacts(bench.folder)
