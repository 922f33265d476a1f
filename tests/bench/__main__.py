"""Print the page: `python -m tests.bench`, or some of its parts by name."""

import os
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.bench import (
    agreement,
    catalog,
    idle,
    job,
    layers,
    loop,
    queue,
    roofline,
    statistics,
    store,
    traces,
    watch,
)
from tests.bench.row import Row, page

PARTS = {
    "loop": loop.rows,
    "agreement": agreement.rows,
    "statistics": statistics.rows,
    "layers": layers.rows,
    "roofline": roofline.rows,
    "job": job.rows,
    "queue": queue.rows,
    "idle": idle.rows,
    "store": store.rows,
    "watch": watch.rows,
    "catalog": catalog.rows,
    "traces": traces.rows,
}


def main(names: list[str]) -> None:
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, python {platform.python_version()}, "
          f"{os.cpu_count()} CPUs, load {load}")  # fmt: skip

    def rows() -> Iterator[Row]:
        for name in names or list(PARTS):
            yield from PARTS[name]()

    for line in page(rows()):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
