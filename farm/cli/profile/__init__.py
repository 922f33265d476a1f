"""`farm profile`: the instrument itself, on one thing, here; no server and no store."""

import click

from farm.cli.group import Verbs
from farm.cli.profile import calling, capturing, comparing, costing, layering, tracing


@click.group(cls=Verbs)
def profile() -> None:
    """Profile one model or function here, or read what such a profile found."""


profile.add(
    "Measure", calling.callable_, layering.layers, costing.cost, capturing.run, capturing.infer
)
profile.add(
    "Read",
    tracing.summary,
    tracing.get,
    tracing.phases,
    tracing.kernels,
    tracing.ops,
    comparing.compare,
    tracing.what_if,
)
