"""One report with every state in it, and what its forms looked like when a person read them.

`python -m tests.farm.report.sample` writes the golden files anew; read the difference before you
keep it.
"""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from farm import schema
from farm.catalog.rows import Unreadable
from farm.catalog.winners import winners
from farm.console import Console
from farm.report import charts, model, text
from farm.report.record import Report
from tests.farm import make

GOLDEN = Path(__file__).parents[2] / "golden" / "report"
NOW = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
BASE = {"resnet18": 9.3, "vit_tiny": 14.1, "mlp": 0.083}
GROWS = {1: 1.0, 8: 5.5, 32: 18.0}


def report() -> Report:
    """Every state, every mark: failed, invalid, degraded, noisy, reused, skipped and missing."""
    jobs = [
        make.job(name, precision=precision, batch=batch)
        for name in BASE
        for precision in ("fp32", "bf16")
        for batch in (1, 8, 32)
    ]
    rows = [make.row(each) for job in jobs if (each := _profile(job)) is not None]
    reused = rows[0].profile
    skipped = {"model": "vit_tiny", "precision": "fp8", "batch": "1", "device": "cpu"}
    manifest = make.manifest(
        jobs,
        skipped=[schema.Skipped(labels=skipped, reason="fp8 is not supported on this device")],
        reused=[
            schema.Reused(
                job_id=reused.job_id,
                profile_id=rows[0].profile_id,
                system_id=reused.system_id,
                taken_at=reused.execution.finished_at,
                environment="default",
            )
        ],
    )
    made = model.build(
        manifest,
        winners(rows),
        cards={reused.card_id: make.card()},
        now=NOW,
        unreadable=[Unreadable("inbox/v1/date=2026-11-30/torn.json", "the document is not JSON")],
    )
    return msgspec.structs.replace(made, farm_version="0.1.0")


def forms() -> dict[str, str]:
    """Return every text form of the report by the name of its golden file."""
    made = report()
    drawn = [
        {"name": each.name, "caption": each.caption, "spec": each.spec, "rows": each.rows}
        for each in charts.latency(made)
    ]
    return {
        "report.json": _pretty(msgspec.json.decode(schema.encode(made))),
        "report.md": text.markdown(made),
        "report.csv": text.comma_separated(made),
        "report.txt": piped(made),
        "charts.json": _pretty(drawn),
    }


def piped(made: Report) -> str:
    """Return what `farm report` writes into a pipe."""
    out = io.StringIO()
    Console(out, io.StringIO(), environ={}).show(*text.blocks(made))
    return out.getvalue()


def _profile(job: schema.Job) -> schema.Profile | None:
    work = job.workload
    name, precision, batch = work.model.name, work.precision, work.batch
    p50 = BASE[name] * GROWS[batch] * (0.62 if precision == "bf16" else 1.0)
    changed = {
        ("resnet18", "fp32", 1): {"run_id": "r-before", "finished_at": "2026-11-28T09:00:00Z"},
        ("resnet18", "fp32", 32): {"status": "failed"},
        ("resnet18", "bf16", 8): {"flags": ["drifting"], "stability": "acceptable"},
        ("resnet18", "bf16", 32): {
            "status": "pruned",
            "failure": make.fault("oom", message="batch 8 left no room"),
        },
        ("vit_tiny", "fp32", 8): {"stability": "noisy"},
        ("vit_tiny", "fp32", 32): {
            "flags": ["contended"],
            "neighbours": ["chrome (pid 812), 64 % of a core"],
        },
        ("vit_tiny", "bf16", 32): {
            "status": "infra",
            "failure": make.fault("worker_lost", message="no heartbeat for 90 s"),
        },
        ("mlp", "fp32", 1): {"flags": ["timer_limited"], "rss_bytes": None},
        ("mlp", "fp32", 8): {"half_rel": 0.08},
        ("mlp", "bf16", 32): {"repeats": 1, "n": 40},
    }.get((name, precision, batch), {})
    if (name, precision, batch) == ("mlp", "bf16", 8):
        return None
    given = {"half_rel": 0.006, "throughput": batch * 1050 / p50} | changed
    return make.profile(job, p50_ms=p50, **given)


def _pretty(plain: object) -> str:
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, content in forms().items():
        (GOLDEN / name).write_text(content, encoding="utf-8")
