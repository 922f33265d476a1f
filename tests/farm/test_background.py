"""A farm in the background: what is believed of it, and what is left alone."""

import os

import msgspec
import pytest

from farm import background, embedded
from farm.background import Up
from farm.errors import Refused


def record(**more) -> Up:
    """A record of this very process, but for the changes."""
    pid = os.getpid()
    made = Up(
        pid=pid,
        started=embedded.started(pid) or "",
        store="/store",
        broker="",
        devices="all",
        slots=["n1/cpu:0"],
        since="2026-11-30T10:15:00Z",
    )
    return msgspec.structs.replace(made, **more)


@pytest.mark.parametrize("written", [None, b"", b"{", b"{}", b'{"pid": "one"}', b"\xff"])
def test_without_a_readable_record_nothing_is_up(tmp_path, written):
    if written is not None:
        (tmp_path / "up.json").write_bytes(written)

    assert background.found(tmp_path) is None


def test_a_state_folder_that_cannot_be_one_has_no_farm(tmp_path):
    (tmp_path / "file").touch()

    assert background.found(tmp_path / "file" / "x") is None


def test_a_record_counts_while_its_very_process_lives(tmp_path):
    """The number alone proves nothing: it may belong to another process by now."""
    (tmp_path / "up.json").write_bytes(msgspec.json.encode(record()))
    assert record() == background.found(tmp_path)

    (tmp_path / "up.json").write_bytes(msgspec.json.encode(record(started="another boot 1")))
    assert background.found(tmp_path) is None


@pytest.mark.parametrize("now", [False, True])
def test_a_process_that_only_has_the_number_is_not_signalled(now):
    """It is this one, which would not survive it."""
    heard = []

    background.stop(record(started="another boot 1"), now=now, say=heard.append, wait=heard.append)

    assert [0.1] * (2 if now else 1) == heard


def test_a_folder_without_a_broker_has_none_to_end(tmp_path):
    assert not background.end_leftover(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_what_the_keeper_refused_is_said_as_it_said_it(tmp_path):
    """It ended before it served; nothing of it is left."""
    environ = {**os.environ, "FARM_STATE": str(tmp_path), "FARM_STORE": str(tmp_path / "store")}

    with pytest.raises(Refused, match="unknown device selector 'bogus'") as caught:
        background.start(["--devices", "bogus"], state=tmp_path, environ=environ, say=print)

    assert "known: all, cpu" in caught.value.why
    assert background.found(tmp_path) is None
    assert not (tmp_path / "broker").exists()
