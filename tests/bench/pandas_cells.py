"""The overview of a catalogue as a person would write it with pandas: `pandas_cells.py FILE…`.

The same work as `Catalog.cells`: attempts ranked, one winner for each job, system and repeat set,
then the newest set of each series. JSON documents are read one by one, as there is no part of them.
"""

import hashlib
import json
import sys
from pathlib import Path

import pandas as pd

KEY = ["job_id", "system_id", "repeat_set"]
SERIES = ["cell_id", "system_class", "protocol_id"]
SHOWN = [
    *("model", "precision", "batch", "device", "node", "status", "failure_kind", "validity"),
    *("stability", "flags", "p50_ms", "p50_lo_ms", "p50_hi_ms", "n", "throughput_items_per_s"),
    *("cpu_rss_peak_bytes", "started_at", "workload_id", "fence", "profile_id"),
]


def cells(found: pd.DataFrame) -> pd.DataFrame:
    good = found["validity"].isin(["valid", "degraded"])
    found["rank"] = 3
    found.loc[found["status"].isin(["failed", "pruned"]), "rank"] = 2
    found.loc[found["status"] == "ok", "rank"] = 1
    found.loc[(found["status"] == "ok") & good, "rank"] = 0
    best = ["rank", "fence", "profile_id"]
    found = found.sort_values(best, ascending=[True, False, True])
    found["attempts"] = found.groupby(KEY)["profile_id"].transform("size")
    won = found.drop_duplicates(KEY)
    newest = won.sort_values(["started_at", "repeat_set", "workload_id"])
    newest = newest.drop_duplicates(SERIES, keep="last")
    scope = won.merge(newest[[*SERIES, "repeat_set", "workload_id"]])
    return scope.sort_values(best, ascending=[True, False, True]).drop_duplicates(SERIES)


def read(files: list[str]) -> pd.DataFrame:
    if files[0].endswith(".parquet"):
        return pd.read_parquet(files, columns=[*KEY, *SERIES, *SHOWN])
    return pd.DataFrame([row(file) for file in files])


def row(file: str) -> dict[str, object]:
    with open(file, "rb") as source:
        data = source.read()
    found = json.loads(data)
    blocks = ("throughput", "memory", "latency", "quality", "execution")
    held = {name: value for each in blocks for name, value in found.get(each, {}).items()}
    work = found["job"]["workload"]
    return (
        {name: held.get(name) for name in SHOWN}
        | {name: found[name] for name in [*KEY, *SERIES, "status", "workload_id", "fence"]}
        | {"model": work["model"]["name"], "precision": work["precision"], "batch": work["batch"]}
        | {"failure_kind": found.get("failure", {}).get("kind")}
        | {"profile_id": hashlib.sha256(data).hexdigest()}
    )


def main() -> None:
    files = sys.argv[1:] if sys.argv[1] != "-" else sys.stdin.read().split()
    ids = sorted(cells(read(files))["profile_id"])
    digest = hashlib.sha256("".join(ids).encode()).hexdigest()
    held = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    print(json.dumps({"cells": digest, "peak_mib": int(held) / 1024}))


if __name__ == "__main__":
    main()
