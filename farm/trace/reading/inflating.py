"""The bytes of a file as they were written, whether it lies there plain or packed with gzip."""

import zlib
from collections.abc import Generator, Iterator
from typing import BinaryIO, Final

from farm.trace.reading.tally import Tally

_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31  # zlib's word for: a gzip header, and a window of 32 KiB
_PACKED: Final = 64 << 10  # of a packed file at a time; traces shrink ten- to twentyfold


def chunks(file: BinaryIO, tally: Tally, *, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces of about `size`, unpacked where it is gzip.

    Content decides, not the name. Of damaged gzip all that could be unpacked is yielded, and the
    tally says `gzip`; what follows its last member and is no gzip counts as `trailing_data`.
    """
    first = file.read(len(_MAGIC))
    if first == _MAGIC:
        yield from _unpacked(file, first, tally, size=size)
        return
    data = first + file.read(max(size - len(first), 0))
    while data:
        yield data
        data = file.read(size)


def _unpacked(file: BinaryIO, packed: bytes, tally: Tally, *, size: int) -> Iterator[bytes]:
    while True:
        packed += file.read(_PACKED)
        if not packed.startswith(_MAGIC):
            tally.repair("trailing_data", bool(packed))
            return
        rest = yield from _member(file, packed, tally, size=size)
        if rest is None:
            return
        packed = rest


def _member(
    file: BinaryIO, packed: bytes, tally: Tally, *, size: int
) -> Generator[bytes, None, bytes | None]:
    """Yield what a member of a gzip file holds; return what follows it, None after a fault."""
    unpack = zlib.decompressobj(_GZIP)
    more = True  # zlib may hold output back although it took all of its input
    before, block, given = unpack.copy(), packed, 0
    while not unpack.eof:
        if not packed and not more:
            packed = file.read(_PACKED)
            before, block, given = unpack.copy(), packed, 0
            if not packed:
                tally.repair("gzip")
                return None
        try:
            out = unpack.decompress(packed, size)
        except zlib.error:
            yield from _to_the_fault(before, block, given=given)
            tally.repair("gzip")
            return None
        packed, more, given = unpack.unconsumed_tail, len(out) >= size, given + len(out)
        if out:
            yield out
    return unpack.unused_data


def _to_the_fault(unpack: "zlib._Decompress", packed: bytes, *, given: int) -> Iterator[bytes]:
    """Yield what comes out before the fault: a call that fails returns nothing of its own.

    unpack: as it was before these bytes. given: how much of what they hold was yielded before.
    """
    for at in range(len(packed)):
        try:
            out = unpack.decompress(packed[at : at + 1])
        except zlib.error:
            return
        if len(out) > given:
            yield out[given:]
        given = max(0, given - len(out))
