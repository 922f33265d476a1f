"""One child at work: what it measures, what it found so far, and how each phase ended."""

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from farm import npz
from farm.schema import Phase
from workers.backends import NotOffered, Step
from workers.bench import Bench, Clock, Samples
from workers.record import OUTPUT, Assignment

_SUBNORMAL_LIMIT: Final = 0.001


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
    """Keep the arrays of an output, or note why it is not kept; it never fails a job.

    most: bytes, None for any number because it was asked for: then it is told as well that there is
    nothing to keep.
    """
    try:
        arrays = run.step.arrays(output)
        if not arrays:
            why = "" if most is not None else "not_applicable: the step returned no array"
        elif most is not None and sum(each.nbytes for each in arrays.values()) > most:
            why = ""
        else:
            why = _kept(Path(run.asked.folder) / OUTPUT, arrays)
    # To look into an output runs code of the user's, as a mapping or a record may be theirs.
    except Exception as error:
        print_trace(error)
        why = f"error: {type(error).__name__}: {error}"
    if why:
        run.found["reasons"]["output"] = printable(why[:300])


def _kept(path: Path, arrays: "npz.Arrays") -> str:
    """Write the arrays; return why that could not be done, or ""."""
    try:
        npz.save(path, arrays)
    except ValueError as error:
        return f"not_supported: {error}"
    except OSError as error:
        return f"error: it cannot be written: {error.strerror}"
    return ""


def note_facts(run: Run) -> None:
    """Note what the step ran as so far, and where that is not what was leased to it."""
    step, assignment, found = run.step, run.asked, run.found
    facts = step.facts()
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    found.update(
        precision_observed=dict(facts.precision_observed),
        effective_threads=dict(facts.effective_threads),
        resolved=dict(facts.resolved),
        subnormal_share=facts.subnormal_share,
        output_digest=facts.output_digest,
        waits_ns=list(facts.waits_ns),
        loaders=facts.loaders,
        pipeline=facts.pipeline,
        unused=list(facts.unused),
        notes=list(facts.notes),
        affinity=affinity,
    )
    if (facts.subnormal_share or 0.0) > _SUBNORMAL_LIMIT:
        found["flags"].append("denormals")
    if affinity and assignment.cores and not set(affinity) <= set(assignment.cores):
        found["flags"].append("left_its_cores")
    leased = min(assignment.threads, len(assignment.cores) or assignment.threads)
    if max(facts.effective_threads.values(), default=0) > leased:
        found["flags"].append("too_many_threads")
    if step.inputs_mutated():
        found["flags"].append("inputs_mutated")
