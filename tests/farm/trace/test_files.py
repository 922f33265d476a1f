"""Layer CSVs on disk: what an append leaves alone, and which block an address means."""

import os
import threading
from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.errors import Bad, NoResult, Refused
from farm.trace import blocks, files, sidecar
from tests.farm.trace.passes import ns, table


def appended(path: Path, *names: str, job: str = "j1") -> int:
    """Append a block with these layers, each slower than the one before."""
    made = table(list(names), ns(*([10 * at, 10 * at + 2] for at in range(1, len(names) + 1))))
    about = sidecar.about(made, written_at="2026-11-30T10:00:00Z", job_id=job, model="mlp", batch=4)
    return files.append(path, blocks.rows_of(made), about)


@pytest.mark.seed("S0.22", "S0.23")
def test_an_append_changes_no_byte_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "profile_layers.csv"
    assert 1 == appended(path, "a", "b")
    before = path.read_bytes()

    assert 2 == appended(path, "a", "b", "c")

    assert path.read_bytes().startswith(before)
    assert 2 == path.read_text().count(blocks.HEADER)


@pytest.mark.seed("S0.22")
def test_a_last_line_without_its_end_gets_one_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    torn = f"{blocks.HEADER}\na,100.0,1,1,1,1"
    path.write_text(torn)

    assert 2 == appended(path, "b")

    assert path.read_text().startswith(f"{torn}\n{blocks.HEADER}\n")
    assert "b" == files.read(files.address(str(path))).rows[0].layer


@pytest.mark.seed("S0.25")
def test_the_sidecar_says_which_run_a_block_is(tmp_path: Path) -> None:
    """B37: nothing in the CSV does."""
    path = tmp_path / "profile_layers.csv"
    for job in ("j1", "j2"):
        appended(path, "a", job=job)

    found = sidecar.load(path)

    assert found is not None
    assert [("j1", 1), ("j2", 2)] == [(each.job_id, each.number) for each in found.blocks]
    first = found.blocks[0]
    assert ("fp32", "cpu:0", "wall", 5, 2) == (
        *(first.precision, first.device, first.clock),
        *(first.warmup_iterations, first.iterations),
    )
    assert tmp_path / "profile_layers.json" == sidecar.beside(path)
    data = path.read_bytes()
    for each in found.blocks:
        assert data[each.offset :].startswith(blocks.HEADER.encode())
    schema.encode(found)


@pytest.mark.seed("S0.24")
def test_an_address_means_one_block_and_without_a_number_the_last(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    for name in "abc":
        appended(path, name, job=f"job-{name}")

    second, last = (files.read(files.address(f"{path}{each}")) for each in ("#2", ""))

    assert ("b", 2, 3, "job-b") == (
        *(second.rows[0].layer, second.number, second.of),
        second.about.job_id if second.about else "",
    )
    assert ("c", f"{path}#3") == (last.rows[0].layer, last.name)


def test_a_file_whose_name_ends_like_an_address_is_meant_by_it(tmp_path: Path) -> None:
    path = tmp_path / "run#1.csv#2"
    appended(path, "a")

    assert files.Address(path, None) == files.address(str(path))
    assert files.Address(tmp_path / "run#1.csv", 7) == files.address(f"{tmp_path}/run#1.csv#7")


@pytest.mark.parametrize("word", ["f.csv#0", "f.csv#x", "f.csv#", "f.csv#-1", "f.csv#²"])
def test_a_number_that_counts_no_block_is_refused(word: str) -> None:
    with pytest.raises(Refused, match="names no block"):
        files.address(word)


def test_a_block_that_is_not_there_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    appended(path, "a")

    with pytest.raises(NoResult, match="it has 1"):
        files.read(files.address(f"{path}#2"))


def test_a_block_that_was_edited_is_told_from_the_others(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    for name in "ab":
        appended(path, name)
    path.write_text(path.read_text().replace("a,100.0", "a,99.0", 1))

    first, second = (files.read(files.Address(path, number)) for number in (1, 2))

    assert (None, True) == (first.about, "it was edited" in first.doubt)
    assert ("", True) == (second.doubt, second.about is not None)


def test_a_block_is_known_wherever_it_was_moved(tmp_path: Path) -> None:
    """A person may delete the first block of a file."""
    path = tmp_path / "f.csv"
    for name in "ab":
        appended(path, name, job=name)
    text = path.read_text()
    path.write_text(text[text.index(blocks.HEADER, 1) :])

    found = files.read(files.Address(path, 1))

    assert found.about is not None
    assert "b" == found.about.job_id


def test_a_file_of_another_tool_has_no_run_and_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")

    found = files.read(files.address(str(path)))

    assert (None, "no file beside it says which run it is") == (found.about, found.doubt)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe", b'{"schema": "x"}'])
def test_what_is_no_layer_csv_is_told(tmp_path: Path, content: bytes) -> None:
    """An empty file is one that nothing can be said about, the others are something else."""
    path = tmp_path / "f.csv"
    path.write_bytes(content)

    with pytest.raises(Refused if content else Bad):
        files.read(files.address(str(path)))


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="cannot read"):
        files.read(files.Address(tmp_path / name, None))


# ── what is refused before anything is measured ──────────────────────────────────────────────────


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    files.check(tmp_path / "new" / "f.csv")

    assert [] == list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "hello"])
def test_another_kind_of_file_is_not_appended_to(tmp_path: Path, content: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(content)

    for act in (lambda: files.check(path), lambda: appended(path, "a")):
        with pytest.raises(Refused, match="is no layer CSV"):
            act()
    assert content == path.read_text()


@pytest.mark.parametrize(
    "other", ['{"mine": 1}', "not json", '{"schema":"farm.layers/v1","file":"other.csv"}']
)
def test_a_file_of_somebody_else_beside_it_is_not_replaced(tmp_path: Path, other: str) -> None:
    path, beside = tmp_path / "f.csv", tmp_path / "f.json"
    beside.write_text(other)

    with pytest.raises(Refused, match=r"f\.json"):
        files.check(path)
    assert other == beside.read_text()


def test_two_tables_never_share_a_sidecar(tmp_path: Path) -> None:
    appended(tmp_path / "f.csv", "a")

    with pytest.raises(Refused, match=r"belongs to 'f\.csv'"):
        files.check(tmp_path / "f.tsv")
    with pytest.raises(Refused, match="would have the same name"):
        files.check(tmp_path / "f.json")


@pytest.mark.parametrize("name", [".", "file.txt/f.csv"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("")

    with pytest.raises(Refused):
        files.check(tmp_path / name)
    with pytest.raises(Refused):
        appended(tmp_path / name, "a")


def test_what_is_no_plain_file_gets_the_block_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()

    number = appended(pipe, "a")
    reader.join(10)

    assert (0, False) == (number, sidecar.beside(pipe).exists())
    assert got[0].startswith(blocks.HEADER)


@pytest.mark.seed("S0.26")
def test_different_names_keep_runs_apart(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        appended(tmp_path / "runs" / name, name)

    assert {"one.csv", "one.json", "two.csv", "two.json"} == {
        each.name for each in (tmp_path / "runs").iterdir()
    }


# ── two writers ──────────────────────────────────────────────────────────────────────────────────


def test_blocks_of_two_writers_stay_whole(tmp_path: Path) -> None:
    """Each block in one piece, each with its run beside it, none lost."""
    path = tmp_path / "f.csv"

    def write(job: str) -> None:
        for _ in range(10):
            appended(path, *(f"{job}{at}" for at in range(30)), job=job)

    writers = [threading.Thread(target=write, args=(job,)) for job in "ab"]
    for each in writers:
        each.start()
    for each in writers:
        each.join(60)

    found = [files.read(files.Address(path, number)) for number in range(1, 21)]
    assert {30} == {len(each.rows) for each in found}
    for each in found:
        assert each.about is not None
        assert {each.about.job_id} == {row.layer[0] for row in each.rows}
    beside = sidecar.load(path)
    assert beside is not None
    assert list(range(1, 21)) == [each.number for each in beside.blocks]


def test_a_full_disk_leaves_nothing_of_a_block(tmp_path: Path) -> None:
    """Half a block is taken back; what was there before stays."""
    path = tmp_path / "f.csv"
    appended(path, "a")
    before = path.read_bytes()

    class Full:
        """A disk with room for ten more bytes."""

        def __call__(self, file: int, data: bytes) -> int:
            return os.write(file, data[:10])

    made = table(["b"], ns([1]))
    about = sidecar.about(made, written_at="", job_id="j", model="m", batch=1)
    with pytest.raises(Refused, match="no space left"):
        files.append(path, blocks.rows_of(made), about, write=Full())

    assert before == path.read_bytes()


def test_a_block_is_scaled_as_its_table_was(tmp_path: Path) -> None:
    """And a sidecar of an earlier release, which tells no rest, leaves all to the rows."""
    path = tmp_path / "f.csv"
    appended(path, "a", "b")
    chosen = files.read(files.address(str(path)))
    assert chosen.about is not None
    known = msgspec.structs.replace(
        chosen.about, clean_ms=1.0, perturbation=0.0, unattributed_ms=0.0
    )
    ours = sum(each.average_ms for each in chosen.rows)
    halved = msgspec.structs.replace(known, unattributed_ms=ours)
    early = msgspec.structs.replace(known, unattributed_ms=msgspec.UNSET)
    unknown = msgspec.structs.replace(known, clean_ms=None)

    sums = [
        sum(ms or 0.0 for ms, _ in files.of_clean(chosen._replace(about=each)))
        for each in (known, halved, early)
    ]

    assert [1.0, 0.5, 1.0] == pytest.approx(sums)
    assert [] == files.of_clean(chosen._replace(about=unknown))
