"""A report whose every name was written by an enemy."""

from datetime import UTC, datetime

from farm import schema
from farm.catalog.rows import Unreadable
from farm.catalog.winners import winners
from farm.report import model
from farm.report.record import Report
from tests.farm import make

NAMES = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "x" * 10_000,
    "{{7*7}} {%raw%} ${1} &lt; \"quoted\" 'single'",
    "\x1b[31mred\x07",
    '=cmd|"/c calc"!A1',
    "a|b\n# heading [x](javascript:alert(1)) `code` __bold__",
    "]]><!--",
    " ",
)


def report() -> Report:
    """Names in every place that a person or a model can write into."""
    jobs, labelled, rows = [], [], []
    for at, name in enumerate(NAMES):
        job = make.job(f"m{at}")
        labels = {"model": name, "precision": "fp32", "batch": "1", "device": NAMES[-1 - at]}
        jobs.append(job)
        labelled.append(schema.Labelled(job_id=job.job_id, labels=labels))
        if at % 3 == 2:
            fault = make.fault("model_error", message=name, hint=name, log_tail=f"{name}\n\t{name}")
            rows.append(make.row(make.profile(job, status="failed", failure=fault)))
        else:
            flags = ["contended"] if at == 1 else []
            made = make.profile(job, p50_ms=3.0 + at, flags=flags, neighbours=[name], node=name)
            rows.append(make.row(made))
    manifest = make.manifest(
        jobs=labelled,
        name=NAMES[0] + NAMES[1],
        run_id=make.RUN,
        submitted_by=NAMES[2],
        source=NAMES[3],
        tags={NAMES[4]: NAMES[1]},
        skipped=[schema.Skipped(labels={"model": NAMES[0], NAMES[1]: NAMES[2]}, reason=NAMES[1])],
    )
    return model.build(
        manifest,
        winners(rows),
        cards={rows[0].profile.card_id: make.card(model=NAMES[1])},
        now=datetime(2026, 11, 30, 11, 0, tzinfo=UTC),
        unreadable=[Unreadable(NAMES[0], NAMES[1])],
    )
