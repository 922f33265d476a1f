"""The axes of a sweep: which words each one takes, and what they mean in a job."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from farm import reading
from farm.errors import did_you_mean
from farm.reading import Place
from farm.schema import PRECISIONS, Selector

# Axes with words of their own, in the order of a label; every other axis is a named one of the
# inputs, such as `seq`.
FIXED: Final = ("model", "precision", "batch", "device", "backend", "mode", "environment")
LABELLED: Final = FIXED[:4]
# `precision` and `backend` have none: they depend on what the model is.
DEFAULTS: Final[dict[str, str | int]] = {
    "batch": 1,
    "device": "any",
    "mode": "inference",
    "environment": "default",
}

_CHOICES: Final = {  # axis → (known, known to the full farm only)
    "precision": (PRECISIONS, ("tf32", "fp8", "int8")),
    "backend": (
        ("torch", "onnx", "fake"),
        ("torch+compile", "torch+graphs", "tensorrt", "callable"),
    ),
    "mode": (("inference", "train"), ("generate",)),
}
# What `backend_options` may say to each backend of the axis: the type of a value, or its words.
# The backends judge it themselves, in the child; a test holds this table against theirs.
_PHASES: Final = ("load", "first", "warmup", "latency", "throughput", "memory", "layers", "flops")
OPTIONS: Final[Mapping[str, Mapping[str, type | tuple[str, ...]]]] = {
    "torch": {"arrays": ("auto", "numpy", "torch")},
    "onnx": {"provider": str},
    "fake": {
        "duration_us": int,
        "mode": ("spin", "sleep"),
        "work": int,
        "load_ms": int,
        "fail": str,
        "fail_at": _PHASES,
        "fail_repeat": int,
        "fail_once": str,
        "alone": str,
    },
}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SELECTORS: Final = "any, cpu, gpu, a hardware class, node:NAME, node:NAME/SLOT"


def value(axis: str, given: object, place: Place) -> str | int:
    """Return the value as it stands in labels and exclusions; Refused if the axis has none such.

    A model is any text here: what it refers to is resolved elsewhere.
    """
    if axis == "model":
        return reading.text(given, place, thing="a model", limit=reading.LIMIT_BYTES)
    if axis == "device":
        return _device(given, place)
    if axis == "environment":
        word = reading.text(given, place, thing="an environment")
        if word != "default":
            hint = "leave the axis out: jobs run in the agent's own interpreter"
            raise place.refused(f"environment {word!r} is not in this version", hint=hint)
        return word
    if axis in _CHOICES:
        known, later = _CHOICES[axis]
        if isinstance(given, str) and given.startswith("onnx:"):
            later = (*later, given)
        return reading.one_of(given, place, thing=axis, known=known, later=later)
    return reading.whole(given, place, low=1)


def selector(device: str, *, environment: str) -> Selector:
    """Return who may take a job of that device value."""
    if device == "any":
        return Selector(kind="any", environment=environment)
    if not device.startswith("node:"):
        return Selector(kind="class", value=device, environment=environment)
    name = device.removeprefix("node:")
    return Selector(kind="device" if "/" in name else "node", value=name, environment=environment)


def check_name(axis: str, place: Place, *, named: Collection[str]) -> None:
    """Raise Refused unless it is an axis of every sweep or one that the inputs name."""
    if axis not in FIXED and axis not in named:
        raise place.unknown(axis, thing="axis", known=[*FIXED, *sorted(named)])


def check_options(backend: str, options: Mapping[str, object], place: Place) -> None:
    """Raise Refused for an option that this backend does not have, or a value it does not take."""
    known = OPTIONS[backend]
    for key, given in options.items():
        here = place.key(key)
        if key not in known:
            what = f"backend {backend!r} has no option {reading.short(key)}"
            raise here.refused(what, known=known, hint=did_you_mean(key[:100], list(known)))
        takes = known[key]
        if takes is int:
            reading.whole(given, here, low=-(2**31))
        elif takes is str and given != "":
            reading.text(given, here)
        elif isinstance(takes, tuple):
            reading.one_of(given, here, thing=f"value of {key}", known=takes)


def label_text(labels: dict[str, str]) -> str:
    """Return the words that a job is known by: `resnet18/fp32/b8/cpu`, then `seq=128` and so on."""
    marks = {"batch": "b"}
    head = [f"{marks.get(axis, '')}{labels[axis]}" for axis in LABELLED if axis in labels]
    return "/".join([*head, *(f"{k}={v}" for k, v in labels.items() if k not in LABELLED)])


def _device(given: object, place: Place) -> str:
    word = reading.text(given, place, thing="a device")
    if word in ("each", "each-node", "each-device"):
        hint = "name the classes or nodes instead: device: [cpu, node:NAME]"
        raise place.refused(f"device {word!r} is not in this version", hint=hint)
    kind, colon, name = word.rpartition(":")
    name, slash, slot = name.partition("/")
    fits = _NAME.fullmatch(name) and kind in ("", "node") and (colon or not slash)
    if not fits or (slash and not re.fullmatch(r"0|[1-9][0-9]{0,3}", slot)):
        hint = f"did you mean `{word.lower()}`?" if _NAME.fullmatch(word.lower()) else ""
        raise place.refused(f"unknown device {reading.short(word)}", known=[_SELECTORS], hint=hint)
    return word
