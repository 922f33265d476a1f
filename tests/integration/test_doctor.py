"""The doctor on this very machine: a real server, real files in the way, real programs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farm import __version__, settings
from farm.doctor import Finding, Surroundings, examine, exit_code
from farm.ledger import Ledger, Slot
from farm.store import LocalStore

EXAMINE = """if True:
    import json, os
    from pathlib import Path
    from farm import doctor, settings
    found = settings.load({}, env=os.environ, cwd=Path.cwd(), home=Path.cwd())
    told = doctor.examine(found, doctor.Surroundings.real())
    print(json.dumps(doctor.document(told)))
    raise SystemExit(doctor.exit_code(told))
"""


def _examine(folder: Path, **env: str) -> list[Finding]:
    places = {"FARM_STORE": str(folder / "store"), "FARM_STATE": str(folder / "state")}
    given = settings.load({}, env=places | env, cwd=folder, home=folder)
    return examine(given, Surroundings.real(os.environ))


def _elsewhere(folder: Path, *, code: int, **env: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What a process of its own finds, by subject and name; it ends with this code."""
    said = subprocess.run(
        [sys.executable, "-P", "-c", EXAMINE],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONUTF8": "1", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert code == said.returncode, said.stderr + said.stdout
    assert "" == said.stderr
    return {(e["subject"], e["name"]): e for e in json.loads(said.stdout)["findings"]}


def _by(found: list[Finding], subject: str) -> dict[str, Finding]:
    return {each.name: each for each in found if each.subject == subject}


@pytest.mark.redis
def test_this_machine_can_run_a_farm(tmp_path: Path) -> None:
    """No broker is named, nothing is made yet: whatever is not ok here is a matter of numbers."""
    found = _elsewhere(tmp_path, code=0)

    assert not [each for each in found.values() if each["state"] == "fail"]
    assert "ok" == found["broker", "server program"]["state"]
    assert [] == list(tmp_path.iterdir())


@pytest.mark.redis
def test_a_served_broker_is_examined_to_the_last_node(tmp_path: Path, redis_url: str) -> None:
    store = LocalStore(tmp_path / "store")
    store.probe()
    ledger = Ledger(redis_url)
    ledger.setup()
    ledger.lead("here/1")
    slot = Slot(
        node="here",
        slot="here/0",
        classes=["cpu"],
        device="cpu",
        system_id="s",
        system_class="c",
        store=str(tmp_path / "elsewhere"),
        version=__version__,
    )
    ledger.node("here", state="up", slots=[slot])
    ledger.tick()
    ledger.close()

    found = _examine(tmp_path, FARM_BROKER=redis_url)

    assert ["ok"] * 7 == [each.state for each in _by(found, "broker").values()]
    farm = _by(found, "farm")
    assert ["ok", "ok", "ok", "fail", "ok"] == [each.state for each in farm.values()]
    assert f"here: {tmp_path / 'elsewhere'}" in farm["stores"].said
    assert {"ok"} == {each.state for each in _by(found, "store").values()}
    assert ["layout.json"] == [each.name for each in (tmp_path / "store/meta").iterdir()]


@pytest.mark.redis
def test_a_broker_that_nobody_serves_is_a_warning(tmp_path: Path, redis_url: str) -> None:
    farm = _by(_examine(tmp_path, FARM_BROKER=redis_url), "farm")

    assert {"scheduler": "warn", "nodes": "warn"} == {n: each.state for n, each in farm.items()}


@pytest.mark.redis
def test_a_wrong_password_is_told_from_a_missing_one(tmp_path: Path, redis_url: str) -> None:
    """Either way it is 4, and neither the right nor the wrong password is repeated."""
    secret = redis_url.split(":")[2].split("@")[0]
    for url, said in (
        (redis_url.replace(secret, "not-it"), "it refuses the credentials"),
        (redis_url.replace(f":{secret}@", ""), "it wants a password"),
    ):
        found = _elsewhere(tmp_path, code=4, FARM_BROKER=url)

        assert said in found["broker", "connection"]["said"]
        assert "not-it" not in json.dumps([*found.values()])


def test_a_library_shadowed_through_pythonpath_is_named(tmp_path: Path) -> None:
    """Our own code meets it as well, and the examination goes on."""
    shadow = tmp_path / "lib" / "redis.py"
    shadow.parent.mkdir()
    shadow.write_text("raise RuntimeError('s3cret')")

    found = _elsewhere(
        tmp_path, code=1, PYTHONPATH=str(shadow.parent), FARM_BROKER="redis://127.0.0.1:1/0"
    )

    assert "fail" == found["python", "names"]["state"]
    assert str(shadow) in found["python", "names"]["said"]
    assert ("broker", "connection") in found


def test_settings_that_cannot_be_read_end_with_2(tmp_path: Path) -> None:
    (tmp_path / "farm.toml").write_text("effort = 'quik'")

    with pytest.raises(settings.Refused) as caught:
        settings.load({}, env={}, cwd=tmp_path, home=tmp_path)
    found = examine(caught.value, Surroundings.real({}))

    assert 2 == exit_code(found)
    assert str(tmp_path / "farm.toml") in _by(found, "settings")["values"].said
