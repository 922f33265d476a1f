"""A store with a catalogue, made without a compactor: each thing that matters is an argument."""

from collections.abc import Sequence

from farm import identity, schema
from farm.catalog import chain, parts
from farm.catalog.rows import Row, place
from farm.store import Store, part_key

WRITTEN = "2026-11-30T23:00:00Z"


def put(store: Store, rows: Sequence[Row]) -> None:
    """Put profiles into the inbox, each under its key."""
    for each in rows:
        store.put_new(each.key, schema.encode(each.profile))


def part(store: Store, rows: Sequence[Row], data: bytes | None = None) -> schema.CatalogPart:
    """Put one part; data: its bytes, if they are not what `encode` gives."""
    data = parts.encode(rows) if data is None else data
    digest = identity.content_id(data)
    key = part_key("2026-11", digest)
    store.put_new(key, data)
    days = [found.day for each in rows if (found := place(each.key))]
    began = [each.profile.execution.started_at for each in rows]
    return schema.CatalogPart(
        key=key,
        sha256=digest,
        bytes=len(data),
        rows=len(rows),
        started_min=min(began),
        started_max=max(began),
        received_min=min(days),
        received_max=max(days),
    )


def commit(
    store: Store,
    held: Sequence[schema.CatalogPart],
    *,
    number: int = 1,
    written_at: str = WRITTEN,
    unreadable: Sequence[schema.CatalogUnreadable] = (),
) -> None:
    """Make these parts the catalogue."""
    document = schema.Catalog(
        number=number,
        written_at=written_at,
        writer="test",
        parts=list(held),
        unreadable=list(unreadable),
    )
    chain.commit(store, document)


def compacted(store: Store, *groups: Sequence[Row]) -> list[schema.CatalogPart]:
    """Put profiles into inbox and catalogue, each group a part."""
    for each in groups:
        put(store, each)
    held = [part(store, each) for each in groups]
    commit(store, held)
    return held
