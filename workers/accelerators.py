"""The GPU of a slot as its system card shows it, and what machines with such a GPU are called."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from farm.hardware import lookup, table
from farm.schema import Accelerator, Mig
from workers.gpu import Board, Reading

_GIBI: Final = 1 << 30
_WORDS: Final = re.compile(r"[^a-z0-9]+")
_EMPTY: Final = re.compile(r"nvidia|tesla|geforce|quadro|graphics|\d+ ?gb", re.IGNORECASE)
_FACTS: Final = (
    *("architecture", "compute_capability", "core_count", "memory_bus_bits", "power_limit_w"),
    *("power_default_w", "sm_max_hz", "mem_max_hz", "clock_lock_hz", "ecc", "vbios"),
    *("gsp_firmware", "pcie_gen_max", "pcie_width_max"),
)


def accelerator(
    board: Board, facts: Mapping[str, Reading]
) -> tuple[Accelerator, Mapping[str, str]]:
    """Return the device as a card has it, and by field the reason of each null."""
    told = {name: facts.get(name, Reading(reason="not_probed")) for name in _FACTS}
    values = {name: each.value for name, each in told.items()}
    form = form_factor(board)
    made = Accelerator(
        vendor="nvidia",
        model=board.name,
        sm_count=board.sm_count,
        memory_bytes=board.memory_bytes,
        form_factor=form,
        mig=_mig(board),
        **values,
    )
    reasons = {name: each.reason for name, each in told.items() if each.value is None}
    for name in ("sm_count", "memory_bytes"):
        if getattr(made, name) is None:
            reasons[name] = "not_supported"
    if form is None:
        reasons["form_factor"] = "unknown_device: the hardware table has no such row"
    if board.kind == "mig":
        reasons |= {f"mig.{name}": "not_supported" for name in _unknown_shares(board)}
    return made, reasons


def form_factor(board: Board) -> str | None:
    """Return the form factor of the GPU, None where the hardware table does not know it."""
    row = lookup(table(), board.name).row
    return row.form_factor or None if row is not None else None


def class_words(board: Board) -> list[str]:
    """Return the hardware classes that a device is of, the narrowest first: `h100-sxm`, `h100`."""
    row = lookup(table(), board.name).row
    narrow = _slug(row.key) if row is not None else _slug(_EMPTY.sub(" ", board.name))
    return list(dict.fromkeys([narrow, narrow.partition("-")[0]]))


def class_name(board: Board) -> str:
    """Return a device's part of a system class, `h100-sxm-80g`, with its form if it is a slice."""
    size = board.memory_bytes
    memory = f"{round(size / _GIBI)}g" if size is not None else ""
    parts = (class_words(board)[0], memory, _slug(board.profile))
    return "-".join(filter(None, parts))


def device_hash(uuid: str, *, salt: str) -> str:
    """Return what tells a device from its equals, 16 hex digits; the salt stays on its node."""
    return hmac.new(salt.encode(), uuid.encode(), hashlib.sha256).hexdigest()[:16]


def _mig(board: Board) -> Mig | UnsetType:
    if board.kind == "gpu":
        return UNSET
    return Mig(
        profile=board.profile,
        sm_ratio=board.sm_ratio or None,
        memory_ratio=board.memory_ratio or None,
    )


def _unknown_shares(board: Board) -> list[str]:
    shares = {"sm_ratio": board.sm_ratio, "memory_ratio": board.memory_ratio}
    return [name for name, each in shares.items() if not each]


def _slug(text: str) -> str:
    return _WORDS.sub("-", text.lower()).strip("-")
