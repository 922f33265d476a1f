"""What the findings of a doctor come to: an exit code, rows, cures to paste, one document."""

import msgspec
import pytest

from farm import answers
from farm.doctor.findings import About, Finding, blocks, cures, document, exit_code
from farm.report.table import Table

HERE = About("broker")
OK = HERE.ok("version", "valkey 9.1")
WARN = HERE.warn("clock", "3s behind", cure="sudo timedatectl set-ntp true")
FAIL = HERE.fail("eviction", "allkeys-lru", cure="redis-cli CONFIG SET maxmemory-policy noeviction")
AWAY = HERE.fail("connection", "nothing listens", cure="redis-server", code=4)
WORDS = About("settings").fail("values", "unknown setting", cure="", code=2)
SKIPPED = HERE.skipped("server", "no broker")


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([], 0),
        ([OK, WARN, SKIPPED], 0),
        ([OK, AWAY], 4),
        ([AWAY, FAIL], 1),
        ([FAIL, AWAY, WORDS], 2),
    ],
)
def test_what_no_retry_cures_decides_the_exit_code(findings: list[Finding], code: int) -> None:
    """2 before 1 before 4 before 0: 4 promises that trying again may be all it takes."""
    assert code == exit_code(findings)


def test_every_finding_is_one_row_and_the_states_are_counted() -> None:
    table, line = blocks([OK, WARN, FAIL, AWAY, SKIPPED])

    assert isinstance(table, Table)
    assert ["✓ ok", "! warning", "✗ failed", "✗ failed", "○ skipped"] == [
        row[2].text for row in table.rows
    ]
    assert "1 ok · 1 warning · 2 failed · 1 skipped" == line


def test_a_state_that_nothing_has_is_not_counted() -> None:
    assert "10 ok" == blocks([OK] * 10)[1]


def test_cures_stand_alone_on_their_lines_the_failed_first() -> None:
    """A line can be pasted as it is; what is wrong stands whole above it."""
    assert (
        "\nbroker, eviction: allkeys-lru\n  redis-cli CONFIG SET maxmemory-policy noeviction\n"
        "\nbroker, clock: 3s behind\n  sudo timedatectl set-ntp true\n"
    ) == cures([OK, WARN, FAIL, SKIPPED])
    assert "" == cures([OK, SKIPPED])


def test_the_document_is_the_one_that_the_schema_prints() -> None:
    told = msgspec.convert(document([OK, WARN, FAIL, SKIPPED]), answers.Examined, strict=True)

    assert (1, 1, 1, 4) == (told.ok, told.warn, told.fail, len(told.findings))


def test_the_document_is_plain_data_and_counts() -> None:
    assert {
        "schema": "farm.doctor/v1",
        "findings": [
            {
                "subject": "broker",
                "name": "connection",
                "state": "fail",
                "said": "nothing listens",
                "cure": "redis-server",
            }
        ],
        "ok": 0,
        "warn": 0,
        "fail": 1,
    } == document([AWAY])
