"""What a device suffers from: kept over restarts, escalated, judged, cleared."""

from datetime import UTC, datetime
from pathlib import Path

from tests.workers.agents import SLOT
from workers.health import Health, case, number_of
from workers.host import Host, boot_of

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ill(folder: Path, severity="hard", *, boot: str = "b1", cause: str = "xid") -> Health:
    health = Health(folder, "2", boot=boot)
    health.fall_ill(severity=severity, cause=cause, note=f"{cause}: 79", job="j", run="r", now=AT)
    return health


def test_a_device_without_a_file_suffers_from_nothing(tmp_path: Path) -> None:
    assert Health(tmp_path, "0").ailment() is None
    assert [] == Health(tmp_path, "0").history()


def test_an_ailment_survives_whoever_noted_it(tmp_path: Path) -> None:
    ill(tmp_path)

    found = Health(tmp_path, "2").ailment()

    assert found is not None
    assert ("hard", "xid", "xid: 79", "j", "r", "2026-11-30T12:00:00Z") == (
        *(found.severity, found.cause, found.note, found.job, found.run, found.at),
    )
    assert Health(tmp_path, "1").ailment() is None


def test_the_first_cause_stays_unless_a_worse_one_comes(tmp_path: Path) -> None:
    """And what the farm made of the milder one says nothing of the worse."""
    health = ill(tmp_path, "soft", cause="throttle")
    health.judged("suspect")

    health.fall_ill(severity="soft", cause="pcie_replay", note="")
    assert ("throttle", "suspect") == (health.history()[-1].cause, health.history()[-1].kind)
    health.fall_ill(severity="hard", cause="xid", note="")

    assert [("throttle", "suspect"), ("xid", "")] == [
        (each.cause, each.kind) for each in health.history()
    ]


def test_what_was_cleared_is_history(tmp_path: Path) -> None:
    health = ill(tmp_path)

    health.clear("new cable")

    assert health.ailment() is None
    assert ["new cable"] == [each.cleared for each in health.history()]
    health.judged("held")  # which comes too late
    health.clear("once more")
    assert [("", "new cable")] == [(each.kind, each.cleared) for each in health.history()]
    ill(tmp_path)
    assert 2 == len(health.history())


def test_a_boot_is_told_from_another(tmp_path: Path) -> None:
    ill(tmp_path, boot="b1")

    assert not Health(tmp_path, "2", boot="b1").is_of_another_boot
    assert Health(tmp_path, "2", boot="b2").is_of_another_boot
    assert not Health(tmp_path, "2").is_of_another_boot  # nobody knows


def test_a_damaged_file_is_no_ailment_and_no_end(tmp_path: Path) -> None:
    health = ill(tmp_path)
    (tmp_path / "health" / "2.json").write_text("[{")

    assert health.ailment() is None
    ill(tmp_path)
    assert health.ailment() is not None


def test_the_history_is_bounded(tmp_path: Path) -> None:
    for _ in range(60):
        ill(tmp_path).clear("x")

    assert 50 == len(Health(tmp_path, "2").history())


def test_the_farm_is_asked_about_the_device_and_its_job(tmp_path: Path) -> None:
    found = ill(tmp_path).ailment()
    assert found is not None

    asked = case(SLOT, found, driver="570.1")

    assert ("n1", "cpu:0", "test-cpu_1c", "hard", "xid", "j", "r", "570.1") == (
        *(asked.node, asked.slot, asked.class_, asked.severity),
        *(asked.cause, asked.job, asked.run, asked.driver),
    )
    assert "0" == number_of(SLOT)


def test_a_boot_is_named_by_a_hash(tmp_path: Path) -> None:
    """The kernel's own word for it names this machine at this time."""
    file = tmp_path / "proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True)
    file.write_text("0f1e2d3c\n")

    assert 16 == len(boot_of(Host(tmp_path)))
    assert "0f1e2d3c" not in boot_of(Host(tmp_path))
    assert "" == boot_of(Host(tmp_path / "none"))
