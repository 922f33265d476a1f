"""A bucket as a store, shared by any number of threads, processes and machines.

What makes a store of it is the conditional write: a PUT with If-None-Match fails with 412 where the
key is taken, and nothing but 412 means that. A 412 may also be the echo of our own PUT, whose
answer was lost; so it is never believed without reading back.
"""

import hashlib
import logging
import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from farm.address import Address
from farm.store import wire
from farm.store.bucket import Bucket, CutShort, Goods, etag_of, goods_of
from farm.store.content import digest_of, landing, other_bytes, verify
from farm.store.contract import (
    LAYOUT,
    LAYOUT_KEY,
    Conflict,
    Corrupt,
    Denied,
    Entry,
    NotFound,
    Unreachable,
    Unsupported,
    other_layout,
)
from farm.store.keys import check_key, is_key, promised_digest

log = logging.getLogger(__name__)

T = TypeVar("T")

WRITES: Final = 8  # tries where the store says 409: two writers met, and neither has won
READS: Final = 3
_PAUSE_S: Final = (0.05, 2.0)
_AGAIN: Final = ("NoSuchUpload", *wire.DAMAGED)
_PROBE_KEY: Final = "meta/probe.json"


class S3Store:
    """A bucket, or what lies below a prefix of it, as a store.

    client: one of boto3, in place of the one that this process shares, of which `patience` is told.
    sleep, rng: between tries.
    """

    def __init__(
        self,
        address: Address,
        *,
        client: Any = None,
        patience: wire.Patience = wire.USUAL,
        sleep: Callable[[float], None] = time.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.address = address
        self._client, self._patience = client, patience
        self._sleep, self._rng = sleep, rng or random.Random()

    def __repr__(self) -> str:
        return f"S3Store({self.address.url!r})"

    def put_new(
        self, key: str, source: bytes | Path, *, media_type: str = "application/json"
    ) -> bool:
        """As in Store. What is too big for one request is looked for before it is sent."""
        check_key(key)
        goods = goods_of(source, media_type)

        def create() -> bool:
            if not goods.fits_at_once and self._is_kept(key, goods):
                return False
            self._bucket.put(key, goods, IfNoneMatch="*")
            return True

        return self._decided(key, create, otherwise=lambda: self._compared(key, goods))

    def get(self, key: str, *, to: Path | None = None, sha256: str | None = None) -> bytes:
        """As in Store. A body that is cut short is fetched three times, a wrong one twice."""
        check_key(key)
        return self._read(lambda: self._fetched(key, to, sha256))

    def swap(self, key: str, data: bytes, *, expect: str | None) -> str:
        check_key(key)
        goods = goods_of(data, "application/json")
        condition = {"IfNoneMatch": "*"} if expect is None else {"IfMatch": f'"{expect}"'}

        def look() -> str | None:
            try:
                etag = self._etag_if_same(key, goods)
            except NotFound:
                if expect is None:
                    return None
                etag = ""
            if not etag:
                raise Conflict(
                    f"{key} was changed by another writer",
                    key=key,
                    store=self.address.name,
                    hint="read it again and repeat",
                )
            return etag

        return self._decided(key, lambda: self._bucket.put(key, goods, **condition), otherwise=look)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Entry]:
        """As in Store, one page in memory at a time. Raises Unsupported if keys do not ascend."""
        for each in self._bucket.listed(prefix, after):
            if is_key(each["Key"]) and each["Key"] > after:
                when = each["LastModified"].timestamp()
                yield Entry(each["Key"], each["Size"], etag_of(each), when)

    def probe(self) -> None:
        """As in Store: the second of two different writes to one key must be refused."""
        with suppress(Conflict):
            self.put_new(_PROBE_KEY, b'{"probe": 1}\n')
        try:
            self.put_new(_PROBE_KEY, b'{"probe": "%s"}\n' % secrets.token_hex(16).encode())
        except Conflict:
            pass
        else:
            raise Unsupported(
                "the store overwrites what is there",
                key=_PROBE_KEY,
                store=self.address.name,
                why=f"a second PUT with If-None-Match succeeded in {self.address.name}",
                hint="name a store that refuses it: the operator guide lists them",
            )
        try:
            self.put_new(LAYOUT_KEY, LAYOUT)
        except Conflict as error:
            raise other_layout(error, self.get(error.key)) from error

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def _decided(self, key: str, act: Callable[[], T], *, otherwise: Callable[[], T | None]) -> T:
        """Act until the store has decided, and return what came of it.

        otherwise: looks at what is there once the store has refused; None: nothing any more.
        """
        for attempt in range(1, WRITES + 1):
            try:
                return act()
            except wire.TROUBLE as error:
                if wire.status_of(error) == 412 or wire.code_of(error) == "NoSuchKey":
                    if (found := otherwise()) is not None:
                        return found
                elif wire.status_of(error) != 409 and wire.code_of(error) not in _AGAIN:
                    raise self._bucket.told(error, key) from error
                last = error
            self._pause(attempt)
        raise Unreachable(
            f"the store does not decide who writes {key}",
            key=key,
            store=self.address.name,
            why=f"{WRITES} tries, the last one: {last}",
            hint="nothing was lost, try again",
        ) from last

    def _compared(self, key: str, goods: Goods) -> bool | None:
        """Return False if the key holds our bytes, None if it holds nothing; raise otherwise."""
        try:
            etag = self._etag_if_same(key, goods)
        except NotFound:
            return None
        except Denied:
            if promised_digest(key.rpartition("/")[2]) != goods.sha256:
                raise
            log.warning("%s is there and may not be read back: its name is believed", key)
            return False
        if not etag:
            raise other_bytes(key, goods.sha256, store=self.address.name)
        return False

    def _is_kept(self, key: str, goods: Goods) -> bool:
        """Return whether the key holds our bytes already; raise if it holds others."""
        with suppress(Denied):  # so AWS says of what is not there to whoever may not list
            return self._compared(key, goods) is not None
        return False

    def _etag_if_same(self, key: str, goods: Goods) -> str:
        """Return the etag of an object that has these bytes, "" if it has others.

        What is sent as a file is compared by what its writer said of it. Raises NotFound.
        """
        if isinstance(goods.source, Path):
            head = self._bucket.head(key)
            said = head.get("Metadata", {}).get("sha256")
            if said is not None:
                same = (head["ContentLength"], said) == (goods.size, goods.sha256)
                return etag_of(head) if same else ""

        def compare() -> str:
            with self._bucket.opened(key) as opened:
                same = opened.size == goods.size and digest_of(opened.pieces) == goods.sha256
                return opened.etag if same else ""

        return self._read(compare)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def _fetched(self, key: str, to: Path | None, sha256: str | None) -> bytes:
        store, digest = self.address.name, hashlib.sha256()
        with self._bucket.opened(key) as opened:
            if to is None:
                data = b"".join(opened.pieces)
                digest.update(data)
                verify(digest.hexdigest(), sha256, key=key, store=store)
                return data
            with landing(to) as out:
                for piece in opened.pieces:
                    digest.update(piece)
                    out.write(piece)
                verify(digest.hexdigest(), sha256, key=key, store=store)
        return b""

    def _read(self, fetch: Callable[[], T]) -> T:
        """Return what is fetched, trying again where a body is cut short or, once, is wrong."""
        was_wrong = False
        for attempt in range(1, READS):
            try:
                return fetch()
            except CutShort:
                pass
            except Corrupt:
                if was_wrong:
                    raise
                was_wrong = True
            self._pause(attempt)
        return fetch()

    def _pause(self, attempt: int) -> None:
        least, most = _PAUSE_S
        self._sleep(self._rng.uniform(0.0, min(most, least * 2.0 ** (attempt - 1))))

    @cached_property
    def _bucket(self) -> Bucket:
        try:
            client = self._client or wire.shared_client(self.address, self._patience)
        except (*wire.TROUBLE, OSError) as error:
            raise wire.told(error, key="", store=self.address.name) from error
        return Bucket(self.address, client)
