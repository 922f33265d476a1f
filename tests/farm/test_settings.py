"""The laws of settings: who beats whom, where a value came from, and what is a mistake."""

from pathlib import Path

import pytest

from farm import models, settings
from farm.errors import Refused
from farm.settings import Setting, Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "inner"
    folder.mkdir(parents=True)
    return folder


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _load(cwd: Path, home: Path, *, env: dict[str, str] | None = None, **flags: str) -> Settings:
    return settings.load(flags, env=env or {}, cwd=cwd, home=home)


def test_without_anything_the_defaults_count(cwd: Path, home: Path) -> None:
    """A local store and state, the embedded broker, effort `standard`; each says `default`."""
    found = _load(cwd, home)

    assert Setting(".farm/store", "default") == found.store
    assert Setting("", "default") == found.broker
    assert Setting(".farm", "default") == found.state
    assert Setting("standard", "default") == found.effort


def test_the_nearer_word_beats_the_farther(cwd: Path, home: Path) -> None:
    """Flag > environment > farm.toml > pyproject.toml > the person's farm.toml, each named."""
    personal = _write(home / ".config/farm/farm.toml", "effort = 'quick'")
    assert Setting("quick", str(personal)) == _load(cwd, home).effort

    project = _write(cwd / "pyproject.toml", "[tool.farm]\neffort = 'thorough'")
    assert Setting("thorough", str(project)) == _load(cwd, home).effort

    near = _write(cwd.parent / "farm.toml", "effort = 'standard'")
    assert Setting("standard", str(near)) == _load(cwd, home).effort

    env = {"FARM_EFFORT": "quick"}
    assert Setting("quick", "FARM_EFFORT") == _load(cwd, home, env=env).effort
    found = _load(cwd, home, env=env, effort="thorough").effort
    assert Setting("thorough", "--effort") == found


def test_each_key_is_decided_alone(cwd: Path, home: Path) -> None:
    """A file that sets one key leaves the others to those below it."""
    _write(home / ".config/farm/farm.toml", "broker = 'redis://a/0'\neffort = 'quick'")
    _write(cwd / "farm.toml", "effort = 'thorough'")

    found = _load(cwd, home, store="/s")

    assert ("redis://a/0", "thorough", "/s") == (
        found.broker.value,
        found.effort.value,
        found.store.value,
    )


def test_the_nearest_file_upwards_is_the_only_one(cwd: Path, home: Path) -> None:
    """A farm.toml farther up is not read, and a pyproject.toml without our table is passed by."""
    _write(cwd.parent / "farm.toml", "broker = 'redis://far/0'")
    _write(cwd / "farm.toml", "effort = 'quick'")
    _write(cwd / "pyproject.toml", "[tool.other]\nbroken = true")
    _write(cwd.parent / "pyproject.toml", "[tool.farm]\nstate = 'kept'")

    found = _load(cwd, home)

    assert "" == found.broker.value
    assert str(cwd.parent / "kept") == found.state.value


def test_a_named_file_stands_for_the_project(cwd: Path, home: Path) -> None:
    """`--config` beats FARM_CONFIG, and either replaces the files of the project."""
    _write(cwd / "farm.toml", "effort = 'standard'\nbroker = 'redis://project/0'")
    one = _write(cwd / "one.toml", "effort = 'quick'")
    two = _write(cwd / "two.toml", "effort = 'thorough'")

    env = {"FARM_CONFIG": "one.toml"}
    assert Setting("quick", str(one)) == _load(cwd, home, env=env).effort
    assert "" == _load(cwd, home, env=env).broker.value
    assert Setting("thorough", str(two)) == _load(cwd, home, env=env, config="two.toml").effort
    with pytest.raises(Refused, match=r"no file 'none.toml'"):
        _load(cwd, home, config="none.toml")


def test_a_path_starts_where_it_is_written(cwd: Path, home: Path) -> None:
    """In a file it starts at the file or at home, elsewhere in the current folder; URLs do not."""
    file = cwd.parent / "farm.toml"

    _write(file, "store = 'kept/store'\nstate = '~/state'")
    assert str(cwd.parent / "kept/store") == _load(cwd, home).store.value
    assert str(home / "state") == _load(cwd, home).state.value
    _write(file, "store = 's3://bucket/farm'\nstate = '/var/farm'")
    assert "s3://bucket/farm" == _load(cwd, home).store.value
    assert "/var/farm" == _load(cwd, home).state.value
    assert "here" == _load(cwd, home, env={"FARM_STORE": "here"}).store.value


def test_an_empty_variable_is_not_set(cwd: Path, home: Path) -> None:
    """`FARM_STORE=` counts as no FARM_STORE, and foreign FARM_ variables are none of ours."""
    found = _load(cwd, home, env={"FARM_STORE": "", "FARM_TEST_S3": "x", "STORE": "y"})

    assert Setting(".farm/store", "default") == found.store


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "stor = 'x'",
            "unknown setting 'stor': known: store, broker, state, ef",
            "did you mean `st",
        ),
        ("[store]\na = 1", "store is {'a': 1}: expected text in quotes", ""),
        ("effort = 3", "effort is 3: expected text in quotes", ""),
        ("effort = 'quik'", "unknown effort 'quik': known: quick, stand", "did you mean `quick`?"),
        ("store = ''", "store is '': expected printable text", ""),
        ('store = "a\\u0000b"', "store is ", ""),
        ("store = x", "not readable as TOML: Invalid value (at line 1, column 9)", ""),
        ("a = 1\na = 2", "not readable as TOML: Cannot overwrite a value", ""),
    ],
)
def test_a_mistake_in_a_file_names_the_file(
    cwd: Path, home: Path, text: str, message: str, hint: str
) -> None:
    """Unknown keys, wrong kinds and broken TOML are refused, in any of the files."""
    path = _write(cwd / "farm.toml", text)

    with pytest.raises(Refused) as caught:
        _load(cwd, home)

    assert str(caught.value).startswith(f"{path}: {message}")
    assert caught.value.hint.startswith(hint)


def test_a_file_that_is_no_text_is_refused(cwd: Path, home: Path) -> None:
    """A farm.toml in another encoding is named, not guessed."""
    (cwd / "farm.toml").write_bytes("effort = 'quick'".encode("utf-16"))

    with pytest.raises(Refused, match="not readable as TOML"):
        _load(cwd, home)


def test_a_mistake_elsewhere_names_its_origin(cwd: Path, home: Path) -> None:
    """A bad value is blamed on the variable, the flag or the project file that holds it."""
    with pytest.raises(Refused, match=r"^FARM_EFFORT: unknown effort 'slow'"):
        _load(cwd, home, env={"FARM_EFFORT": "slow"})
    with pytest.raises(Refused, match=r"^--effort: unknown effort 'slow'"):
        _load(cwd, home, effort="slow")
    _write(cwd / "pyproject.toml", "[tool.farm]\nslow = 1")
    with pytest.raises(Refused, match=r"pyproject.toml: unknown setting 'slow'"):
        _load(cwd, home)


def test_a_password_is_never_a_flag_and_never_shown(cwd: Path, home: Path) -> None:
    """A URL with a password is refused as a flag, taken from elsewhere, and printed without it."""
    url = "rediss://me:s3cret@host:6380/0"

    with pytest.raises(Refused) as caught:
        _load(cwd, home, broker=url)
    found = _load(cwd, home, env={"FARM_BROKER": url}).broker

    assert "s3cret" not in str(caught.value) + caught.value.hint
    assert url == found.value
    assert "rediss://me:***@host:6380/0" == settings.shown(found.value)
    assert "redis://host/0" == settings.shown("redis://host/0")


def test_the_example_shows_every_key_and_its_default() -> None:
    """The shipped example, its comments taken off, is a valid file that changes nothing."""
    text = (models.configs() / "farm.example.toml").read_text()
    lines = [line[2:] for line in text.splitlines() if " = " in line]

    found = dict(line.replace('"', "").split(" = ") for line in lines)

    assert dict(settings.DEFAULTS) == found
