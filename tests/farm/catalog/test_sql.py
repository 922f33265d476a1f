"""What SQL chooses is what plain Python chooses, whatever attempts there were."""

import random
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.catalog import columns, sql, winners
from farm.catalog.engine import Engine
from farm.errors import Refused
from farm.runs import moment
from tests.farm import make
from tests.farm.catalog.test_winners import RANKED

SYSTEMS = [make.SYSTEM, make.OTHER_SYSTEM]
SETS = ["base", "n-2026-11-29", "n-2026-11-30"]
DIGESTS = ["0" * 64, "1" * 64]


def attempt(end, fence, batch, system, repeat_set, digest, hour, unjudged):
    asked = make.job(batch=batch)
    model = msgspec.structs.replace(asked.workload.model, digest=digest)
    workload = msgspec.structs.replace(asked.workload, model=model)
    # no two sets, workloads or systems begin at the same moment
    second = SYSTEMS.index(system) + 2 * SETS.index(repeat_set) + 6 * DIGESTS.index(digest)
    made = make.profile(
        msgspec.structs.replace(asked, workload=workload),
        fence=fence,
        system_id=system,
        repeat_set=repeat_set,
        started_at=f"2026-11-30T{hour:02}:00:{second:02}Z",
        **end,
    )
    return make.row(msgspec.structs.replace(made, quality=msgspec.UNSET) if unjudged else made)


attempts = st.builds(
    attempt,
    st.sampled_from(RANKED),
    st.integers(1, 3),
    st.sampled_from([1, 8]),
    st.sampled_from(SYSTEMS),
    st.sampled_from(SETS),
    st.sampled_from(DIGESTS),
    st.integers(8, 10),
    st.booleans(),
)


def engine(rows, folder):
    lines = [msgspec.json.encode(columns.flat(each)) for each in rows]
    return Engine([], lines, folder=folder)


def cells(rows) -> set[str]:
    """The law of the overview: newest set, newest workload, best end, newest fence, newest."""
    groups: dict[tuple[str, str, str], list] = {}
    for each in winners.winners(rows):
        profile = each.row.profile
        key = (profile.cell_id, profile.system_class, profile.protocol_id)
        groups.setdefault(key, []).append(each.row)

    def began(row):
        return moment(row.profile.execution.started_at)

    def kind(row):
        return row.profile.repeat_set, row.profile.workload_id

    def best(row):
        return winners.order(row)[:2], -began(row).timestamp()

    found = set()
    for group in groups.values():
        newest = kind(max(group, key=began))
        found.add(min((row for row in group if kind(row) == newest), key=best).profile_id)
    return found


def agree(rows, folder) -> None:
    made = engine([*rows, *rows[:3]], folder)

    found = made.winners({}, ["profile_id", "attempts"]).rows
    overview = made.cells({}).rows
    made.close()

    expected = [(each.row.profile_id, each.attempts) for each in winners.winners(rows)]
    assert sorted(expected) == sorted(found)
    at = sql.CELL_COLUMNS.index("profile_id")
    assert sorted(cells(rows)) == sorted(str(each[at]) for each in overview)


@settings(max_examples=3)
@given(rows=st.lists(attempts, max_size=12))
def test_winners_and_cells_are_those_of_plain_python(tmp_path_factory, rows):
    """All ends, fences, systems, sets, digests and verdicts; a profile read twice is one."""
    agree(rows, tmp_path_factory.mktemp("engine"))


def test_winners_and_cells_of_many_attempts_are_those_of_plain_python(tmp_path, seed):
    """A crowd, in which every rule decides somewhere."""
    rng = random.Random(seed)
    rows = [
        attempt(
            rng.choice(RANKED),
            fence=rng.randint(1, 9),
            batch=rng.choice([1, 2, 4, 8]),
            system=rng.choice(SYSTEMS),
            repeat_set=rng.choice(SETS),
            digest=rng.choice(DIGESTS),
            hour=rng.randint(8, 10),
            unjudged=rng.random() < 0.2,
        )
        for _ in range(300)
    ]

    agree(rows, tmp_path)


def test_a_profile_that_was_read_twice_counts_once_everywhere(tmp_path):
    """Sent on two days far apart, it lies in two parts."""
    twice = make.profile(fence=2)
    rows = [make.row(twice), make.row(fence=1), make.row(twice, day="2026-12-20")]
    made = engine(rows, tmp_path)

    counted = made.query("SELECT count(*), min(received) FROM profiles", deadline_s=9).rows
    won = made.winners({}, ["received", "attempts"]).rows
    made.close()

    assert [(2, "2026-11-30")] == counted
    assert [("2026-11-30", 2)] == won


def test_nights_are_the_winners_of_nightly_sets(tmp_path):
    """A plain run, a forced one and the loser of a night are none."""
    rows = [
        make.row(repeat_set="n-2026-11-30", fence=1),
        make.row(repeat_set="n-2026-11-30", fence=2, p50_ms=8.0),
        make.row(repeat_set="base"),
        make.row(repeat_set="n-2026-11-30-p07"),
    ]
    made = engine(rows, tmp_path)

    found = made.query("SELECT night, median, repeats_n, attempts FROM nights", deadline_s=9)
    named = made.query("SELECT * FROM nights", deadline_s=9).columns
    made.close()

    assert [("2026-11-30", 8.0, 3, 2)] == found.rows
    assert sql.NIGHT_COLUMNS == named


def test_a_time_says_that_it_is_utc(tmp_path):
    made = engine([make.row()], tmp_path)

    (row,) = made.query(
        "SELECT started_at, list(started_at)[1] FROM winners GROUP BY 1", deadline_s=9
    ).rows
    made.close()

    assert datetime(2026, 11, 30, 10, 15, tzinfo=UTC) == row[0]


WHERE = {
    "model": ("mlp", "vit"),
    "precision": ("fp32", "fp16"),
    "batch": ("1", "8"),
    "device": ("cpu", "gpu"),
    "backend": ("torch", "fake"),
    "status": ("ok", "failed"),
    "validity": ("valid", "invalid"),
    "run": (make.RUN, "r-1"),
    "repeat_set": ("base", "n-2026-11-30"),
    "node": ("laptop", "tower"),
    "slot": ("cpu:0", "cpu:1"),
    "system_class": ("epyc-7b13-2c", "m1"),
    "system": (make.SYSTEM, make.OTHER_SYSTEM),
    "environment": ("default", "nightly"),
    "simulated": ("false", "true"),
    "cell": (make.job().cell_id, "0" * 32),
    "protocol": (make.job().protocol_id, "0" * 32),
    "job": (make.job().job_id, "0" * 32),
}


def test_every_key_chooses(tmp_path):
    made = engine([make.row()], tmp_path)

    chosen = {
        key: [len(made.winners({key: value}, ["job_id"]).rows) for value in values]
        for key, values in WHERE.items()
    }
    made.close()

    assert {key: [1, 0] for key in sql.WHERE} == chosen


def test_all_keys_must_hold_for_the_winner(tmp_path):
    """What is chosen is chosen among winners: a loser does not step into its place."""
    rows = [make.row(fence=1, node="a"), make.row(fence=2, node="b")]
    made = engine(rows, tmp_path)

    found = [
        made.cells(where).rows
        for where in ({"node": "a"}, {"node": "b"}, {"node": "b", "model": "vit"})
    ]
    made.close()

    assert [0, 1, 0] == [len(each) for each in found]


@pytest.mark.parametrize("value", ["'; DROP VIEW winners; --", "mlp' OR '1'='1", "%", '"'])
def test_a_value_is_never_sql(tmp_path, value):
    made = engine([make.row()], tmp_path)

    assert [] == made.cells({"model": value}).rows
    assert 1 == len(made.cells({}).rows)
    made.close()


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ({"modell": "mlp"}, "did you mean `model`?"),
        ({"run_id": "r"}, "did you mean `run`?"),
        ({"colour": "red"}, ""),
        ({"batch": "many"}, ""),
        ({"batch": "9" * 40}, ""),
        ({"batch": "-1"}, ""),
        ({"simulated": "yes"}, ""),
    ],
)
def test_a_key_or_a_value_that_cannot_match_is_refused(where, hint):
    with pytest.raises(Refused) as refused:
        sql.chosen(where)

    assert hint == refused.value.hint


def test_a_column_that_there_is_not_is_refused():
    with pytest.raises(Refused) as refused:
        sql.winners({}, ["p50_ms", "p9_ms"])

    assert "did you mean `p99_ms`?" == refused.value.hint
