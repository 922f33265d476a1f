"""What a measurement by hand left in its folder is read back, or it is said why not."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from farm import models, npz, once, schema
from farm.effort import EFFORTS
from farm.errors import Bad, NoResult, Refused
from farm.schema import Asked
from tests.farm import make


def measured(folder: Path, **more: object) -> once.Measured:
    return once.Measured(profile=make.profile(**more), card=make.card(), folder=folder)


def test_the_samples_are_the_arrays_of_the_file(tmp_path: Path) -> None:
    npz.save(tmp_path / "samples.npz", {"latency_ns_0": np.array([5, 6])})

    assert [5, 6] == measured(tmp_path).samples()["latency_ns_0"].tolist()


def test_no_file_and_an_empty_one_hold_no_samples(tmp_path: Path) -> None:
    """A worker whose repeats all failed writes an empty one."""
    assert {} == measured(tmp_path).samples()
    (tmp_path / "samples.npz").touch()
    assert {} == measured(tmp_path).samples()


def test_samples_that_are_damaged_are_bad(tmp_path: Path) -> None:
    npz.save(tmp_path / "samples.npz", {"latency_ns_0": np.arange(99)})
    whole = (tmp_path / "samples.npz").read_bytes()
    (tmp_path / "samples.npz").write_bytes(whole[:-30])

    with pytest.raises(Bad, match=r"'samples\.npz' is damaged: its end is missing"):
        measured(tmp_path).samples()


def test_a_failure_is_bad_and_an_answer_no_result() -> None:
    """What nobody did wrong fails nothing (rule 11 of the decisions)."""
    for kind, raised in (("model_error", Bad), ("oom", NoResult), ("unsupported", NoResult)):
        with pytest.raises(raised, match=f"{kind} in phase warmup"):
            once.whole(measured(Path(), status="failed", failure=make.fault(kind)))


def test_a_failure_is_told_with_the_last_words_of_the_model() -> None:
    """Eight lines of them: the first ones are of the framework."""
    tail = "\n".join(f"line {each}" for each in range(20))
    fault = make.fault("crashed", message="it broke", hint="mend it", log_tail=tail)

    with pytest.raises(Bad) as caught:
        once.whole(measured(Path(), status="failed", failure=fault))

    assert ("it broke", "| line 12", "| line 19", 9, "mend it") == (
        *(caught.value.why.splitlines()[each] for each in (0, 1, -1)),
        len(caught.value.why.splitlines()),
        caught.value.hint,
    )


def test_what_did_not_fail_is_handed_on_as_it_is() -> None:
    found = measured(Path())

    assert found is once.whole(found)


# ── asking the program ───────────────────────────────────────────────────────────────────────────

# Answers as `farm-worker measure` does; the profile that it prints lies beside it.
WORKER = """
import json, pathlib, sys
asked = json.loads(sys.stdin.buffer.read())
folder = pathlib.Path(asked["folder"])
here = pathlib.Path(__file__).parent
(folder / "card.json").write_bytes((here / "card.json").read_bytes())
(folder / "asked.json").write_text(json.dumps([sys.argv[1:], asked["tags"]]))
print("repeat 1 of 1: latency", file=sys.stderr, flush=True)
sys.stdout.buffer.write((here / "profile.json").read_bytes())
"""


def asked(folder: Path, **more: object) -> Asked:
    return Asked(job=make.job(), effort=EFFORTS["quick"], folder=str(folder), **more)


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "farm_worker.py").write_text(WORKER)
    (tmp_path / "card.json").write_bytes(schema.encode(make.card()))
    (tmp_path / "profile.json").write_bytes(schema.encode(make.profile()))
    return [sys.executable, str(tmp_path / "farm_worker.py")]


def test_what_the_program_answers_and_leaves_is_what_was_measured(
    tmp_path: Path, program: list[str]
) -> None:
    """A real process: the document goes in, progress is heard, no table is where none is."""
    folder = tmp_path / "work"
    folder.mkdir()
    heard: list[str] = []

    found = once.measure(asked(folder, tags={"a": "ü"}), say=heard.append, program=program)

    assert (make.profile(), make.card(), folder, None) == (
        found.profile,
        found.card,
        found.folder,
        found.layers,
    )
    assert ["repeat 1 of 1: latency"] == heard
    assert [["measure", "-", "--json"], {"a": "ü"}] == json.loads(
        (folder / "asked.json").read_text()
    )


def test_a_name_that_no_document_could_say_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """The folder for temporary files may be named anyhow, and so may a tag of another caller."""
    for wrong in (asked(tmp_path / "t\udcff"), asked(tmp_path, tags={"k\udcff": "v"})):
        with pytest.raises(Refused, match=r"udcff' is not UTF-8"):
            once.measure(wrong, say=print, program=["/no/such/program"])


# ── the code that travels ────────────────────────────────────────────────────────────────────────


def resolved(folder: Path, *names: str, bundled: bool = True) -> models.Resolved:
    model = schema.Model(name="m", ref="m.py:f", source="file", digest="0" * 64, bundled=bundled)
    return models.Resolved(model=model, files=[(name, folder / name) for name in names])


def test_the_files_of_a_user_are_copied_and_installed_code_is_not(tmp_path: Path) -> None:
    """Editing a file while it is measured changes nothing."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "m.py").write_text("import pack.part\n")
    (tmp_path / "pack/part.py").write_text("x = 1\n")

    root = Path(once.stage(resolved(tmp_path, "m.py", "pack/part.py"), tmp_path / "work"))
    (tmp_path / "m.py").write_text("broken(")

    assert tmp_path / "work" / "code" == root
    assert ["import pack.part\n", "x = 1\n"] == [
        (root / name).read_text() for name in ("m.py", "pack/part.py")
    ]
    assert "" == once.stage(resolved(tmp_path, "m.py", bundled=False), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_file_that_went_away_is_a_bad_request(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot read") as caught:
        once.stage(resolved(tmp_path, "gone.py"), tmp_path)

    assert "No such file or directory" == caught.value.why
