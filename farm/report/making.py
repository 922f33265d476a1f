"""The report of a run, from what the store holds now."""

from collections.abc import Sequence
from datetime import datetime

from farm import schema
from farm.catalog import rows, winners
from farm.catalog.winners import Winner
from farm.errors import Bad
from farm.report import model
from farm.report.record import Report
from farm.schema import Manifest, SystemCard
from farm.store import NotFound, Store, card_key


def made(store: Store, expected: Manifest, *, now: datetime) -> Report:
    """Return the report of a run; a document that cannot be read is named in it.

    Raises what the store raises when it is away.
    """
    found = rows.read(store, job_ids={each.job_id for each in expected.jobs})
    best = winners.of_run(found.rows, expected)
    cards = _cards(store, best)
    return model.build(expected, best, cards=cards, now=now, unreadable=found.unreadable)


def _cards(store: Store, best: Sequence[Winner]) -> dict[str, SystemCard]:
    cards = {}
    for card_id in sorted({each.row.profile.card_id for each in best} - {""}):
        try:
            cards[card_id] = schema.decode(store.get(card_key(card_id)), SystemCard)
        except (NotFound, Bad):
            continue  # it costs the facts of its machine, and no figure
    return cards
