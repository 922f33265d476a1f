"""The laws of the `measure:` block."""

import re
from pathlib import Path

import msgspec
import pytest

from farm.effort import EFFORTS, duration_s
from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Effort, Protocol
from farm.sweep.measuring import _CHOICES, KEYS, Measuring, measuring

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
            "flops": False,
            "energy": True,
            "layer_iterations": 20,
            "threads": 2,
            "percentiles": [99.9, 90],
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
        layer_budget_ms=1_000,
        layers=False,
        flops=False,
        energy=True,
        layer_iterations=20,
        threads=2,
        percentiles=(50.0, 90.0, 99.9),
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
        (
            {"priority": "high"},
            "a.yaml: priority is not in this version: at measure.priority",
            "leave priority",
        ),
        ({"trace": 1}, "a.yaml: expected true or false, got the number 1: at measure.trace", ""),
        ({"energy": 1}, "a.yaml: expected true or false, got the number 1: at measure.energy", ""),
        ({"percentiles": 50}, "a.yaml: expected 1 to 20 percentiles, got the number 50", ""),
        ({"percentiles": [50, 100]}, "a.yaml: 100 is no percentile: at measure.percentiles.1", ""),
        ({"percentiles": [1e-300]}, "a.yaml: 1e-300 is no percentile: at measure.percentiles", ""),
        ({"compat": True}, "a.yaml: unknown preset 'True': at measure.compat; known: yasp", ""),
        ({"percentiles": ["p99"]}, "a.yaml: 'p99' is no percentile: at measure.percentiles.0", ""),
        (
            {"compat": "rpxx"},
            "a.yaml: unknown preset 'rpxx': at measure.compat; known: ",
            "did you",
        ),
        (
            {"clocks": "locked_base"},
            "a.yaml: clocks 'locked_base' is not in this version: at measure.clocks; known: ",
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


@pytest.mark.parametrize(
    ("name", "warmup", "iterations"),
    [("yasp", 5, 100), ("rpx", 10, 1000), ("tinytorch", 10, 100), ("libreyolo", 20, 100)],
)
def test_a_preset_is_the_numbers_of_another_tool(name: str, warmup: int, iterations: int) -> None:
    """One process, its counts, and its name in the protocol: its like alone is compared."""
    found = _measuring({"compat": name})

    assert (warmup, iterations, name, 1) == (
        found.protocol.warmup,
        found.protocol.iterations,
        found.protocol.compat,
        found.effort.repeats,
    )


def test_what_the_sweep_says_stands_over_its_preset() -> None:
    """Repeats above all, which no preset forbids."""
    found = _measuring({"compat": "rpx", "repeats": 5, "iterations": 50})

    assert (5, 50, 10, "on") == (
        found.effort.repeats,
        found.protocol.iterations,
        found.protocol.warmup,
        found.protocol.gc,
    )


def test_without_a_preset_the_protocol_is_what_it_was() -> None:
    """Ids of jobs that were measured before presets existed stay the same."""
    assert "compat" not in msgspec.to_builtins(_measuring({}).protocol)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("repeats", 1, 100),
        ("layer_iterations", 1, 100_000),
        ("threads", 1, 4096),
        ("half_width_ppm", 1, 1_000_000),
        ("budget_ms", 1, 86_400_000),
        ("min_time_ms", 0, 86_400_000),
        ("warmup", 0, 10_000_000),
        ("iterations", 1, 10_000_000),
    ],
)
def test_a_number_is_taken_up_to_its_bounds(key: str, low: int, high: int) -> None:
    """And not one beyond: a slip of the keyboard must not cost a night."""
    for value in (low, high):
        found = _measuring({key: value})
        assert value == getattr(found.effort, key, None) or value == getattr(found.protocol, key)

    for value, bound in ((low - 1, f"at least {low}"), (high + 1, f"at most {high}")):
        with pytest.raises(Refused, match=f"expected {bound}, got {value}"):
            _measuring({key: value})


# ── the page that lists the keys ─────────────────────────────────────────────────────────────────

PAGE = Path(__file__).parents[3] / "docs/method/measuring.md"
ROW = re.compile(r"^\| (?P<keys>`[^|]+`) \| (?P<default>[^|]+) \| (?P<meaning>[^|]+) \|$", re.M)
NOT_YET = re.compile(r"not in this version: ([^|;]+)")


def _rows() -> dict[str, tuple[str, str]]:
    """The default and the meaning of each key, as the page has them."""
    text = PAGE.read_text().partition("## The keys of `measure`")[2].partition("\n## ")[0]
    return {
        key: (row["default"], row["meaning"])
        for row in ROW.finditer(text)
        for key in re.findall(r"`([a-z0-9_]+)`", row["keys"])
    }


def test_the_page_lists_every_key_and_no_other() -> None:
    assert sorted(KEYS) == sorted(_rows())


@pytest.mark.parametrize("key", sorted(_CHOICES))
def test_the_page_says_of_each_word_whether_it_is_taken(key: str) -> None:
    """A word that would be refused is never offered."""
    known, later = _CHOICES[key]
    default, meaning = _rows()[key]

    told = NOT_YET.search(meaning)
    named = set(re.findall(r"`([a-z_]+)`", told[1])) if told else set()
    offered = set(re.findall(r"`([a-z_]+)`", NOT_YET.sub("", meaning)))
    usual = getattr(Protocol(), key)
    assert set(later) == named
    assert set(known) - {usual} <= offered <= set(known)
    assert default in (usual, "the model's")


def test_what_is_taken_by_a_sweep_can_be_recorded() -> None:
    for key, (known, _) in _CHOICES.items():
        for word in known:
            assert word == getattr(_measuring({key: word}).protocol, key)
