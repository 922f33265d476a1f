"""What makes a page whole and closed: everything it needs is in it, and nothing else may run.

Each script is let in by its hash, so a hostile name cannot become code even if escaping failed.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from farm.report import words

if TYPE_CHECKING:
    from jinja2 import Environment


def policy(scripts: Sequence[str]) -> str:
    """Return the content security policy that lets these inline scripts run, and nothing else."""
    allowed = " ".join(f"'sha256-{_base64_digest(each)}'" for each in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def data_block(content: object, *, only_ascii: bool = False) -> str:
    """Return content as JSON that cannot end a script element.

    Raises ValueError if a number in it is not finite.
    """
    plain = json.dumps(content, ensure_ascii=only_ascii, separators=(",", ":"), allow_nan=False)
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def asset(name: str) -> str:
    """Return the text of one of our own files."""
    return (files("farm.report") / "assets" / name).read_text(encoding="utf-8")


def script(name: str) -> str:
    """Return a script without the pointer to its source map, which a debugger would ask for."""
    kept = [
        each for each in asset(name).splitlines() if not each.startswith("//# sourceMappingURL=")
    ]
    return "\n".join(kept)


def markup(trusted: str) -> str:
    """Return text that goes into the page as it is: our own files, and JSON made safe above."""
    from markupsafe import Markup

    return Markup(trusted)


@cache
def environment() -> "Environment":
    """Return what renders the templates: everything is escaped unless it is markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("farm.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["visible"] = words.visible
    made.filters["visible_lines"] = lambda each: words.visible(each, lines=True)
    made.filters["listed"] = lambda each: words.listed(each, most=8)
    made.filters["moment"] = lambda each: words.visible(each).replace("T", " ").replace("Z", " UTC")
    return made


def _base64_digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
