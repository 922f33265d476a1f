"""Which farm a command talks to, and what it says where there is none."""

import pytest

from farm import embedded, reaching, settings
from farm.errors import Unreachable


def chosen(folder, **env) -> settings.Settings:
    return settings.load({}, env={"FARM_STATE": str(folder), **env}, cwd=folder, home=folder)


def test_without_a_broker_there_is_no_farm(tmp_path):
    """Looking makes nothing, and the message says how to get one."""
    assert reaching.find(chosen(tmp_path)) is None
    assert reaching.find(chosen(tmp_path), passing=True) is None
    with pytest.raises(Unreachable, match="no farm is running here") as caught:
        reaching.need(chosen(tmp_path))

    assert "`farm up`" in caught.value.hint
    assert [] == list(tmp_path.iterdir())


def test_a_named_broker_that_is_away_is_named_with_its_origin(tmp_path):
    """Also for one who only looks: it was asked for. Its password is not said."""
    away = chosen(tmp_path, FARM_BROKER="redis://ada:hunter2@127.0.0.1:1/0")

    with pytest.raises(Unreachable) as caught:
        reaching.find(away, passing=True)

    assert "redis://ada:***@127.0.0.1:1/0 (FARM_BROKER)" in caught.value.why
    assert "hunter2" not in str(caught.value)


@pytest.mark.redis
def test_a_named_broker_that_answers_is_the_farm(tmp_path, redis_url):
    found = reaching.need(chosen(tmp_path, FARM_BROKER=redis_url))

    assert found is not None
    assert ([], redis_url) == (found.slots(), found.url)
    assert "FARM_BROKER" in found.where
    found.ledger.close()


@pytest.mark.redis
def test_the_farm_of_a_run_is_for_looking_and_takes_no_other_work(tmp_path):
    """It ends with the command that brought it along."""
    with embedded.broker(tmp_path) as server:
        here = chosen(tmp_path)

        found = reaching.need(here, passing=True)
        assert server.url == found.url
        found.ledger.close()
        assert reaching.find(here) is None
        with pytest.raises(Unreachable, match="no farm is running here that takes work"):
            reaching.need(here)
