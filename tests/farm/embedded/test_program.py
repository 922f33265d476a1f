"""How the worker program is started, asked and stopped; a script stands in for it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from farm.embedded import Agent, ask, hand, start_agent
from farm.errors import (
    Bad,
    FarmError,
    NoResult,
    NoVerdict,
    Refused,
    Stopped,
    TimedOut,
    Unreachable,
)

SECRET = "redis://:hunter2@127.0.0.1:1/0"


def _program(folder: Path, code: str) -> list[str]:
    script = folder / "farm_worker.py"
    script.write_text(code)
    return [sys.executable, str(script)]


# ── ask ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_the_parsed_document(tmp_path: Path) -> None:
    program = _program(tmp_path, "import json, sys; print(json.dumps({'argv': sys.argv[1:]}))")

    answer = ask("card", "--device", "cpu:0", program=program)

    assert {"argv": ["card", "--device", "cpu:0", "--json"]} == answer


@pytest.mark.parametrize(
    ("code", "kind"), [(1, Bad), (2, Refused), (3, NoResult), (4, Unreachable), (70, FarmError)]
)
def test_an_error_comes_back_as_it_was_said(
    tmp_path: Path, code: int, kind: type[FarmError]
) -> None:
    said = {"schema": "farm.error/v1", "code": code, "what": "no x", "why": "y", "hint": "z"}
    program = _program(
        tmp_path,
        f"import sys; print('talk', file=sys.stderr); print({json.dumps(said)!r}, file=sys.stderr);"
        f"sys.exit({code})",
    )

    with pytest.raises(kind) as caught:
        ask("devices", program=program)

    assert kind is type(caught.value)
    assert ("no x", "y", "z") == (caught.value.what, caught.value.why, caught.value.hint)


@pytest.mark.parametrize(
    "code", ["print('x')", "raise SystemExit('dead')", "import os; os.abort()"]
)
def test_anything_else_is_an_error_too(tmp_path: Path, code: str) -> None:
    with pytest.raises(FarmError, match="farm-worker devices"):
        ask("devices", program=_program(tmp_path, code))


def test_silence_ends_with_a_time_out(tmp_path: Path) -> None:
    program = _program(tmp_path, "import threading; threading.Event().wait()")

    with pytest.raises(TimedOut):
        ask("devices", program=program, timeout=0.3)


def test_without_the_extra_the_install_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter is a process-wide fact; it is replaced because no argument carries it."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoResult) as caught:
        ask("devices")

    assert "pip install 'profiling-farm[worker]'" in caught.value.hint


# ── agent ────────────────────────────────────────────────────────────────────────────────────────

AGENT = """
import json, os, signal, sys
facts = {"argv": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if "FARM_" in k}}
facts["session"] = os.getsid(0) == os.getpid()
print(json.dumps(facts), flush=True)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    signal.pause()
sys.stdin.read()
"""


def _said(log: Path, lines: int) -> list[str]:
    """Return what the agent printed, once it printed so many lines."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        got = log.read_text().splitlines()
        if len(got) >= lines:
            return got
        time.sleep(0.01)
    raise AssertionError("the agent said nothing")


@contextmanager
def agent(
    folder: Path, code: str = AGENT, *, devices: str = "all", fake: str = "", grace: float = 10
) -> Iterator[Agent]:
    running = start_agent(
        url=SECRET,
        store="/the/store",
        state=folder,
        devices=devices,
        fake=fake,
        program=_program(folder, code),
    )
    try:
        yield running
    finally:
        running.stop(grace=grace)


def test_secrets_go_by_environment_and_flags_by_argument(tmp_path: Path) -> None:
    with agent(tmp_path, fake="2xH100") as running:
        facts = json.loads(_said(running.log, 1)[0])
        arguments = Path(f"/proc/{running.pid}/cmdline").read_bytes()

    wanted = ["start", "--devices", "all", "--state-dir", str(tmp_path), "--fake", "2xH100"]
    wanted += ["--gates", "warn"]  # somebody's own machine is seldom quiet
    assert wanted == facts["argv"]
    assert (SECRET, "/the/store") == (facts["env"]["FARM_BROKER"], facts["env"]["FARM_STORE"])
    assert facts["session"]
    assert b"hunter2" not in arguments


def test_a_stopped_agent_has_ended(tmp_path: Path) -> None:
    with agent(tmp_path) as running:
        assert None is running.exit_code()
        assert None is running.wait(0.01)

    assert -signal.SIGTERM == running.exit_code()
    assert -signal.SIGTERM == running.stop()


def test_the_agent_ends_when_we_are_killed(tmp_path: Path) -> None:
    """Its standard input is a lifeline: the kernel closes it, whatever happened to us."""
    code = f"""if True:
        import os, sys
        from pathlib import Path
        from farm.embedded import start_agent
        folder = Path({str(tmp_path)!r})
        program = {_program(tmp_path, AGENT)!r}
        print(start_agent(url="u", store="s", state=folder, program=program).pid, flush=True)
        os.kill(os.getpid(), 9)
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True)

    assert -signal.SIGKILL == said.returncode
    assert _ends(int(said.stdout))


def test_a_stubborn_agent_is_killed_after_its_grace(tmp_path: Path) -> None:
    with agent(tmp_path, devices="stubborn", grace=0.1) as running:
        _said(running.log, 2)

    assert -signal.SIGKILL == running.exit_code()
    assert running.tail().endswith("ready")


def test_an_agent_that_dies_is_noticed_with_its_last_words(tmp_path: Path) -> None:
    with agent(tmp_path, "raise SystemExit('no such device')") as running:
        assert 1 == running.wait(10)

        assert "no such device" == running.tail()


# ── hand ─────────────────────────────────────────────────────────────────────────────────────────

# Says what came in, and how it was asked.
ECHO = """
import json, os, sys
said = sys.stdin.read()
for line in ("one", "two"):
    print(line, file=sys.stderr, flush=True)
held = os.fstat(int(os.environ["FARM_LIFELINE_FD"])) is not None
print(json.dumps([sys.argv[1:], said, held, os.getsid(0) == os.getpid()]))
"""


def test_a_document_is_handed_over_and_its_answer_comes_back(tmp_path: Path) -> None:
    """Each line of progress is heard, in a session of its own, with a lifeline to us."""
    heard: list[str] = []

    answer = hand(b"a document", say=heard.append, program=_program(tmp_path, ECHO))

    assert [["measure", "-", "--json"], "a document", True, True] == json.loads(answer)
    assert ["one", "two"] == heard


def test_each_line_is_heard_when_it_is_said(tmp_path: Path) -> None:
    """The last one too: what somebody waits for is what is going on, not what was before."""
    code = """
import pathlib, sys, time
print("waiting for the device", file=sys.stderr, flush=True)
heard = pathlib.Path(__file__).with_name("heard")
until = time.monotonic() + 20
while not heard.exists() and time.monotonic() < until:
    time.sleep(0.01)
print(heard.exists())
"""

    def say(line: str) -> None:
        (tmp_path / "heard").write_text(line)

    assert b"True\n" == hand(b"", say=say, program=_program(tmp_path, code))


def test_a_large_answer_waits_for_nobody(tmp_path: Path) -> None:
    """It is read beside the progress, so that no pipe fills up."""
    code = "import sys; print('x' * 10**6, flush=True); print('end', file=sys.stderr)"

    assert 10**6 + 1 == len(hand(b"", say=print, program=_program(tmp_path, code)))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((1, Bad), (2, Refused), (3, NoResult), (4, Unreachable), (5, NoVerdict)),
        *((124, TimedOut), (130, Stopped), (70, FarmError), (9, FarmError)),
    ],
)
def test_what_stopped_a_measurement_is_said_and_its_last_line_is_no_progress(
    tmp_path: Path, code: int, kind: type[FarmError]
) -> None:
    """Of its own kind: only a bug of the program is one of ours."""
    line = json.dumps({"schema": "farm.error/v1", "what": "no x", "why": "y", "hint": "z"})
    program = _program(
        tmp_path,
        f"import sys; print('repeat 1', file=sys.stderr); print({line!r}, file=sys.stderr);"
        f"sys.exit({code})",
    )
    heard: list[str] = []

    with pytest.raises(kind) as caught:
        hand(b"", say=heard.append, program=program)

    assert kind is type(caught.value)
    assert ("no x", "y", "z") == (caught.value.what, caught.value.why, caught.value.hint)
    assert ["repeat 1"] == heard


def test_a_program_that_is_killed_is_no_result_with_its_last_words(tmp_path: Path) -> None:
    code = "import os, sys; print('repeat 1', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"

    with pytest.raises(NoResult) as caught:
        hand(b"", say=print, program=_program(tmp_path, code))

    assert ("farm-worker died of SIGKILL", "repeat 1") == (caught.value.what, caught.value.why)


# Runs for ten seconds unless it is told to stop, and says which it was.
BUSY = """
import os, pathlib, signal, sys, threading
mark = pathlib.Path(__file__).with_name("mark")

def stop(number, frame):
    mark.write_text("stopped in order")
    os._exit(0)

signal.signal(signal.SIGTERM, stop)
print(os.getpid(), file=sys.stderr, flush=True)
print("measuring", file=sys.stderr, flush=True)
threading.Event().wait(10)
mark.write_text("ran to its end")
"""


def _ends(pid: int) -> bool:
    """Whether a process ends within ten seconds; one that is gone has."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        ended = bool(select.select([handle], [], [], 10)[0])
        os.close(handle)
        return ended
    return True


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_whatever_stops_us_stops_the_program_in_order(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    """It clears up after itself: it is asked, and not left to find that we are gone."""
    pids = []

    def say(line: str) -> None:
        pids.append(int(line))
        raise kind

    with pytest.raises(kind):
        hand(b"", say=say, program=_program(tmp_path, BUSY))

    assert _ends(*pids)
    assert "stopped in order" == (tmp_path / "mark").read_text()


def test_the_program_sees_that_we_were_killed(tmp_path: Path) -> None:
    """Its lifeline ends with us: the kernel closes it, whatever happened."""
    listens = """
import os, sys
print(os.getpid(), file=sys.stderr, flush=True)
print("measuring", file=sys.stderr, flush=True)
os.read(int(os.environ["FARM_LIFELINE_FD"]), 1)
"""
    code = f"""if True:
        import os
        from farm.embedded import hand

        def say(line):
            print(line, flush=True)
            os.kill(os.getpid(), 9)

        hand(b"", say=say, program={_program(tmp_path, listens)!r})
    """

    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE)

    assert -signal.SIGKILL == said.returncode
    assert _ends(int(said.stdout))
