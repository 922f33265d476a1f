"""Every peak of a machine, one after another, and what is said about them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from farm.errors import NoResult
from farm.hardware import Product, Roofs, Stream
from farm.hardware.roofs import RECIPE
from farm.schema import Precision
from workers.host.caches import cache_bytes
from workers.roofs import trials
from workers.roofs.caches import MIB, working_sets
from workers.station import Station

Say = Callable[[str], None]
Now = Callable[[], datetime]

FORMATS: Final[tuple[Precision, ...]] = ("fp32", "bf16", "fp16")


def measure(
    station: Station,
    say: Say,
    *,
    now: Now = lambda: datetime.now(UTC),
) -> Roofs:
    """Return the roofs of the station's system as they are now, each null with its reason.

    say: hears each finding. Raises Taken if somebody else holds the device for too long.
    """
    card, cores, at = station.card, len(station.device.cpus), _stamp(now())
    cache = cache_bytes(station.host, station.device.cpus)
    sets, over = working_sets(cache, cores=cores, free_bytes=station.host.memory_to_use())
    nulls = {} if cache else {"cache_bytes": "not_supported: this machine does not show its caches"}
    products: dict[str, Product | None] = {}
    with _never() as stop:
        for word in FORMATS:
            product, why = trials.product(station, word, cores=cores, stop=stop, at=at)
            products[word] = product
            nulls |= {} if product else {f"products.{word}": why}
            say(f"{word}: {why or _rate(product)}")
        streams = [trials.stream(station, size, stop=stop, at=at) for size in (*sets, over)]
    memory, why = streams.pop()
    nulls |= {} if memory else {"memory": why}
    say(f"memory: {why or _width(memory)}")
    return Roofs(
        system_id=card.system_id,
        system_class=card.system_class,
        device=station.device.name,
        threads=cores,
        recipe=RECIPE,
        tried_at=at,
        cache_bytes=cache,
        products=products,
        caches=[each for each, _ in streams if each is not None],
        memory=memory,
        null_reasons=nulls,
    )


def lines(roofs: Roofs) -> Iterator[str]:
    """Yield the roofs as lines for people; raises NoResult if there is none at all."""
    if roofs.is_empty:
        why = "; ".join(dict.fromkeys(roofs.null_reasons.values()))
        raise NoResult("no peak of this machine could be measured", why=why)
    for word, product in roofs.products.items():
        said = _rate(product) if product else f"–  {roofs.null_reasons[f'products.{word}']}"
        yield f"{word:<8}{said}"
    for each in roofs.caches:
        yield f"{'cache':<8}{_width(each)}"
    said = _width(roofs.memory) if roofs.memory else f"–  {roofs.null_reasons['memory']}"
    yield f"{'memory':<8}{said}"


def _rate(product: Product | None) -> str:
    if product is None:
        return ""
    return f"{product.flops_per_s / 1e9:,.1f} GFLOP/s, matrices of {product.size}"


def _width(stream: Stream | None) -> str:
    if stream is None:
        return ""
    triad, read = stream.triad_bytes_per_s / 1e9, stream.read_bytes_per_s / 1e9
    size = stream.working_set_bytes / MIB
    best = f"{stream.bytes_per_s / 1e9:,.1f} GB/s over {size:,.0f} MiB"
    return f"{best} (triad {triad:,.1f}, read {read:,.1f})"


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@contextmanager
def _never() -> Iterator[int]:
    """Yield a descriptor that never says stop: whoever measures by hand presses Ctrl-C."""
    never, other = os.pipe()
    try:
        yield never
    finally:
        os.close(never)
        os.close(other)
