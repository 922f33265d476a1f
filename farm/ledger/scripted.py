"""The script of the ledger: each call is one transaction on the server."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farm.ledger.records import TTL_S
from farm.ledger.views import Views
from farm.ledger.wire import reaching

if TYPE_CHECKING:
    from redis.commands.core import Script

_PARTS: Final = ("entry.lua", "holds.lua", "ledger.lua")


class Scripted(Views):
    """A ledger that can be changed; raises as `Views` does."""

    def __init__(self, url: str, *, ttl_s: float = TTL_S) -> None:
        super().__init__(url, ttl_s=ttl_s)
        folder = Path(__file__).parent
        source = "".join((folder / name).read_text() for name in _PARTS)
        self._script: Script = self._redis.register_script(source)

    def _call(self, operation: str, arguments: dict[str, Any]) -> Any:
        with reaching():
            answer = self._script(args=[operation, json.dumps(arguments)])
        return json.loads(answer)["answer"]
