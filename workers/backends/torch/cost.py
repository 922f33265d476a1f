"""What a module needs: parameters, FLOPs, bytes, the memory of its activations; nothing is timed.

FLOPs are counted in one real run, which also shows the bytes, the activations and what computed
attention. Where it fails or sees an operator without a formula, they are counted once more on a
shadow of the module, which computes nothing and shows what a fused kernel hides. Both are exact
where they know every operator; the shadow costs more than a second in a fresh process, because its
kernels import a compiler. It is the last pass of a child: a model may keep something of the run.
Source: `measurement.md` §14.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from workers.backends.torch import activations, counting, weights
from workers.backends.torch.calling import bind
from workers.backends.torch.counting_shadow import shadow, shadows
from workers.backends.torch.naming import printable
from workers.record import CostReading

if TYPE_CHECKING:
    import torch

_UNHEARD: Final = f"not_supported: {counting.ELSEWHERE}"


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A counted call, on which tensors; peak_bytes: of its activations, None if they are unseen."""

    count: counting.Count
    how: str
    peak_bytes: int | None = None


class _Failed(str):
    """Why a call could not be counted."""


def read(
    module: "torch.nn.Module",
    run: Callable[[], object],
    inputs: Mapping[str, object],
    *,
    batch: int,
) -> CostReading:
    """Return what a module needs for one call, which is a batch of items.

    run: the call as it was measured, under its gradient mode. What cannot be had is None with the
    code of its reason; a model that raises here fails nothing but the fields that need a run.
    """
    whole = getattr(module, "_orig_mod", module)  # what a compiler has wrapped
    call = run if whole is module else bind(whole, inputs)
    held = weights.holdings(whole)
    real = _attempt(lambda: _in_real_run(whole, call, inputs))
    looks = [real]
    if isinstance(real, _Failed) or real.count.unknown:
        looks.append(_attempt(lambda: _on_shadow(whole, inputs)))
    seen = [each for each in looks if isinstance(each, _Seen)]
    reading = CostReading(
        params_total=held.total,
        params_trainable=held.trainable,
        params_unique_bytes=held.unique_bytes,
        buffers_bytes=held.buffers_bytes,
        param_dtypes=held.dtypes,
    )
    if isinstance(real, _Seen) and real.count.is_silent and not real.count.unknown:
        return _silent(reading)
    reading = _with_flops(reading, seen, why=str(real))
    return _with_run(reading, seen, real)


def _silent(reading: CostReading) -> CostReading:
    """Return the reading of a model that computes past torch: nothing of it was seen, so no 0."""
    fields = (
        *("flops_per_batch", "flops_counter", "flops_coverage", "attention"),
        *("bytes_lower_bound_per_batch", "activation_peak_bytes"),
    )
    reasons = dict.fromkeys(fields, "not_supported: no operator of torch ran")
    return replace(reading, flops_status="unsupported", reasons=reading.reasons | reasons)


def _attempt(look: Callable[[], _Seen]) -> _Seen | _Failed:
    try:
        return look()
    # Whatever the model raises, on tensors without numbers or while every operator is watched: it
    # has run before, so that says nothing against it.
    except Exception as error:
        return _Failed(printable(" ".join(f"{type(error).__name__}: {error}".split())[:200]))


def _on_shadow(module: "torch.nn.Module", inputs: Mapping[str, object]) -> _Seen:
    without_numbers = shadow(module)
    call = bind(without_numbers, shadows(inputs))
    return _Seen(count=counting.count(without_numbers, call), how="meta tensors")


def _in_real_run(
    module: "torch.nn.Module", run: Callable[[], object], inputs: Mapping[str, object]
) -> _Seen:
    import torch

    lifetimes = activations.Lifetimes()
    count = counting.count(module, run, lifetimes, inputs=inputs)
    devices = {each.device for each in weights.dense((list(module.parameters()), inputs))}
    cuda = [each for each in devices if each.type == "cuda"]
    peak = None if count.is_elsewhere else lifetimes.peak_bytes
    if cuda:
        peak = activations.cuda_peak(run, cuda, cuda=torch.cuda)
    return _Seen(count=count, how="real run", peak_bytes=peak)


def _with_flops(reading: CostReading, seen: list[_Seen], *, why: str) -> CostReading:
    """Return the reading with the FLOPs of the call of which most is known; the shadow on a tie."""
    import torch

    if not seen:
        missing = ("flops_per_batch", "flops_counter", "flops_coverage")
        return replace(
            reading,
            flops_status=f"failed: {why}",
            reasons=reading.reasons | dict.fromkeys(missing, f"error: {why}"),
        )
    best = max(reversed(seen), key=lambda each: each.count.coverage)
    count, unknown = best.count, list(best.count.unknown)
    reading = replace(
        reading,
        flops_counter=f"{best.how}, torch {torch.__version__}{_doubt(best, seen)}",
        flops_coverage=count.coverage,
        uncounted_ops=unknown,
    )
    if unknown and not count.counted:
        others = [each for each in unknown if each != counting.ELSEWHERE]
        why = f"not_supported: no formula for {others[0]}" if others else _UNHEARD
        reasons = reading.reasons | {"flops_per_batch": why}
        return replace(reading, flops_status="unsupported", reasons=reasons)
    # The layers of the real run are the rows of a layer table; a fused one has no parts there.
    as_run = next((each.count for each in seen if each.count.flops == count.flops), count)
    return replace(
        reading,
        flops_status="partial" if unknown else "measured",
        flops_per_batch=count.flops,
        flops_by_layer=_printable(as_run.by_layer),
    )


def _printable(by_layer: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, each in by_layer.items():
        found[printable(name)] = found.get(printable(name), 0) + each
    return found


def _doubt(best: _Seen, seen: list[_Seen]) -> str:
    """Return what the other call came to if it is something else, although it knew everything."""
    others = [each for each in seen if each is not best and not each.count.unknown]
    differing = [each for each in others if each.count.flops != best.count.flops]
    return "".join(f"; {each.how}: {each.count.flops}" for each in differing)


def _with_run(reading: CostReading, seen: list[_Seen], real: _Seen | _Failed) -> CostReading:
    """Return the reading with what a run alone shows: bytes as cast, activations, attention."""
    reasons = dict(reading.reasons)
    moved = seen[0].count.moved_bytes if seen else None  # at the dtypes of the run, if it ran
    if moved is None:
        unseen = "not_supported: no layer could be watched"
        reasons["bytes_lower_bound_per_batch"] = unseen if seen else f"error: {real}"
    if isinstance(real, _Failed):
        reasons |= dict.fromkeys(("attention", "activation_peak_bytes"), f"error: {real}")
        return replace(reading, bytes_lower_bound_per_batch=moved, reasons=reasons)
    if real.peak_bytes is None:
        unseen = "not_supported: sparse, nested or oneDNN tensors"
        reasons["activation_peak_bytes"] = _UNHEARD if real.count.is_elsewhere else unseen
    return replace(
        reading,
        bytes_lower_bound_per_batch=moved,
        activation_peak_bytes=real.peak_bytes,
        attention=real.count.attention,
        reasons=reasons,
    )
