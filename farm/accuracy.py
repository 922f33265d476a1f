"""How far outputs lie from a reference, and what is near enough for a precision."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from farm.schema import Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How far outputs of a precision may lie from a reference that was computed in fp32 or wider:
# (as a share of the largest reference value, as a share of each). Rounding errors of a layer grow
# with its largest terms, so outputs near 0 are off by a share of the large ones; an absolute bound
# would let everything pass where all outputs are small.
TOLERANCES: Final[Mapping[str, tuple[float, float]]] = {
    "fp32": (1e-6, 1e-4),
    "unspecified": (1e-6, 1e-4),
    "fp16": (2e-3, 1e-2),
    "bf16": (1e-2, 5e-2),
}

_WHOLE: Final = "biu"  # dtype kinds of numpy: booleans, integers
_NUMBERS: Final = f"{_WHOLE}fc"


class Limits(NamedTuple):
    """of_largest: atol is a share of the largest reference value of an output, else absolute.

    whole_atol, whole_rtol: those of integers and booleans, which are equal or wrong unless somebody
    allows more: token 32003 is no rounding of token 32000.
    """

    atol: float
    rtol: float
    of_largest: bool = False
    whole_atol: float = 0.0
    whole_rtol: float = 0.0


class OutputError(Stored, frozen=True, kw_only=True):
    """How far one output lies from its reference; argmax_agreement: along the last axis.

    A distance is null where a number on either side is not finite, and nothing is within then. An
    empty output is within, and no argmax of it agrees or differs, nor one of complex numbers, which
    have no order. Complex numbers are as far apart as their difference is long, and their cosine is
    that of their parts. whole: integers or booleans on either side, with limits of their own.
    Source: numpy's `isclose`, |a − b| ≤ atol + rtol·|b|, decides `within`; an atol that was not
    given is a share of max|b|.
    """

    output: str
    items: int
    max_abs: float | None
    max_rel: float | None
    rmse: float | None
    cosine: float | None
    argmax_agreement: float | None
    within: bool
    whole: bool = False


def is_numeric(array: "NDArray[Any]") -> bool:
    """Return whether it holds numbers or booleans; text, times and plain bytes have no distance."""
    return array.dtype.kind in _NUMBERS


def limits(precision: str, *, atol: float | None, rtol: float | None) -> Limits:
    """Return what outputs of a precision are held to; a given atol is absolute."""
    usual = TOLERANCES[precision]
    return Limits(
        atol=usual[0] if atol is None else atol,
        rtol=usual[1] if rtol is None else rtol,
        of_largest=atol is None,
        whole_atol=atol or 0.0,
        whole_rtol=rtol or 0.0,
    )


def distance(
    name: str, found: "NDArray[Any]", expected: "NDArray[Any]", bounds: Limits
) -> OutputError:
    """Return how far an output lies from its reference of the same shape, numbers on both sides."""
    whole = found.dtype.kind in _WHOLE or expected.dtype.kind in _WHOLE
    with np.errstate(all="ignore"):  # what is not finite is told as such
        off, large = _apart(found.ravel(), expected.ravel()), np.abs(_wide(expected))
        relative = (off / large)[large != 0]
        if whole:
            allowed = bounds.whole_atol + bounds.whole_rtol * large
        else:
            share = large.max(initial=0.0) if bounds.of_largest else 1.0
            allowed = bounds.atol * share + bounds.rtol * large
        near = np.isfinite(off) & (off <= allowed)
    return OutputError(
        output=name,
        items=off.size,
        max_abs=_finite(off.max(initial=0.0)),
        max_rel=_finite(relative.max()) if relative.size else None,
        rmse=_finite(np.sqrt(np.mean(off**2))) if off.size else 0.0,
        cosine=_cosine(found, expected),
        argmax_agreement=_agreement(found, expected),
        within=bool(np.all(near)),
        whole=whole,
    )


def worst(errors: Sequence[OutputError], bounds: Limits) -> str:
    """Return the worst numbers of all outputs in words, and what they were held to.

    argmax: how often the largest number stands at the same place of the last axis. at most: the
    largest difference.
    """
    known = [each.max_abs for each in errors if each.max_abs is not None]
    spreads = [each.rmse for each in errors if each.rmse is not None]
    cosines = [each.cosine for each in errors if each.cosine is not None]
    agreed = [each.argmax_agreement for each in errors if each.argmax_agreement is not None]
    finite = len(known) == len(spreads) == len(errors) > 0
    kinds = {each.whole for each in errors}
    parts = [f"rmse {max(spreads):.3g}" if finite else "not finite"]
    parts += [f"cosine {min(cosines):.6f}"] if cosines else []
    parts += [f"argmax {100 * min(agreed):.4g} %"] if agreed else []
    parts += [f"at most {max(known):.3g}"] if finite else []
    if False in kinds:
        of_largest = " of the largest" if bounds.of_largest else ""
        parts += [f"atol {bounds.atol:g}{of_largest}", f"rtol {bounds.rtol:g}"]
    if True in kinds:
        given = bounds.whole_atol or bounds.whole_rtol
        held = f"atol {bounds.whole_atol:g}, rtol {bounds.whole_rtol:g}" if given else "equal"
        parts.append(f"integers {held}")
    return ", ".join(parts)


# ── parts ────────────────────────────────────────────────────────────────────────────────────────


def _apart(a: "NDArray[Any]", b: "NDArray[Any]") -> "NDArray[Any]":
    """Return |a − b| of each pair: 0 exactly where the two are equal.

    As float64, 2^62 and 2^62 + 100 are the same number; so integers are taken from each other as
    such.
    """
    if "c" in (a.dtype.kind, b.dtype.kind):
        return np.asarray(np.hypot(_apart(a.real, b.real), _apart(a.imag, b.imag)))
    if a.dtype.kind in _WHOLE or b.dtype.kind in _WHOLE:
        return np.asarray(np.abs(_exact(a) - _exact(b)), np.float64)
    wide = np.result_type(a, b, np.float64)
    return np.asarray(np.abs(a.astype(wide) - b.astype(wide)))


def _exact(array: "NDArray[Any]") -> "NDArray[Any]":
    """Return the numbers as Python's own, whose integers have every digit and never wrap."""
    if array.dtype.kind in _WHOLE:
        return array.astype(object)
    found = np.empty(array.size, object)
    found[:] = [int(each) if each.is_integer() else each for each in array.tolist()]
    return found


def _wide(array: "NDArray[Any]") -> "NDArray[Any]":
    """Return the numbers, flat, as float64 or wider: no size of one overflows, digits may go."""
    return array.astype(np.result_type(array, np.float64)).ravel()


def _cosine(found: "NDArray[Any]", expected: "NDArray[Any]") -> float | None:
    a, b = _wide(found), _wide(expected)
    with np.errstate(all="ignore"):
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        along = float(np.vdot(b, a).real)
    return _finite(along / size) if size > 0 else None


def _agreement(found: "NDArray[Any]", expected: "NDArray[Any]") -> float | None:
    """Return how often the largest number stands at the same place; None where none can."""
    if "c" in (found.dtype.kind, expected.dtype.kind):
        return None
    if expected.ndim < 2 or expected.shape[-1] <= 1 or not expected.size:
        return None
    return float(np.mean(found.argmax(axis=-1) == expected.argmax(axis=-1)))


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(float(number)) else None
