"""The context of a command: how to speak, which settings hold, where the store is."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from farm.console import Console
    from farm.settings import Settings
    from farm.store import Store


@dataclass(frozen=True, kw_only=True)
class Talk:
    """What the words before the verb settled."""

    quiet: bool = False
    verbose: bool = False
    config: str | None = None
    color: Literal["auto", "always", "never"] = "auto"
    as_json: bool = False

    @classmethod
    def from_words(cls, words: Sequence[str]) -> "Talk":
        """Return how to speak of an error when the words may not even parse."""
        return cls(
            quiet="-q" in words or "--quiet" in words,
            verbose="-v" in words or "--verbose" in words,
            as_json="--json" in words,
        )

    def with_json(self, as_json: bool) -> "Talk":
        return replace(self, as_json=as_json)

    def console(self) -> "Console":
        from farm.console import Console

        return Console(
            sys.stdout,
            sys.stderr,
            color=self.color,
            environ=os.environ,
            as_json=self.as_json,
            quiet=self.quiet,
        )

    def settings(self, **flags: str | None) -> "Settings":
        """Return the effective settings; raises Refused naming the origin of a bad one."""
        from farm import settings

        return settings.load(
            {"config": self.config, **flags}, env=os.environ, cwd=Path.cwd(), home=Path.home()
        )

    def store(self, url: str) -> "Store":
        from farm.store import open_store

        return open_store(url)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, making its folder."""
    from farm.errors import Refused

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.tmp")
        partial.write_text(text, encoding="utf-8")
        partial.rename(path)
    except OSError as error:
        raise Refused(f"cannot write {str(path)!r}", why=error.strerror or "") from error
