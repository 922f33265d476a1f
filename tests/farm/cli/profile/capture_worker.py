"""A worker that answers with a capture, and the words that ask it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from farm import once, schema
from farm.cli.profile import capture_pass, capturing
from farm.cli.profile.capture_pass import Taken as Result
from farm.cli.profile.capture_words import Words
from farm.schema import Asked
from tests.farm import make
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken

PLAIN = Taken(
    stages_ms={"preprocess": [1.0], "forward": [6.0], "postprocess": [0.5]},
)
TRAINED = Taken(
    events=captures.host(captures.TRAINING),
    waits_ms=[1.0, 1.0, 1.0],
    stages_ms={each: [2.0] for each in captures.TRAINING},
)


class Worker:
    """Answers as `once.measure` does, once with each of these and then as the last time.

    asked: what it was asked, call by call.
    """

    def __init__(self, *answers: Taken) -> None:
        self.answers = answers or (PLAIN,)
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked, *, say: Callable[[str], None]) -> once.Measured:
        taken = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(asked)
        folder = Path(asked.folder)
        if taken.failure is None:
            events = taken.events if asked.capture and asked.capture.trace else None
            taken = taken._replace(events=events)
            if events is not None:
                data = g8.text(list(events or captures.host()), deviceProperties=[g8.DEVICE])
                (folder / "trace.json").write_bytes(data)
            (folder / "captured.json").write_bytes(schema.encode(captures.beside(taken)))
        steps = asked.capture.steps if asked.capture else 0
        profile = captures.profile(taken, asked.job, n=max(1, steps))
        return once.Measured(profile=profile, card=make.card(), folder=folder)


def words(kind: str = "infer", *given: str) -> Words:
    """The words of a command line, its device a CPU unless it names one."""
    device = () if any(each.startswith("--device") for each in given) else ("--device", "cpu")
    verb = capturing.run if kind == "run" else capturing.infer
    data = ("synthetic",) if kind == "run" and not given[:1] else ()
    names = ["-h", "--help"]  # click keeps them with the verb, for whoever asks next
    with verb.make_context(kind, [*data, *given, *device], help_option_names=names) as ctx:
        return capturing.words(ctx)


def taken(here: Path, worker: Worker, asked: Words | None = None, **more: Any) -> Result:
    silent: dict[str, Any] = {"say": lambda text: None, "warn": lambda text: None}
    return capture_pass.taken(
        asked or words(), root=here, measure=worker, has_gpu=True, **(silent | more)
    )
