"""`farm-worker` as a program: the only place in `farm` that knows its command line.

Nothing of `workers` is imported here. The broker and the store are handed over by environment,
because everybody on the machine may read an argument list.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from farm.errors import BY_CODE, FarmError, NoResult, TimedOut

ASK_S: Final = 120.0
LIFELINE: Final = "FARM_LIFELINE_FD"  # our end is closed when we end
DRAIN_S: Final = 20.0
_INSTALL: Final = "install what measures: `pip install 'profiling-farm[worker]'`"


class Agent:
    """A running `farm-worker start`, in a session of its own.

    It holds a lifeline to us, as FARM_LIFELINE tells it: its standard input. When we end, however
    that happens, it reads the end of file there and ends too.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return how it ended, None if it still runs after `timeout` seconds."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask it to end once its jobs have ended; asked again, it gives them back."""
        if self.exit_code() is None:
            self._process.terminate()

    def stop(self, *, grace: float = DRAIN_S, now: bool = False) -> int:
        """Let it finish its jobs for `grace` seconds, then kill its group; return how it ended.

        now: it gives its jobs back instead of finishing them.
        """
        with self._process:  # closes the lifeline, whatever happens
            if self.exit_code() is None:
                self._process.terminate()
            if now and self._process.stdin is not None:
                self._process.stdin.close()
            try:
                if self.wait(grace) is None:
                    self._kill()
            except KeyboardInterrupt:  # whoever presses it twice does not want to wait
                self._kill()
                raise
            return self._process.wait()

    def tail(self, size: int = 2048) -> str:
        """Return the last bytes of what it printed."""
        return self.log.read_bytes()[-size:].decode("utf-8", "replace").strip()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def start_agent(
    *,
    url: str,
    store: str,
    state: Path,
    devices: str = "all",
    fake: str = "",
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
) -> Agent:
    """Return the agent of this machine, just started; whoever asks for one stops it.

    url, store: given as FARM_BROKER and FARM_STORE. devices, fake: as `--devices` and `--fake`.
    What it prints is kept in `agent.log` of the state folder. program: started in place of
    farm-worker. Raises NoResult if the `worker` extra is not installed.
    """
    command = [*(program or _farm_worker()), "start", "--devices", devices]
    command += ["--state-dir", str(state), *(["--fake", fake] if fake else [])]
    # Somebody's own machine is seldom quiet: it is measured on all the same, with a mark (rule 8).
    around = os.environ if environ is None else environ
    command += ["--gates", around.get("FARM_GATES", "warn")]
    given = {"FARM_BROKER": url, "FARM_STORE": store, "FARM_LIFELINE": "stdin"}
    state.mkdir(parents=True, exist_ok=True)
    log = state / "agent.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**around, **given},
            start_new_session=True,  # Ctrl-C is for us; we stop the agent in order
        )
    return Agent(process, log)


def ask(
    verb: str,
    *words: str,
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
    timeout: float = ASK_S,
) -> dict[str, Any]:
    """Return what `farm-worker VERB … --json` says, for example of `devices` or `card`.

    Raises the error that it says, TimedOut after `timeout` seconds, NoResult if the `worker` extra
    is not installed.
    """
    command = [*(program or _farm_worker()), verb, *words, "--json"]
    try:
        said = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environ,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"farm-worker {verb} did not answer within {timeout:.0f} s") from error
    if said.returncode != 0:
        raise _as_said(said.returncode, said.stderr.decode("utf-8", "replace"), verb)
    try:
        answer: dict[str, Any] = json.loads(said.stdout)
    except ValueError as error:
        raise FarmError(f"farm-worker {verb} did not print JSON", why=str(error)) from error
    return answer


def hand(
    document: bytes,
    *,
    say: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
) -> bytes:
    """Return what `farm-worker measure` answers to a document, after as long as it takes.

    say: hears each line of its progress. It ends with us, however we end: it holds a lifeline, and
    what stops us in order stops it first. Raises the error that it says, NoResult if it died or the
    `worker` extra is not installed.
    """
    command = [*(program or _farm_worker()), "measure", "-", "--json"]
    lifeline, ours = os.pipe()
    given = {**(os.environ if environ is None else environ), LIFELINE: str(lifeline)}
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=given,
            pass_fds=(lifeline,),
            start_new_session=True,
        ) as process:
            os.close(lifeline)
            try:
                answer, last, error = _conversation(process, document, say)
            except BaseException:
                process.terminate()
                raise
    finally:
        os.close(ours)
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        raise NoResult(f"farm-worker died of {name}", why=last, hint="run it again")
    if process.returncode != 0:
        raise _as_said(process.returncode, error or last, "measure")
    return answer


def _conversation(
    process: "subprocess.Popen[bytes]", document: bytes, say: Callable[[str], None]
) -> tuple[bytes, str, str]:
    """Hand over the document; return the answer, the last line said, and that of an error."""
    assert process.stdin is not None, "a pipe was asked for"
    assert process.stdout is not None, "a pipe was asked for"
    assert process.stderr is not None, "a pipe was asked for"
    with suppress(BrokenPipeError):  # it has ended already, and says why
        process.stdin.write(document)
        process.stdin.close()
    last, error, answer = "", "", b""

    def listen(stream: IO[bytes]) -> None:
        nonlocal answer
        answer = stream.read()

    # It answers when all is done, in one line that a pipe holds or that it waits with.
    reader = threading.Thread(target=listen, args=(process.stdout,), daemon=True)
    reader.start()
    for line in process.stderr:
        told = line.decode("utf-8", "replace").strip()
        if told.startswith("{"):  # whoever asked says it, in words of a person
            error = told
        elif told:
            last = told
            say(told)
    reader.join()
    process.wait()
    return answer, last, error


def _farm_worker() -> list[str]:
    """Return the command of farm-worker: beside this interpreter, else on PATH."""
    beside = Path(sys.executable).with_name("farm-worker")
    if os.access(beside, os.X_OK):
        if find_spec("torch") is None:
            raise NoResult("torch is not installed here", hint=_INSTALL)
        return [str(beside)]
    if found := shutil.which("farm-worker"):
        return [found]
    raise NoResult("farm-worker is not installed here", hint=_INSTALL)


def _as_said(code: int, stderr: str, verb: str) -> FarmError:
    """Return the error that the program printed as one `farm.error/v1` line, or the end of it."""
    kind = BY_CODE.get(code, FarmError)
    last = stderr.strip().rpartition("\n")[2]
    try:
        said = json.loads(last)
        return kind(said["what"], why=said.get("why", ""), hint=said.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return kind(f"farm-worker {verb} ended with {code}", why=last)
