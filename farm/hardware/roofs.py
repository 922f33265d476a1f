"""Measured peaks of one system: the quickest matrix product, the widest stream through memory.

How fast memory is depends on how much of it is used. Most of what a small model touches stays in
the caches of a CPU, whose last level may be larger than a model, so streams are measured over
several working sets. Work of so many bytes is held against the largest set that is not larger: what
fits into a cache is never compared with the memory behind it.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import field, structs

from farm.hardware.spec import GPUSpec
from farm.schema import Stored

# Enters every document: what was measured in another way is measured again.
RECIPE: Final = "roofs/1"


class Product(Stored, frozen=True, kw_only=True):
    """The best of all matrix products in one format; size: of the square matrices it was seen at.

    runs: of each size. sizes: all that were tried.
    """

    flops_per_s: float
    size: int
    sizes: list[int]
    runs: int
    taken_at: str


class Stream(Stored, frozen=True, kw_only=True):
    """The best passes through arrays of so many bytes in all.

    triad: a = b + s·c, two words read and one written. read: a sum or a dot product. Source:
    McCalpin 1995, STREAM; the write of a triad also reads its line, which is not counted there, so
    that reading alone may be the wider of the two.
    """

    working_set_bytes: int
    triad_bytes_per_s: float
    read_bytes_per_s: float
    runs: int
    taken_at: str

    @property
    def bytes_per_s(self) -> float:
        return max(self.triad_bytes_per_s, self.read_bytes_per_s)


class Roofs(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.roofs/v1"):
    """The measured peaks of a system; best valid values over all tries, the last at `tried_at`.

    products: by number format, None with its reason where none was valid yet. caches: streams that
    are smaller than the last-level caches together, ascending; cache_bytes: what those hold.
    memory: the stream that no cache holds.
    """

    system_id: str
    system_class: str
    device: str
    threads: int
    recipe: str
    tried_at: str
    cache_bytes: int | None
    products: dict[str, Product | None]
    caches: list[Stream]
    memory: Stream | None
    null_reasons: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return self.memory is None and not any(self.products.values())


def better(old: Roofs | None, new: Roofs) -> Roofs:
    """Return the new roofs with every value of the old ones that was better or is missing now.

    Old ones of another system or recipe count for nothing.
    """
    if old is None or (old.system_id, old.recipe) != (new.system_id, new.recipe):
        return new
    products = dict(old.products)
    for word, product in new.products.items():
        products[word] = _quickest(old.products.get(word), product)
    sets = [*old.caches, *new.caches]
    sizes = sorted({each.working_set_bytes for each in sets})
    memory = _widest([each for each in (old.memory, new.memory) if each is not None])
    reasons = {**old.null_reasons, **new.null_reasons}
    missing = {f"products.{word}" for word, each in products.items() if each is None}
    missing |= {"memory"} if memory is None else set()
    missing |= {"cache_bytes"} if new.cache_bytes is None else set()
    caches = [_widest([s for s in sets if s.working_set_bytes == size]) for size in sizes]
    return structs.replace(
        new,
        products=products,
        caches=[each for each in caches if each is not None],
        memory=memory,
        null_reasons={path: why for path, why in reasons.items() if path in missing},
    )


def peaks(roofs: Roofs, *, moved_bytes: float | None = None) -> GPUSpec:
    """Return the measured peaks for work that moves so many bytes, or for memory if unknown."""
    stream = _stream(roofs, moved_bytes)
    reasons = roofs.null_reasons
    unknown = {
        word: reasons[f"products.{word}"] for word, each in roofs.products.items() if not each
    }
    if stream is None:
        unknown["bytes"] = reasons["memory"]
    return GPUSpec(
        name=roofs.device,
        peak_flops_per_s={word: each.flops_per_s for word, each in roofs.products.items() if each},
        peak_bytes_per_s=None if stream is None else stream.bytes_per_s,
        source="measured",
        unknown=unknown,
    )


def _stream(roofs: Roofs, moved_bytes: float | None) -> Stream | None:
    """Return the largest set that is not larger than the work, which no smaller one outruns."""
    memory = roofs.memory
    if moved_bytes is None or not roofs.caches:
        return memory
    if memory is not None and moved_bytes >= memory.working_set_bytes:
        return memory
    fitting = [each for each in roofs.caches if each.working_set_bytes <= moved_bytes]
    return fitting[-1] if fitting else roofs.caches[0]


def _quickest(old: Product | None, new: Product | None) -> Product | None:
    if old is None or new is None:
        return old or new
    return max(old, new, key=lambda each: each.flops_per_s)


def _widest(streams: Sequence[Stream]) -> Stream | None:
    """Return the newest stream with the best triad and the best read of all; None for none."""
    if not streams:
        return None
    return structs.replace(
        streams[-1],
        triad_bytes_per_s=max(each.triad_bytes_per_s for each in streams),
        read_bytes_per_s=max(each.read_bytes_per_s for each in streams),
    )
