"""The laws of the `measure:` block."""

import pytest

from farm.effort import EFFORTS, duration_s
from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Effort, Protocol
from farm.sweep.measuring import Measuring, measuring

PLACE = Place(Document(name="a.yaml", data={}, sha256=""), "measure")


def _measuring(block: object, level: str = "standard") -> Measuring:
    return measuring(block, PLACE, level=level)


def test_an_effort_is_its_numbers() -> None:
    """quick, standard, thorough: repeats, half-width in ppm, budget in ms, tails."""
    assert (2, 20_000, 2_000, False) == _numbers(EFFORTS["quick"])
    assert (3, 5_000, 10_000, False) == _numbers(EFFORTS["standard"])
    assert (5, 5_000, 10_000, True) == _numbers(EFFORTS["thorough"])
    assert Effort() == EFFORTS["standard"]


def _numbers(effort: Effort) -> tuple[int, int, int, bool]:
    return effort.repeats, effort.half_width_ppm, effort.budget_ms, effort.tails


def test_a_block_without_effort_takes_the_callers() -> None:
    """The level of a flag or setting counts only where the sweep names none."""
    assert EFFORTS["quick"] == _measuring(None, "quick").effort
    assert EFFORTS["thorough"] == _measuring({"effort": "thorough"}, "quick").effort
    assert Protocol() == _measuring({}).protocol


def test_single_keys_stand_over_the_effort() -> None:
    """Every field of effort and protocol can be set by its name, times and sizes with units."""
    found = _measuring(
        {
            "effort": "quick",
            "repeats": 7,
            "timeout": "90s",
            "memory_limit": "2GiB",
            "tails": True,
            "half_width_ppm": 1000,
            "budget_ms": 50,
            "min_time_ms": 0,
            "warmup": 10,
            "iterations": "auto",
            "gc": True,  # YAML reads a bare `on` so
            "grad": "no_grad",
            "denormals": "flush",
            "layers": False,
            "energy": False,
        }
    )

    assert Effort(
        level="quick",
        repeats=7,
        timeout_s=90,
        memory_limit_bytes=2 << 30,
        tails=True,
        half_width_ppm=1000,
        budget_ms=50,
        min_time_ms=0,
    ) == found.effort  # fmt: skip
    assert Protocol(warmup=10, gc="on", grad="no_grad", denormals="flush") == found.protocol


def test_denormals_are_the_models_unless_the_sweep_says() -> None:
    """A row of the zoo decides where the block is silent; the block decides else."""
    assert "flush" == _measuring({}).protocol_for("flush").denormals
    assert "as_is" == _measuring({"denormals": "as_is"}).protocol_for("flush").denormals


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        *[("90s", 90), ("10m", 600), ("6h", 21_600), ("7d", 604_800)],
        *[(word, None) for word in ("1.5h", "10", "0s", "-1s", "10 m", "m", "", "10min")],
    ],
)
def test_a_duration_is_a_number_and_a_unit(word: str, seconds: int | None) -> None:
    """Seconds, minutes, hours and days, whole ones."""
    assert seconds == duration_s(word)


@pytest.mark.parametrize(
    ("block", "message", "hint"),
    [
        ("quick", "a.yaml: expected keys and values, got 'quick'", ""),
        (
            {"effortt": "quick"},
            "a.yaml: unknown key 'effortt': at measure.effortt; known: eff",
            "did you",
        ),
        ({"effort": "quik"}, "a.yaml: unknown effort 'quik': at measure.effort; known", "did you"),
        ({"repeats": 0}, "a.yaml: expected at least 1, got 0: at measure.repeats", ""),
        ({"repeats": 101}, "a.yaml: expected at most 100, got 101", ""),
        ({"warmup": -1}, "a.yaml: expected at least 0, got -1", ""),
        ({"warmup": "atuo"}, "a.yaml: expected `auto` or a whole number, got 'atuo'", ""),
        ({"iterations": 0}, "a.yaml: expected at least 1, got 0", ""),
        (
            {"timeout": 600},
            "a.yaml: expected a duration up to 7d, got the number 600",
            "for example",
        ),
        ({"timeout": "8d"}, "a.yaml: expected a duration up to 7d, got '8d'", "for example 10m"),
        ({"memory_limit": "2GB"}, "a.yaml: expected an amount of memory, got '2GB'", "for exam"),
        ({"tails": "yes"}, "a.yaml: expected true or false, got 'yes'", ""),
        ({"gc": "of"}, "a.yaml: unknown gc 'of': at measure.gc; known: off, on", "did you"),
        ({"grad": "none"}, "a.yaml: unknown grad 'none'", ""),
        ({"layers": True}, "a.yaml: layers is not in this version: at measure.layers", "leave lay"),
        ({"energy": 1}, "a.yaml: energy is not in this version", "leave energy out, or say false"),
        ({"percentiles": [50]}, "a.yaml: percentiles is not in this version", "leave per"),
        (
            {"l2": "flushed"},
            "a.yaml: l2 'flushed' is not in this version: at measure.l2; known: ",
            "",
        ),
    ],
)
def test_a_block_that_makes_no_sense_is_refused(block: object, message: str, hint: str) -> None:
    """Unknown keys and values, and passes that are not measured yet, are named with their place."""
    with pytest.raises(Refused) as caught:
        _measuring(block)

    assert str(caught.value).startswith(message)
    assert caught.value.hint.startswith(hint)
    assert 2 == caught.value.exit_code
