"""A ledger on an empty real server, and a client beside it to look and to let time pass."""

from collections.abc import Iterator

import pytest
import redis

from farm.ledger import Ledger


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url, ttl_s=2.0)
    made.setup()
    yield made
    made.close()


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.close()
