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
    _write(cwd / "two.toml", "effort = 'thorough'")

    env = {"FARM_CONFIG": "one.toml"}
    assert Setting("quick", str(one)) == _load(cwd, home, env=env).effort
    assert "" == _load(cwd, home, env=env).broker.value
    found = _load(cwd, home, env=env, config="two.toml").effort
    assert Setting("thorough", "--config two.toml") == found
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
            "unknown setting 'stor': known: store, endpoint_url, path_style, sse, b",
            "did you mean `st",
        ),
        ("[store]\na = 1", "store is {'a': 1}: expected text in quotes", ""),
        ("effort = 3", "effort is 3: expected text in quotes", ""),
        ("effort = ['quick']", "effort is ['quick']: expected text in quotes", ""),
        ("store.path = 'x'", "store is {'path': 'x'}: expected text in quotes", ""),
        ("[tool.farm]\nstore = 'x'", "unknown setting 'tool': known: ", "without [tool], keys st"),
        ("[farm]\nstore = 'x'", "unknown setting 'farm': known: ", "without [farm], keys stand at"),
        ("effort = 'quik'", "unknown effort 'quik': known: quick, stand", "did you mean `quick`?"),
        ("store = ''", "store is '': expected printable text", ""),
        ('store = "a\\u0000b"', "store is ", ""),
        ("store = x", "not readable as TOML: Invalid value (at line 1, column 9)", ""),
        ("a = 1\na = 2", "not readable as TOML: Cannot overwrite a value", ""),
        (f"store = {'9' * 5000}", "not readable as TOML: Exceeds the limit", ""),
        (f"store = {'[' * 100_000}", "not readable as TOML", ""),
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

    with pytest.raises(Refused, match="not readable as TOML: byte 0 is not UTF-8"):
        _load(cwd, home)


def test_a_bad_value_is_quoted_short_and_without_its_password(cwd: Path, home: Path) -> None:
    """What stands in a file by mistake may be long, and may be secret."""
    path = _write(cwd / "farm.toml", f"broker = ['redis://me:s3cret@host', {'9' * 500}]")

    with pytest.raises(Refused) as caught:
        _load(cwd, home)

    assert caught.value.what.startswith(f"{path}: broker is ['redis://me:***@host', 999")
    assert len(caught.value.what) < len(str(path)) + 100


def test_a_mistake_elsewhere_names_its_origin(cwd: Path, home: Path) -> None:
    """A bad value is blamed on the variable, the flag or the project file that holds it."""
    with pytest.raises(Refused, match=r"^FARM_EFFORT: unknown effort 'slow'"):
        _load(cwd, home, env={"FARM_EFFORT": "slow"})
    with pytest.raises(Refused, match=r"^--effort: unknown effort 'slow'"):
        _load(cwd, home, effort="slow")
    _write(cwd / "pyproject.toml", "[tool.farm]\nslow = 1")
    with pytest.raises(Refused, match=r"pyproject.toml: unknown setting 'slow'"):
        _load(cwd, home)
    _write(cwd / "pyproject.toml", "tool.farm = 3")
    with pytest.raises(Refused, match=r"pyproject.toml: tool.farm is 3: expected a table"):
        _load(cwd, home)
    _write(cwd / "one.toml", "effort = 1")
    with pytest.raises(Refused, match=r"^--config one.toml: effort is 1: expected text"):
        _load(cwd, home, config="one.toml")


def test_a_password_is_never_a_flag_and_never_shown(cwd: Path, home: Path) -> None:
    """A URL with a password is refused as a flag, taken from elsewhere, and printed without it."""
    url = "rediss://me:s3cret@host:6380/0"

    with pytest.raises(Refused) as caught:
        _load(cwd, home, broker=url)
    found = _load(cwd, home, env={"FARM_BROKER": url}).broker

    assert "s3cret" not in str(caught.value) + caught.value.hint
    assert url == found.value
    assert "rediss://me:***@host:6380/0" == settings.shown(found.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://:s3cret@host/0", "redis://:***@host/0"),
        ("redis://me:s3@cr:et@host/0", "redis://me:***@host/0"),
        ("redis://host/0?db=1&password=s3cret", "redis://host/0?***"),
        ("redis://me:s3 cr@et@host/0", "redis://me:***@host/0"),
        ("redis://me:s3?cr@host/0?pass%77ord=s3cret", "redis://me:***@host/0?***"),
        ("redis://me@host:6380/0", "redis://me@host:6380/0"),
        ("redis://host:6380/0", "redis://host:6380/0"),
        ("redis://me:s/cr@et@host:7000/0", "redis://me:***@host:7000/0"),
        ("/mnt/a:b@c", "/mnt/a:b@c"),
        ("s3://bucket/p?sse=aes256&path_style=true", "s3://bucket/p?sse=aes256&path_style=true"),
        ("s3://b?endpoint_url=http%3A%2F%2Fh%3A1", "s3://b?endpoint_url=http%3A%2F%2Fh%3A1"),
        ("s3://me:s3cret@bucket/p", "s3://me:***@bucket/p"),
        ("s3://b?sse=none&secret=s3cret&sse", "s3://b?sse=none&***&***"),
        ("s3://b?endpoint_url=http%3A%2F%2Fme%3As3cret%40h", "s3://b?***"),
    ],
)
def test_what_is_shown_of_a_url_is_all_but_its_password(url: str, told: str) -> None:
    assert told == settings.shown(url)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "http://host/",
        "redis://",
        "redis://host:99999/0",
        "redis://me:s3/cret@host:7000/0",
        "unix://",
        "amqp://me:s3cret@box/",
        "redis:s3cret@h",
        "redis//:s3cret@h/0",
        ":s3cret@h:1",
        "redis://u:s3cret",
        "redis://h/0?foo=s3cret",
        "redis://h/0?db=abc",
        "redis://h/0?socket_timeout=x",
    ],
)
def test_a_broker_that_is_no_address_is_refused_where_it_is_named(cwd, home, url) -> None:
    """With its origin and how to write one, and without its password."""
    with pytest.raises(Refused, match=r"^FARM_BROKER: broker is no address") as caught:
        _load(cwd, home, env={"FARM_BROKER": url})

    assert "redis://HOST:PORT/0" in caught.value.why
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://h", "rediss://u:p@h:6380/1", "unix:///run/redis.sock", "redis://[::1]:6379/0"]
)
def test_every_way_to_name_a_redis_server_is_taken(cwd, home, url) -> None:
    assert url == _load(cwd, home, env={"FARM_BROKER": url}).broker.value


# ── a store on S3 ────────────────────────────────────────────────────────────────────────────────

S3 = "s3://bucket/farm"
AT_HOST = "s3://bucket/farm?endpoint_url=http%3A%2F%2Fhost%3A8333"


def test_the_store_on_s3_is_one_string_with_all_that_is_set_of_it(cwd: Path, home: Path) -> None:
    """So that whoever is handed that string opens the same store."""
    _write(cwd / "farm.toml", "endpoint_url = 'http://host:8333'\nsse = 'aes256'")

    found = _load(cwd, home, env={"FARM_STORE": S3, "FARM_PATH_STYLE": "false"})

    whole = f"{AT_HOST}&path_style=false&sse=aes256"
    assert Setting(whole, "FARM_STORE") == found.store
    assert Setting("http://host:8333", str(cwd / "farm.toml")) == found.endpoint_url
    assert Setting("false", "FARM_PATH_STYLE") == found.path_style
    assert Setting("aes256", str(cwd / "farm.toml")) == found.sse
    assert whole == _load(cwd, home, env={"FARM_STORE": whole}).store.value


def test_what_the_address_says_beats_what_is_set(cwd: Path, home: Path) -> None:
    """And is told to come from where the address does."""
    env = {"FARM_STORE": AT_HOST, "FARM_ENDPOINT_URL": "http://other:1", "AWS_ENDPOINT_URL": "x"}

    found = _load(cwd, home, env=env)

    assert Setting(AT_HOST, "FARM_STORE") == found.store
    assert Setting("http://host:8333", "FARM_STORE") == found.endpoint_url


@pytest.mark.parametrize(
    ("env", "origin"),
    [
        ({"AWS_ENDPOINT_URL": "http://host:8333"}, "AWS_ENDPOINT_URL"),
        (
            {"AWS_ENDPOINT_URL_S3": "http://host:8333", "AWS_ENDPOINT_URL": "http://other:1"},
            "AWS_ENDPOINT_URL_S3",
        ),
        (
            {"FARM_ENDPOINT_URL": "http://host:8333", "AWS_ENDPOINT_URL_S3": "http://other:1"},
            "FARM_ENDPOINT_URL",
        ),
    ],
)
def test_a_server_that_the_environment_names_is_used(cwd, home, env, origin) -> None:
    found = _load(cwd, home, env={"FARM_STORE": S3, **env})

    assert (AT_HOST, Setting("http://host:8333", origin)) == (found.store.value, found.endpoint_url)


def test_a_folder_is_no_matter_of_servers(cwd: Path, home: Path) -> None:
    found = _load(cwd, home, env={"AWS_ENDPOINT_URL": "http://other:1", "FARM_SSE": "aes256"})

    assert Setting(".farm/store", "default") == found.store
    assert Setting("", "default") == found.endpoint_url


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"FARM_STORE": "s3://"}, "FARM_STORE: '' is no name of a bucket"),
        ({"FARM_STORE": "s3://me:s3cret@bucket"}, "FARM_STORE: the address of a store on S3 takes"),
        ({"FARM_STORE": f"{S3}?secret=s3cret"}, "FARM_STORE: unknown option 'secret'"),
        ({"FARM_SSE": "rot13"}, "FARM_SSE: unknown sse 'rot13'"),
        ({"FARM_PATH_STYLE": "yes"}, "FARM_PATH_STYLE: unknown path_style 'yes'"),
        ({"FARM_ENDPOINT_URL": "http://me:s3cret@host"}, "FARM_ENDPOINT_URL: endpoint_url is no"),
        ({"FARM_STORE": S3, "AWS_ENDPOINT_URL": "host:8333"}, "AWS_ENDPOINT_URL: endpoint_url is"),
    ],
)
def test_a_mistake_about_s3_names_its_origin_and_no_secret(cwd, home, env, said) -> None:
    with pytest.raises(Refused) as caught:
        _load(cwd, home, env=env)

    assert str(caught.value).startswith(said)
    assert "cret" not in str(caught.value).replace("'secret'", "") + caught.value.hint


def test_a_store_on_s3_may_be_a_flag_but_with_a_password(cwd: Path, home: Path) -> None:
    assert Setting(AT_HOST, "--store") == _load(cwd, home, store=AT_HOST).store

    with pytest.raises(Refused, match=r"--store: .* no user and no password"):
        _load(cwd, home, store="s3://me:s3cret@bucket")


# ── the files ────────────────────────────────────────────────────────────────────────────────────


def _states(cwd: Path, home: Path, **more: str) -> list[tuple[Path, str]]:
    found = settings.files(more.get("config"), env=more, cwd=cwd, home=home)
    return [(each.path, each.state) for each in found]


def test_the_places_of_settings_are_listed_the_strongest_first(cwd: Path, home: Path) -> None:
    """Those that are read, and where one would be looked for."""
    personal = home / ".config/farm/farm.toml"
    places = [cwd / "farm.toml", cwd / "pyproject.toml", personal]

    assert [(each, "not there") for each in places] == _states(cwd, home)

    _write(cwd.parent / "farm.toml", "no TOML, which matters to who reads it")
    _write(cwd / "pyproject.toml", "[tool.other]")
    _write(personal, "")
    assert [
        (cwd.parent / "farm.toml", "read"),
        (cwd / "pyproject.toml", "without [tool.farm]"),
        (personal, "read"),
    ] == _states(cwd, home)

    _write(cwd.parent / "pyproject.toml", "[tool.farm]")
    assert (cwd.parent / "pyproject.toml", "read") == _states(cwd, home)[1]


def test_a_named_file_leaves_the_personal_one_behind_it(cwd: Path, home: Path) -> None:
    _write(cwd / "farm.toml", "")
    named = _write(cwd / "one.toml", "")
    personal = home / ".config/farm/farm.toml"

    for how in ({"config": "one.toml"}, {"FARM_CONFIG": "one.toml"}):
        assert [(named, "read"), (personal, "not there")] == _states(cwd, home, **how)
    with pytest.raises(Refused, match=r"no file 'two.toml': named by FARM_CONFIG"):
        _states(cwd, home, FARM_CONFIG="two.toml")


def test_the_example_shows_every_key_and_its_default() -> None:
    """The shipped example, its comments taken off, is a valid file that changes nothing."""
    text = (models.configs() / "farm.example.toml").read_text()
    lines = [line[2:] for line in text.splitlines() if " = " in line]

    found = dict(line.replace('"', "").split(" = ") for line in lines)

    assert dict(settings.DEFAULTS) == found
