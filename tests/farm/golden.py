"""One document of every kind and status, always the same; `python -m tests.farm.golden NAME…`
writes the files of new ones. A file that is there is never rewritten."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from farm import schema
from farm.store import part_key
from tests.farm import golden_instrumented, make

FOLDER: Final = Path(__file__).parent.parent / "golden" / "schema"


def _manifest() -> schema.Manifest:
    job = make.job()
    labels = {"model": "mlp", "precision": "fp32", "batch": "1", "device": "cpu"}
    return schema.Manifest(
        run_id="r-7f3a91",
        name="quickstart",
        submitted_at=make.STARTED,
        submitted_by="ada",
        source="quickstart.yaml",
        source_sha256="0" * 64,
        effort=schema.Effort(level="quick", repeats=2, half_width_ppm=20_000, budget_ms=2_000),
        repeat_set="base",
        jobs=[schema.Labelled(job_id=job.job_id, labels=labels)],
        tags={"branch": "main"},
        skipped=[schema.Skipped(labels={**labels, "device": "h200"}, reason="no h200 here")],
        reused=[
            schema.Reused(
                job_id=job.job_id,
                profile_id="1" * 64,
                system_id=make.SYSTEM,
                taken_at=make.STARTED,
                environment="torch 2.13.0, python 3.11.7",
            )
        ],
    )


def _order() -> schema.Order:
    return schema.Order(
        job=make.job(),
        effort=schema.Effort(),
        repeat_set="base",
        label="mlp/fp32/b1/cpu",
        tags={"branch": "main"},
    )


def _catalog() -> schema.Catalog:
    digest = "1" * 64
    return schema.Catalog(
        number=2,
        parent_sha256="0" * 64,
        written_at=make.STARTED,
        writer="scheduler@laptop",
        swept="2026-11-30",
        parts=[
            schema.CatalogPart(
                key=part_key("2026-11", digest),
                sha256=digest,
                bytes=40_000,
                rows=7,
                started_min=make.STARTED,
                started_max=make.STARTED,
                received_min="2026-11-29",
                received_max="2026-11-30",
            )
        ],
        unreadable=[
            schema.CatalogUnreadable(
                key="inbox/v1/date=2026-11-30/notes.txt",
                reason="the name is not <job id>.<profile id>.json",
            )
        ],
        seal="2" * 64,
    )


DOCUMENTS: Final[dict[str, Callable[[], Struct]]] = {
    "job": make.job,
    "manifest-3": _manifest,
    "order-3": _order,
    "tag": lambda: schema.Tag(run_id="r-7f3a91"),
    "profile-ok-3": lambda: make.profile(flags=["drifting"]),
    "profile-failed-3": lambda: make.profile(status="failed"),
    "profile-infra-3": lambda: make.profile(status="infra", failure=make.fault("worker_lost")),
    "profile-pruned-3": lambda: make.profile(status="pruned"),
    "profile-cancelled-3": lambda: make.profile(status="cancelled"),
    "profile-instrumented-2": golden_instrumented.profile,
    "layer-table": golden_instrumented.layer_table,
    "roofs": golden_instrumented.roofs,
    "system-card": make.card,
    "catalog": _catalog,
    "catalog-head": lambda: schema.CatalogHead(number=2),
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or sorted(DOCUMENTS):
        path = FOLDER / f"{name}.json"
        if not path.exists():
            path.write_bytes(schema.encode(DOCUMENTS[name]()) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
