"""What every test may ask for, and what the whole run must keep: no unexplained skip, no leftover.

The seed of anything random comes from FARM_TEST_SEED, else it is drawn; either way it is printed,
so that a failure can be repeated.
"""

import fnmatch
import json
import os
import re
import secrets
import signal
import socket
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.core
import pytest

from farm.embedded import Server, broker
from farm.store import LocalStore

NONCE = "FARM_TEST_RUN"
SEED = pytest.StashKey[int]()
OUTCOMES = pytest.StashKey["Outcomes"]()

hypothesis.settings.register_profile("farm", deadline=None, print_blob=True)
hypothesis.settings.load_profile("farm")


# ── fixtures ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty local store; it does not wait for the disk."""
    return LocalStore(tmp_path / "store", fsync=False)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real server for the whole run."""
    with broker(tmp_path_factory.mktemp("broker")) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: Server) -> str:
    """The url of a real server that holds nothing."""
    password = redis_server.url.split(":")[2].split("@")[0]
    with socket.create_connection(("127.0.0.1", redis_server.port), 10) as wire:
        wire.sendall(f"AUTH {password}\r\nSCRIPT FLUSH\r\nFLUSHALL\r\n".encode())
        answer = b""
        while answer.count(b"+OK\r\n") < 3 and (chunk := wire.recv(256)):
            answer += chunk
    assert b"+OK\r\n" * 3 == answer
    return redis_server.url


# What these import takes a second, which a run without them need not wait for.
@pytest.fixture(scope="session")
def moto_server() -> Iterator[Any]:
    """A server that models S3, with an empty bucket: see tests/store/servers.py."""
    from tests.store import servers

    with servers.moto() as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real S3 server, SeaweedFS, likewise."""
    from tests.store import servers

    with servers.seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run: for `random.Random(seed)` or `numpy.random.default_rng(seed)`."""
    return pytestconfig.stash[SEED]


# ── the whole run ────────────────────────────────────────────────────────────────────────────────


class Outcomes:
    """The skips of a run, and which of them nobody allowed."""

    def __init__(self, allowed: list[dict[str, str]]) -> None:
        self.allowed = allowed
        self.skips: list[tuple[str, str]] = []
        self.seeds: list[dict[str, str]] = []
        self.leftovers: list[str] = []

    @property
    def unexplained(self) -> list[tuple[str, str]]:
        return [each for each in self.skips if not self._is_allowed(*each)]

    def _is_allowed(self, test: str, reason: str) -> bool:
        return any(
            fnmatch.fnmatchcase(test, each["test"]) and re.search(each["reason"], reason)
            for each in self.allowed
        )


def pytest_configure(config: pytest.Config) -> None:
    given = os.environ.get("FARM_TEST_SEED", "")
    config.stash[SEED] = int(given) if given else secrets.randbits(32)
    os.environ["FARM_TEST_SEED"] = str(config.stash[SEED])  # tests in parallel share it
    listed = tomllib.loads(Path(__file__).with_name("skips.toml").read_text("utf-8"))
    config.stash[OUTCOMES] = Outcomes(listed["skip"])
    config.pluginmanager.register(Watch(config.stash[OUTCOMES]), "farm-watch")
    os.environ[NONCE] = secrets.token_hex(16)
    hypothesis.core.global_force_seed = config.stash[SEED]  # type: ignore[assignment]


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: FARM_TEST_SEED={config.stash[SEED]}"


class Watch:
    """Notes every skip, and looks for processes once the last fixture has been torn down."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            names = [name for mark in item.iter_markers("seed") for name in mark.args]
            if names:
                item.user_properties.append(("seed", names))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        names = dict(report.user_properties).get("seed", ())
        if names and (report.when == "call" or report.outcome != "passed"):
            self.outcomes.seeds.append(dict.fromkeys(names, report.outcome))
        if report.skipped and not hasattr(report, "wasxfail"):
            self.outcomes.skips.append((report.nodeid, _reason(report)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.outcomes.skips.append((report.nodeid, _reason(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.outcomes.leftovers += _end_leftovers()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:  # one of several processes: who started us tells it
            output["leftovers"] = self.outcomes.leftovers
        if (self.outcomes.unexplained or self.outcomes.leftovers) and session.exitstatus in (0, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.outcomes.leftovers += getattr(node, "workeroutput", {}).get("leftovers", [])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        file = os.environ.get("FARM_SEEDS")
        if file and not hasattr(terminalreporter.config, "workerinput"):
            with Path(file).open("a", encoding="utf-8") as out:
                out.writelines(json.dumps(each) + "\n" for each in self.outcomes.seeds)
        for test, reason in self.outcomes.skips:
            terminalreporter.write_line(f"skipped {test}: {reason}")
        for test, _ in self.outcomes.unexplained:
            terminalreporter.write_line(f"FAILED {test} skipped, and tests/skips.toml has no such")
        for line in self.outcomes.leftovers:
            terminalreporter.write_line(f"FAILED a test left this process behind: {line}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)


# ── leftovers ────────────────────────────────────────────────────────────────────────────────────


class _Process(NamedTuple):
    pid: int
    parent: int
    words: str


def _end_leftovers() -> list[str]:
    """Return what outlived the tests by a second, and end it.

    Found as our children, and by the nonce that everything started from here inherits.
    """
    deadline = time.monotonic() + 1.0
    while (left := _leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    return [f"{each.pid} {each.words}" for each in left]


def _leftovers() -> list[_Process]:
    nonce = f"{NONCE}={os.environ[NONCE]}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            ours = int(parent) == os.getpid() or nonce in (folder / "environ").read_bytes()
            itself = int(folder.name) == os.getpid() or "resource_tracker" in words
            if ours and not itself and state not in "ZX":
                found.append(_Process(int(folder.name), int(parent), words.strip()))
    return found
