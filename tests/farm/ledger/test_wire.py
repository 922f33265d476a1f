"""The ears of a node: nothing is waited for, and a lost connection is said once."""

import select

import pytest
import redis

from farm.errors import Unreachable
from farm.ledger import Ears, Ledger

pytestmark = pytest.mark.redis


def sounds(ears: Ears) -> bool:
    """Wait until something is to be heard."""
    return [ears] == select.select([ears], [], [], 10)[0]


def cut(ears: Ears, server: redis.Redis) -> None:
    assert 1 == server.client_kill_filter(_type="pubsub")
    assert sounds(ears)


def test_ears_hear_what_is_said_to_their_node_in_order(ledger: Ledger) -> None:
    ears = ledger.listen("n1")
    assert [] == ears.heard()

    for number in ("1", "2", "3"):
        ledger.tell("n1", {"do": number})
    ledger.tell("n2", {"do": "4"})

    heard: list[dict[str, str]] = []
    while len(heard) < 3 and sounds(ears):
        heard += ears.heard()
    assert [{"do": "1"}, {"do": "2"}, {"do": "3"}] == heard
    assert [] == ears.heard()
    ears.close()


@pytest.mark.parametrize("noise", ["", "{", "[1]", "null"])
def test_what_is_no_message_of_a_farm_is_not_heard(
    ledger: Ledger, server: redis.Redis, noise: str
) -> None:
    ears = ledger.listen("n1")
    server.publish("farm:tell:n1", noise)
    ledger.tell("n1", {"do": "log"})

    heard: list[dict[str, str]] = []
    while not heard and sounds(ears):
        heard += ears.heard()
    assert [{"do": "log"}] == heard
    ears.close()


def test_a_lost_connection_is_said_once_and_stays_lost(ledger: Ledger, server: redis.Redis) -> None:
    ears = ledger.listen("n1")
    cut(ears, server)

    with pytest.raises(Unreachable, match="the broker cannot be reached"):
        ears.heard()

    assert (-1, []) == (ears.fileno(), ears.heard())
    ledger.tell("n1", {"do": "log"})
    assert [] == ears.heard()


def test_new_ears_hear_again(ledger: Ledger, server: redis.Redis) -> None:
    cut(ledger.listen("n1"), server)

    ears = ledger.listen("n1")
    ledger.tell("n1", {"do": "log"})

    assert sounds(ears)
    assert [{"do": "log"}] == ears.heard()
    ears.close()


def test_what_came_before_the_loss_is_heard_first(ledger: Ledger, server: redis.Redis) -> None:
    ears = ledger.listen("n1")
    ledger.tell("n1", {"do": "log"})
    server.client_kill_filter(_type="pubsub")

    heard: list[dict[str, str]] = []
    while not heard and sounds(ears):
        heard += ears.heard()

    assert [{"do": "log"}] == heard
    assert ears.fileno() == -1 or sounds(ears)
    with pytest.raises(Unreachable):
        ears.heard()


def test_closed_ears_hear_nothing(ledger: Ledger) -> None:
    ears = ledger.listen("n1")

    ears.close()
    ears.close()

    assert (-1, []) == (ears.fileno(), ears.heard())


def test_ears_without_a_server_are_refused() -> None:
    lost = Ledger("redis://127.0.0.1:1/0")

    with pytest.raises(Unreachable, match="the broker cannot be reached"):
        lost.listen("n1")

    lost.close()
