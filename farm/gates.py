"""`configs/gates.yaml`: each gate with its phases, its limits and their source, and its mode."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from msgspec import Struct, structs

from farm import models, reading
from farm.errors import did_you_mean
from farm.reading import Place

_TAG: Final = "farm.gates/v1"
_KEYS: Final = ("id", "phases", "mode", "limits", "source", "confidence")
_PHASES: Final = ("static", "before", "window", "after")
_MODES: Final = ("observe", "enforce")
_CONFIDENCES: Final = ("low", "medium", "high")


class Gate(Struct, frozen=True, kw_only=True):
    """A row. mode: `observe` records a verdict without effect. limits: by the names of the rule."""

    id: str
    phases: tuple[str, ...]
    mode: Literal["observe", "enforce"]
    limits: dict[str, Any]
    source: str
    confidence: str


def gates(own: Path | None = None, *, enforced: bool = False) -> Mapping[str, Gate]:
    """Return the shipped gates by their id, replaced by those of a file of an operator's.

    enforced: all of them have an effect, as on simulated devices, which count as verified. Raises
    Refused naming file and key for a row that makes no sense.
    """
    found = dict(_shipped())
    if own is not None:
        found |= _read(own, name=str(own), known=found)
    if enforced:
        found = {name: structs.replace(each, mode="enforce") for name, each in found.items()}
    return MappingProxyType(found)


@cache
def _shipped() -> Mapping[str, Gate]:
    return _read(models.configs() / "gates.yaml", name="gates.yaml", known=None)


def _read(path: Path, *, name: str, known: Mapping[str, Gate] | None) -> dict[str, Gate]:
    document = reading.read(path, name=name)
    place = Place(document)
    if document.data.get("schema") != _TAG:
        raise place.key("schema").refused(f"expected {_TAG}")
    rows = reading.items(document.data.get("gates"), place.key("gates"))
    found = [_row(value, at, known) for value, at in rows]
    return {each.id: each for each in found}


def _row(value: object, place: Place, known: Mapping[str, Gate] | None) -> Gate:
    data = reading.mapping(value, place, known=_KEYS)
    name = reading.text(data.get("id"), place.key("id"))
    usual = known.get(name) if known is not None else None
    if known is not None and usual is None:
        hint = did_you_mean(name, list(known))
        raise place.key("id").refused(f"no gate is called {name!r}", hint=hint)
    limits = reading.mapping(data.get("limits", {}), place.key("limits"))
    if usual is not None:
        _check(limits, usual.limits, place.key("limits"))
        limits = usual.limits | limits
    phases = data.get("phases", list(usual.phases) if usual else None)
    words = [
        reading.one_of(each, at, thing="phase", known=_PHASES)
        for each, at in reading.items(phases, place.key("phases"))
    ]
    mode = data.get("mode", usual.mode if usual else "observe")
    confidence = data.get("confidence", usual.confidence if usual else None)
    return Gate(
        id=name,
        phases=tuple(words),
        mode=cast(
            "Literal['observe', 'enforce']",
            reading.one_of(mode, place.key("mode"), thing="mode", known=_MODES),
        ),
        limits=dict(limits),
        source=reading.text(data.get("source", usual.source if usual else None), place, limit=500),
        confidence=reading.one_of(
            confidence, place.key("confidence"), thing="confidence", known=_CONFIDENCES
        ),
    )


def _check(limits: Mapping[str, object], usual: Mapping[str, object], place: Place) -> None:
    """Refuse a limit that the rule does not have, or of another kind than the shipped one."""
    for key, value in limits.items():
        if key not in usual:
            raise place.unknown(key, thing="limit", known=list(usual))
        wanted = usual[key]
        items = value if isinstance(value, list) else [value]
        kind = wanted[0] if isinstance(wanted, list) else wanted
        fits = all(_is_text(each) == _is_text(kind) and not _is_odd(each) for each in items)
        if isinstance(value, list) != isinstance(wanted, list) or not fits or not items:
            got, said = reading.kind_of(value), reading.short(wanted)
            raise place.key(key).refused(f"expected such as {said}, got {got}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_odd(value: object) -> bool:
    """Whether it is neither text nor a number from 0 on."""
    if isinstance(value, str):
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return not is_number or not 0 <= float(str(value)) < float("inf")
