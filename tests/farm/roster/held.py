"""Profiles as a roster holds them: plain data of either kind, ready to be spoiled."""

import json

import msgspec

from farm import interchange, schema
from farm.roster import Expected, Report, Roster
from tests.farm import make
from tests.farm.interchange import calls


def expected(model="mlp", **more) -> Expected:
    return Expected(**({"task": "depth", "model": model} | more))


def roster(*models: Expected) -> Roster:
    return Roster(name="depth", models=list(models) or [expected()])


def profile(model="mlp", *, cost_of: schema.Cost | None = None, **more) -> Report:
    """A profile of a sweep with its cost, as a report."""
    made = make.profile(make.job(model), **more)
    made = msgspec.structs.replace(made, cost=cost_of or make.cost())
    return Report(f"{model}-profile", json.loads(msgspec.json.encode(made)))


def callable_json(where="predict.json", **changes) -> Report:
    """A callable JSON, as a report."""
    return Report(where, json.loads(interchange.encode(calls.document(**changes))))


def spoiled(report: Report, path: str, value: object) -> Report:
    """The same report with another value at a path."""
    plain = json.loads(json.dumps(report.plain))
    inner = plain
    *way, last = path.split(".")
    for key in way:
        inner = inner[key]
    inner[last] = value
    return report._replace(plain=plain)
