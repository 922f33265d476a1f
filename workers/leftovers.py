"""What earlier attempts at a job left: a profile in the store, one in the spool, ended repeats.

None of it is measured again, and none of it is taken for something else: repeats belong to a slot,
a system and an effort, a profile in the spool to a run as well.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from farm import identity, schema
from farm.errors import Bad
from farm.ledger import Claim
from farm.schema import Order, Profile
from farm.store import Denied, NotFound, Store, check_there, profile_ids
from workers.control import Setup
from workers.spool import Spool, Waiting


class Leftovers:
    """Looks for them on behalf of the slot of a setup."""

    def __init__(self, store: Store, spool: Spool, setup: Setup) -> None:
        self._store, self._spool = store, spool
        self._work = Path(setup.state) / "work"
        self._name = setup.slot.slot.replace(":", "-")
        self._system_id = setup.card.system_id

    def folder(self, claim: Claim, order: Order) -> Path:
        """Return where the repeats of this job lie: of this slot, this system and this effort.

        What one slot leaves there another must not take over as measured on its own cores.
        """
        name = f"{self._name}-{self._system_id[:8]}-{effort_id(order)[:8]}"
        return self._work / claim.key / name

    def clear(self, claim: Claim) -> None:
        """Forget the repeats of a job that has ended, whatever effort they were measured with."""
        for each in (self._work / claim.key).glob(f"{self._name}-*"):
            shutil.rmtree(each, ignore_errors=True)
        with suppress(OSError):  # another slot may be at it
            (self._work / claim.key).rmdir()

    def stored(self, key: str) -> Profile | None:
        """Return the profile that an earlier attempt put under this key before it died, if it did.

        Raises a StoreError if the store is away: then nobody knows.
        """
        if not key:
            return None
        named = profile_ids(key)
        try:
            data = self._store.get(key, sha256=named[1] if named else None)
            return schema.decode(data, Profile)
        except NotFound:
            check_there(self._store)  # a store that is away holds nothing either
            return None
        # It cannot be read any more; or it is not there: AWS says 403 to who may not list.
        except (Bad, Denied):
            return None

    def waiting(self, claim: Claim, order: Order) -> list[Waiting]:
        """Return what waits in our spool for this very entry of this run, the oldest first.

        The lease ran out, or the run was ended, before the store took it. Another run could not
        tell it from a profile of long ago. Raises Unreachable if the spool cannot be used.
        """
        wanted = (claim.key, claim.run, effort_id(order))
        return [
            each
            for each in self._spool.of_job(order.job.job_id)
            if (each.parcel.entry, each.parcel.run, each.parcel.effort) == wanted
        ]


def effort_id(order: Order) -> str:
    """Return a hash of the effort that a job is to be measured with."""
    return identity.content_id(msgspec.json.encode(order.effort))[:32]
