"""The table of accelerators: `configs/hardware.yaml`, and a file of the user's in the same form.

A device is found by its whole name and then checked against what else it reports. Nothing is
guessed: a name that no row holds, or facts that contradict it, give no peak and a reason.
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

from farm import models, reading
from farm.errors import Refused, did_you_mean
from farm.hardware.spec import GPUSpec
from farm.reading import Place

SCHEMA: Final = "farm.hardware/v1"
FORMATS: Final = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")

Confidence = Literal["high", "medium-high", "medium", "low"]

_MEMORY_OFF: Final = 0.10
# The same name is sold with limits up to 1.25 times the row's (A100 SXM: 400 and 500 W), and a
# limit may be lowered. What lies outside is another device under this name.
_POWER: Final = (0.5, 1.35)
_POWER_TOLD: Final = 0.02
_CLOCKS: Final = ("tensor", "fp32")
_NEEDED: Final = ("key", "names", "peak_dense_tops", "bandwidth_gb_per_s")
_ROW: Final = (
    *("key", "names", "require", "vendor", "architecture", "form_factor", "peak_dense_tops"),
    *("bandwidth_gb_per_s", "tdp_w", "boost_mhz", "flop_per_clock_per_sm", "clock_basis"),
    *("source", "confidence", "note"),
)


class Row(Struct, frozen=True, kw_only=True):
    """A device of the table; names are whole and as the driver writes them.

    peak_dense_tops: 10^12 operations per second by format, without those that are not known.
    boost_mhz, flop_per_clock_per_sm: of `tensor` (fp16) and `fp32`. user: from the user's file.
    """

    key: str
    names: tuple[str, ...]
    peak_dense_tops: dict[str, float]
    bandwidth_gb_per_s: float | None
    memory_gb: float | None = None
    sm_count: int | None = None
    tdp_w: float | None = None
    vendor: str = ""
    architecture: str = ""
    form_factor: str = ""
    boost_mhz: dict[str, float] = {}
    flop_per_clock_per_sm: dict[str, float] = {}
    clock_basis: Literal["published", "inverted", ""] = ""
    source: str = ""
    confidence: Confidence = "low"
    note: str = ""
    user: bool = False

    @property
    def spec(self) -> GPUSpec:
        """Its peaks in operations and bytes per second."""
        return GPUSpec(
            name=self.key,
            peak_flops_per_s={name: 1e12 * tops for name, tops in self.peak_dense_tops.items()},
            peak_bytes_per_s=(
                None if self.bandwidth_gb_per_s is None else 1e9 * self.bandwidth_gb_per_s
            ),
            source="user" if self.user else "datasheet",
            confidence=self.confidence,
            origin=self.source,
        )


class Found(Struct, frozen=True, kw_only=True):
    """What a look-up came to: a row, or the null code why there is none; remarks are for people."""

    row: Row | None
    reason: str = ""
    remarks: tuple[str, ...] = ()


@functools.cache
def table(user: Path | None = None) -> Mapping[str, Row]:
    """Return the rows by key: those that are shipped, and over them those of the user's file.

    Raises Refused, naming the place, if a file is not a proper one or two rows claim one name.
    """
    rows = read(models.configs() / "hardware.yaml")
    if user is None:
        return rows
    merged = {**rows, **read(user, user=True)}
    _check_names(merged.values(), user)
    return merged


def read(path: Path, *, user: bool = False) -> Mapping[str, Row]:
    """Return the rows of one file by their key, in its order; Refused as for `table`."""
    document = reading.read(path)
    top = Place(document)
    data = reading.mapping(document.data, top, known=("schema", "devices"))
    reading.one_of(data.get("schema"), top.key("schema"), thing="schema", known=(SCHEMA,))
    devices = data.get("devices")
    if not isinstance(devices, list):
        raise top.key("devices").refused(f"expected a list, got {reading.kind_of(devices)}")
    rows: dict[str, Row] = {}
    for value, place in reading.items(devices, top.key("devices")):
        row = _row(value, place, user=user)
        if row.key in rows:
            raise place.key("key").refused(f"the key {row.key!r} is there twice")
        rows[row.key] = row
    _check_names(rows.values(), path)
    return rows


def normalise(name: str) -> str:
    """Return a device's name with case and blanks folded; nothing else makes two names equal."""
    return " ".join(name.split()).casefold()


def lookup(
    rows: Mapping[str, Row],
    name: str,
    *,
    memory_bytes: int | None = None,
    sm_count: int | None = None,
    power_limit_w: float | None = None,
) -> Found:
    """Return the row that a device is, by its whole name and checked by what else it reports.

    memory_bytes, sm_count, power_limit_w (the default one): as reported, None where they are not
    known, which then checks nothing. The reason of a miss is `unknown_device` with the detail.
    """
    wanted = normalise(name)
    row = next((r for r in rows.values() if wanted in map(normalise, r.names)), None)
    if row is None:
        return Found(row=None, reason=f"unknown_device: no row for {reading.short(name)}")
    if why := _contradiction(row, memory_bytes, sm_count, power_limit_w):
        return Found(row=None, reason=f"unknown_device: {row.key} has {why}")
    return Found(row=row, remarks=_remarks(row, power_limit_w))


def named(rows: Mapping[str, Row], word: str) -> Row:
    """Return the row that a person means by its key or by a whole name; case does not matter.

    Raises Refused for any other word, with the nearest key.
    """
    wanted = normalise(word)
    for row in rows.values():
        if wanted in (normalise(row.key), *map(normalise, row.names)):
            return row
    hint = did_you_mean(word.upper(), list(rows))
    known = ", ".join(rows)
    raise Refused(f"unknown device {reading.short(word)}", why=f"known: {known}", hint=hint)


def _contradiction(
    row: Row, memory_bytes: int | None, sm_count: int | None, power_limit_w: float | None
) -> str:
    """Return what the row has and the device has not, or ""."""
    if memory_bytes is not None and row.memory_gb is not None:
        gib = memory_bytes / 2**30
        if abs(gib / row.memory_gb - 1) > _MEMORY_OFF:
            return f"{row.memory_gb:g} GB, this device {gib:.1f} GiB"
    if sm_count is not None and row.sm_count is not None and sm_count != row.sm_count:
        return f"{row.sm_count} multiprocessors, this device {sm_count}"
    share = None if power_limit_w is None or row.tdp_w is None else power_limit_w / row.tdp_w
    if share is not None and not _POWER[0] <= share <= _POWER[1]:
        return f"{row.tdp_w:g} W, this device {power_limit_w:g} W"
    return ""


def _remarks(row: Row, power_limit_w: float | None) -> tuple[str, ...]:
    if power_limit_w is None or row.tdp_w is None:
        return ()
    if abs(power_limit_w / row.tdp_w - 1) <= _POWER_TOLD:
        return ()
    return (f"power limit {power_limit_w:g} W; the peaks are those at {row.tdp_w:g} W",)


# ── reading a row ────────────────────────────────────────────────────────────────────────────────


def _row(value: object, place: Place, *, user: bool) -> Row:
    data = reading.mapping(value, place, known=_ROW)
    for name in _NEEDED:
        if name not in data:
            raise place.refused(f"{name!r} is missing", why=f"a row has {', '.join(_NEEDED)}")
    require = place.key("require")
    checks = reading.mapping(data.get("require", {}), require, known=("memory_gb", "sm_count"))
    sms = checks.get("sm_count")
    return Row(
        key=reading.text(data["key"], place.key("key"), thing="a key", limit=60),
        names=tuple(
            reading.text(each, at, thing="a name", limit=100)
            for each, at in reading.items(data["names"], place.key("names"))
        ),
        peak_dense_tops=_numbers(data, place, "peak_dense_tops", known=FORMATS),
        bandwidth_gb_per_s=_number(data, place, "bandwidth_gb_per_s"),
        memory_gb=_number(checks, require, "memory_gb"),
        sm_count=None if sms is None else reading.whole(sms, require.key("sm_count"), low=1),
        tdp_w=_number(data, place, "tdp_w"),
        boost_mhz=_numbers(data, place, "boost_mhz", known=_CLOCKS),
        flop_per_clock_per_sm=_numbers(data, place, "flop_per_clock_per_sm", known=_CLOCKS),
        clock_basis=_word(data, place, "clock_basis", known=("published", "inverted")),  # type: ignore[arg-type]
        confidence=_word(data, place, "confidence", known=get_args(Confidence)) or "low",  # type: ignore[arg-type]
        user=user,
        **{
            name: reading.text(data[name], place.key(name))
            for name in ("vendor", "architecture", "form_factor", "source", "note")
            if name in data
        },
    )


def _number(data: Mapping[str, object], place: Place, name: str) -> float | None:
    """Return the number above 0 that the key holds; None if it is absent or null."""
    value, at = data.get(name), place.key(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise at.refused(f"expected a number, got {reading.kind_of(value)}")
    if not 0 < value < 1e12:  # NaN is neither
        raise at.refused(f"expected a number above 0, got {reading.short(value)}")
    return float(value)


def _numbers(
    data: Mapping[str, object], place: Place, name: str, *, known: Iterable[str]
) -> dict[str, float]:
    at = place.key(name)
    inside = reading.mapping(data.get(name, {}), at, known=tuple(known))
    found = {each: _number(inside, at, each) for each in inside}
    return {each: value for each, value in found.items() if value is not None}


def _word(data: Mapping[str, object], place: Place, name: str, *, known: tuple[str, ...]) -> str:
    if name not in data:
        return ""
    return reading.one_of(data[name], place.key(name), thing=name.replace("_", " "), known=known)


def _check_names(rows: Iterable[Row], path: Path) -> None:
    """Refuse two rows that a device could both be: a key of its own or a name tells them apart."""
    owner: dict[str, str] = {}
    for row in rows:
        for name in map(normalise, row.names):
            if owner.setdefault(name, row.key) != row.key:
                raise Refused(
                    f"{path}: {row.key} and {owner[name]} are both called {name!r}",
                    hint=f"use the key {owner[name]!r} to replace that row",
                )
