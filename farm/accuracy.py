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


class Limits(NamedTuple):
    """of_largest: atol is a share of the largest reference value of an output, else absolute."""

    atol: float
    rtol: float
    of_largest: bool = False


class OutputError(Stored, frozen=True, kw_only=True):
    """How far one output lies from its reference; argmax_agreement: along the last axis.

    A distance is null where a number on either side is not finite, and nothing is within then. An
    empty output is within, and no argmax of it agrees or differs. Source: numpy's `isclose`,
    |a − b| ≤ atol + rtol·|b|, decides `within`; an atol that was not given is a share of max|b|.
    """

    output: str
    items: int
    max_abs: float | None
    max_rel: float | None
    rmse: float | None
    cosine: float | None
    argmax_agreement: float | None
    within: bool


def limits(precision: str, *, atol: float | None, rtol: float | None) -> Limits:
    """Return what outputs of a precision are held to; a given atol is absolute."""
    usual = TOLERANCES[precision]
    return Limits(
        atol=usual[0] if atol is None else atol,
        rtol=usual[1] if rtol is None else rtol,
        of_largest=atol is None,
    )


def distance(
    name: str, found: "NDArray[Any]", expected: "NDArray[Any]", bounds: Limits
) -> OutputError:
    """Return how far an output lies from its reference of the same shape, any real dtype."""
    a, b = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    with np.errstate(all="ignore"):  # what is not finite is told as such
        off = np.abs(a - b)
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        along = float(a @ b)
        relative = (off / np.abs(b))[b != 0]
        atol = bounds.atol * (np.abs(b).max(initial=0.0) if bounds.of_largest else 1.0)
        near = np.isfinite(off) & (off <= atol + bounds.rtol * np.abs(b))
    agreement = None
    if expected.ndim >= 2 and expected.shape[-1] > 1 and expected.size:
        agreement = float(np.mean(found.argmax(axis=-1) == expected.argmax(axis=-1)))
    return OutputError(
        output=name,
        items=a.size,
        max_abs=_finite(off.max(initial=0.0)),
        max_rel=_finite(relative.max()) if relative.size else None,
        rmse=_finite(np.sqrt(np.mean(off**2))) if a.size else 0.0,
        cosine=_finite(along / size) if size > 0 else None,
        argmax_agreement=agreement,
        within=bool(np.all(near)),
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
    parts = [f"rmse {max(spreads):.3g}" if finite else "not finite"]
    parts += [f"cosine {min(cosines):.6f}"] if cosines else []
    parts += [f"argmax {100 * min(agreed):.4g} %"] if agreed else []
    parts += [f"at most {max(known):.3g}"] if finite else []
    of_largest = " of the largest" if bounds.of_largest else ""
    return ", ".join([*parts, f"atol {bounds.atol:g}{of_largest}", f"rtol {bounds.rtol:g}"])


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
