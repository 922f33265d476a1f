"""What agent and slot worker say to each other arrives whole, in order, and ends with either."""

import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.ledger import Slot
from tests.workers import make
from workers.control import Control, Holding, Listen, Message, Setup, Stop, pair

SETUP = Setup(
    slot=Slot(
        node="n1",
        slot="cpu:0",
        classes=["any"],
        device="cpu",
        system_id="5" * 32,
        system_class="test-cpu_1c",
    ),
    owner="n1/cpu:0#a",
    device=make.device(),
    card=make.card(),
    environment="default",
    broker="redis://:secret@127.0.0.1:1/0",
    store="/tmp/store",
    spool="/var/lib/farm/spool",
    state="/tmp/state",
    lock_dir="/tmp/locks",
    flags=["no_housekeeping_core"],
)
MESSAGES = [
    SETUP,
    Stop(why="lost", fence="17"),
    Stop(why="cancel", fence="17"),
    Stop(why="release"),
    Listen(fence="17"),
    Holding(),
    Holding(key="a.base", fence="17", progress='{"repeat": 1, "phase": "first\\n"}'),
]


@pytest.fixture
def ends() -> Iterator[tuple[Control, Control]]:
    ours, theirs = pair()
    other = Control(theirs)
    yield ours, other
    ours.close()
    other.close()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: type(each).__name__)
def test_a_message_arrives_as_it_was_sent(ends: tuple[Control, Control], message: Message) -> None:
    """Both ways."""
    for sender, receiver in (ends, ends[::-1]):
        assert sender.send(message)
        assert [message] == receiver.receive()


def test_messages_that_arrive_together_are_told_apart(ends: tuple[Control, Control]) -> None:
    for message in MESSAGES:
        ends[0].send(message)

    assert MESSAGES == ends[1].receive()


@given(st.data())
def test_however_the_bytes_are_cut_the_messages_are_the_same(data: st.DataObject) -> None:
    """A read may end anywhere, in the middle of a line as well."""
    sent = data.draw(st.lists(st.sampled_from(MESSAGES[1:]), min_size=1, max_size=4))
    raw = b"".join(msgspec.json.encode(each) + b"\n" for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    near, far = socket.socketpair()
    with near, far:
        receiver, found = Control(far), []
        for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
            if start < end:
                near.sendall(raw[start:end])
                found += receiver.receive() or []

    assert sent == found


def test_a_message_larger_than_a_read_arrives_whole(ends: tuple[Control, Control]) -> None:
    """A card with a long list of instruction sets, say."""
    large = msgspec.structs.replace(SETUP, flags=["x" * 100_000, "y" * 100_000])
    sender = threading.Thread(target=ends[0].send, args=(large,))
    sender.start()

    first = next(iter(ends[1]))

    sender.join()
    assert large == first


def test_the_end_of_one_side_is_the_end_of_file_of_the_other(
    ends: tuple[Control, Control],
) -> None:
    """The socket is the lifeline; what was sent before is still heard."""
    ends[0].send(Holding(key="a"))
    ends[0].close()

    assert [Holding(key="a")] == list(ends[1])
    assert ends[1].receive() is None


def test_sending_to_a_side_that_is_gone_is_no_error(ends: tuple[Control, Control]) -> None:
    """Who sends learns it and goes on; the process that is gone is found by other means."""
    ends[1].close()

    assert not ends[0].send(Holding())
    assert ends[0].receive() is None


def test_half_a_message_before_the_end_is_dropped(ends: tuple[Control, Control]) -> None:
    """A worker that was killed while it wrote."""
    near, far = socket.socketpair()
    with far:
        near.sendall(msgspec.json.encode(Holding(key="a")) + b'\n{"type": "hol')
        near.close()

        assert [Holding(key="a")] == list(Control(far))


def test_a_secret_travels_in_the_setup_and_in_no_command_line() -> None:
    """The addresses are fields of the message, so nothing else has to carry them."""
    assert {"broker", "store"} <= set(Setup.__struct_fields__)
