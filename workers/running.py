"""One child at work: what it measures, what it found so far, and how each phase ended."""

import contextlib
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from farm.schema import Phase
from workers.backends import NotOffered, Step
from workers.bench import Bench, Clock, Samples
from workers.record import OUTPUT, Assignment


@dataclass
class Run:
    """A loaded step under measurement. found: fields of the record; done: phases that ended."""

    asked: Assignment
    step: Step
    bench: Bench
    found: dict[str, Any]
    done: list[Phase]
    samples: Samples = field(default_factory=Samples)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Run a phase that must succeed: what it raises goes on upwards."""
        self.bench.progress(name, 0)
        instrumented = bool(self.asked.instruments)
        with recorded(self.done, name, self.bench.clock, instrumented=instrumented):
            self.step.enter(name)
            yield

    @contextlib.contextmanager
    def own(self, name: str) -> Iterator[None]:
        """Run a phase whose failure costs its own fields and nothing else, and is told.

        The step has just run many times; what it raises now is the user's.
        """
        try:
            with self.phase(name):
                yield
        except NotOffered as why:
            self.found["reasons"][name] = str(why)
        except Exception as error:
            print_trace(error)
            told = f"phase_failed: {type(error).__name__}: {error}"[:300]
            self.found["reasons"][name] = printable(told)
            self.found["flags"].append("pass_failed")


@contextlib.contextmanager
def recorded(
    phases: list[Phase], name: str, clock: Clock, *, instrumented: bool = False
) -> Iterator[None]:
    """Record how a phase ended and how long it took; what it raises goes on upwards."""
    began = clock()
    status, reason = "done", ""
    try:
        yield
    except NotOffered as why:
        status, reason = "skipped", str(why)
        raise
    except BaseException as error:
        status, reason = "failed", printable(f"{type(error).__name__}: {error}"[:500])
        raise
    finally:
        phases.append(
            Phase(
                name=name,
                status=status,  # type: ignore[arg-type]
                duration_s=round((clock() - began) / 1e9, 6),
                reason=reason,
                instrumented=instrumented,
            )
        )


def printable(text: str) -> str:
    """Return what a model said as text that a document can hold: half characters are spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_trace(error: BaseException) -> None:
    """Print a traceback into the job's log, which is stored with the profile."""
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()


def keep_output(run: Run, output: object, *, most: int | None) -> None:
    """Keep the arrays of an output, whole or not at all; most: bytes, None for any number."""
    arrays = run.step.arrays(output)
    if not arrays or (most is not None and sum(each.nbytes for each in arrays.values()) > most):
        return
    partial = Path(run.asked.folder) / ".output.npz.tmp"
    with partial.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays)
    partial.rename(partial.with_name(OUTPUT))
