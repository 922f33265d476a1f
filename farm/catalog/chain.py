"""The chain of manifests: each names the one before, and the newest whole one is the catalogue.

To put manifest n + 1 is the commit: of several writers one wins, the others start again. A damaged
manifest is named and passed over, never taken for the truth and never kept quiet about.
"""

from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from farm import identity, schema
from farm.errors import Bad
from farm.store import CATALOG_PREFIX, HEAD_KEY, NotFound, Store, StoreError, catalog_key

_SEAL: Final = b',"seal":"'
_LAST: Final = 10**8 - 1  # what the eight digits of a key can say
EMPTY: Final = schema.Catalog(number=0, written_at="", writer="", parts=[])


class Newer(Bad):
    """The manifest is whole and says what this farm does not know."""


class Damaged(NamedTuple):
    """A manifest that cannot be read, and why. newer: a newer farm could."""

    key: str
    reason: str
    newer: bool = False


class Pinned(NamedTuple):
    """The newest whole manifest, and the end of the chain, which the next one follows.

    number, sha256: of the newest manifest that there is, whole or not. document: the newest whole
    one; number 0 and no parts if none is. damaged: what was passed over, newest first.
    """

    number: int
    document: schema.Catalog
    sha256: str
    damaged: tuple[Damaged, ...] = ()


def newest(store: Store) -> Pinned | None:
    """Return the catalogue as it stands, None if nothing was ever committed.

    The hint saves a listing, and a wrong one costs no more than that. Raises what the store raises
    when it is away.
    """
    number, data = _end(store)
    if not number:
        return None
    damaged: list[Damaged] = []
    for each in range(number, 0, -1):
        held = data if each == number else read(store, each)
        try:
            document = opened(held, each)
        except Bad as error:
            newer = isinstance(error, Newer)
            damaged.append(Damaged(catalog_key(each), str(error), newer))
        else:
            break
    else:
        document = EMPTY
    return Pinned(number, document, identity.content_id(data or b""), tuple(damaged))


def commit(store: Store, document: schema.Catalog) -> Pinned:
    """Make the document the newest manifest, and point the hint at it if that can be done.

    Raises Conflict if another writer has taken the number: read the chain again and repeat.
    """
    data = sealed(document)
    store.put_new(catalog_key(document.number), data)
    _point(store, document.number)
    return Pinned(document.number, opened(data, document.number), identity.content_id(data))


def remind(store: Store, number: int) -> None:
    """Let the hint name this manifest if it does not, and if that can be done."""
    try:
        named = hinted(store)
    except Bad:
        named = 0
    if named != number:
        _point(store, number)


def sealed(document: schema.Catalog) -> bytes:
    """Return the bytes of a manifest: the document, and last the digest of all before it."""
    body = schema.encode(replace(document, seal=UNSET))[:-1]
    return body + _SEAL + identity.content_id(body).encode() + b'"}'


def opened(data: bytes | None, number: int) -> schema.Catalog:
    """Return the manifest that lies under this number.

    Raises Bad if there is none, or if its bytes are not those that were written; Newer if a newer
    farm wrote them.
    """
    if data is None:
        raise Bad("it is not in the store")
    body, _, seal = data.rpartition(_SEAL)
    if seal != identity.content_id(body).encode() + b'"}':
        raise Bad("it is damaged, or no manifest", why="its bytes do not match its seal")
    try:
        document = schema.decode(data, schema.Catalog)
    except Bad as error:
        raise Newer("it is whole, and a newer farm wrote it", why=str(error)) from error
    if document.number != number:
        raise Bad(f"it says that it is manifest {document.number}")
    return document


def read(store: Store, number: int) -> bytes | None:
    """Return the bytes of a manifest, None if it is not there."""
    try:
        return store.get(catalog_key(number))
    except NotFound:
        return None


def number_of(key: str) -> int | None:
    """Return the number of the manifest that has this key, None for any other key."""
    digits = key.removeprefix(CATALOG_PREFIX).removesuffix(".json")
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    return number if 0 < number <= _LAST and catalog_key(number) == key else None


def hinted(store: Store) -> int:
    """Return the number that the hint names, 0 if there is no hint.

    Raises Bad if it is none: damaged, or of somebody else.
    """
    try:
        found = schema.decode(store.get(HEAD_KEY), schema.CatalogHead).number
    except NotFound:
        return 0
    if not 0 < found <= _LAST:
        raise Bad(f"the hint names manifest {found}")
    return found


def _end(store: Store) -> tuple[int, bytes | None]:
    """Return number and bytes of the last manifest; 0 if there is none."""
    try:
        number = hinted(store)
    except Bad:
        number = 0
    data = read(store, number) if number else None
    if data is None:
        number, data = _last_whole(store)
    while number and (following := read(store, number + 1)) is not None:
        number, data = number + 1, following
    return number, data


def _last_whole(store: Store) -> tuple[int, bytes | None]:
    """Return the last manifest that is whole, else the last one; a foreign far number is none."""
    found = (number_of(each.key) for each in store.list(CATALOG_PREFIX))
    numbers = sorted((each for each in found if each is not None), reverse=True)
    for each in numbers:
        data = read(store, each)
        try:
            opened(data, each)
        except Newer:
            return each, data
        except Bad:
            continue
        return each, data
    return (numbers[0], read(store, numbers[0])) if numbers else (0, None)


def _point(store: Store, number: int) -> None:
    """Best effort: what is committed is committed without a hint."""
    data = schema.encode(schema.CatalogHead(number=number))
    try:
        etags = [each.etag for each in store.list(HEAD_KEY) if each.key == HEAD_KEY]
        store.swap(HEAD_KEY, data, expect=etags[0] if etags else None)
    except StoreError:
        return
