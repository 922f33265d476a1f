"""A worker that answers with a layer table, and the words that ask it."""

from pathlib import Path

import msgspec
import numpy as np

from farm import once
from farm.cli.profile import layer_pass
from farm.cli.profile.layer_job import Words
from farm.errors import NoResult
from farm.trace.documents import LayersTaken
from tests.farm import make


class Worker:
    """Answers as `once.measure` does; asked: what it was asked, device by device.

    keeps: whether it can keep an output that was asked for.
    """

    def __init__(self, *names, table=True, lacks=(), keeps=True, **more):
        self.table = make.layer_table(*(names or ("a", "b")), **more) if table else None
        self.lacks, self.keeps, self.asked, self.inputs = lacks, keeps, [], {}

    def __call__(self, asked, *, say):
        self.asked.append(asked)
        if asked.npz:
            with np.load(asked.npz) as data:
                self.inputs = {name: data[name] for name in data.files}
        self.code = [each.name for each in Path(asked.bundle).rglob("*.py")] if asked.bundle else []
        if asked.device in self.lacks:
            raise NoResult(f"no device {asked.device!r} here")
        folder = Path(asked.folder)
        if asked.output and self.keeps:
            np.savez(folder / "output.npz", output_0=np.zeros(3))
        return once.Measured(
            profile=self.profile(asked), card=make.card(), folder=folder, layers=self.table
        )

    def profile(self, asked):
        made = make.profile(asked.job)
        if asked.output and not self.keeps:
            said = ["the output was not kept: error: no room"]
            made = msgspec.structs.replace(made, warnings=said)
        if not asked.passes:
            bare = {
                "repeats": [],
                **dict.fromkeys(("latency", "throughput", "memory"), msgspec.UNSET),
            }
            made = msgspec.structs.replace(made, null_reasons={}, **bare)
        return made


def words(model="mlp", **more) -> Words:
    fields = {
        "model": model,
        "given": None,
        "output": None,
        "force": False,
        "iterations": 100,
        "csv": Path("profile_layers.csv"),
        "benchmark": False,
        "precision": "fp32",
        "batch": None,
        "device": None,
    }
    return Words(**{**fields, **more})


def taken(here, worker, asked=None, *, has_gpu=False, warn=lambda text: None) -> LayersTaken:
    return layer_pass.taken(
        asked or words(),
        root=here,
        level="quick",
        has_gpu=has_gpu,
        measure=worker,
        say=lambda text: None,
        warn=warn,
    )


def saved(name: str, **arrays) -> str:
    np.savez(name, **arrays)
    return name
