"""What a person may ask: one SELECT over the three views, and nothing else.

The connection is locked besides; this is what makes a refusal say what can be asked instead. It
reads the tree that DuckDB itself parsed, so no spelling gets past it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from farm.catalog.sql import NIGHT_COLUMNS, VIEWS, WINNER_COLUMNS
from farm.errors import Refused, did_you_mean

LONGEST: Final = 100_000  # signs of a query
# Functions that give rows without reading any file.
_TABLES: Final = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
# What tells of settings, plans and other queries, or leaves something behind.
_CLOSED: Final = frozenset(
    (
        *("current_query", "current_setting", "currval", "get_block_size", "getenv", "getvariable"),
        *("json_serialize_plan", "nextval", "pg_get_constraintdef", "pg_get_viewdef", "write_log"),
    )
)
_HINT: Final = f"ask one SELECT over {', '.join(VIEWS)}"


def views_of(tree: str, *, taken: frozenset[str]) -> frozenset[str]:
    """Return the views that a query reads, given as DuckDB serializes it.

    taken: names of tables that are none of a person's business; a part of the query may not be
    called so. Raises Refused for everything but one SELECT over the views.
    """
    root = _root(tree)
    statements = root.get("statements")
    if not isinstance(statements, list) or len(statements) != 1:
        count = len(statements) if isinstance(statements, list) else 0
        raise Refused(f"the query has {count} statements", why="one can be answered", hint=_HINT)
    nodes = list(_nodes(statements[0]))
    own = {str(each["key"]).lower() for node in nodes for each in _named(node)}
    if shadows := sorted(own & taken):
        raise Refused(f"{shadows[0]!r} is taken", hint="call that part of the query otherwise")
    found: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            name = _table(node, own)
            found |= {name} & set(VIEWS)
        elif kind == "SHOW_REF" and not node.get("query"):
            raise Refused("the query asks for more than the views", hint=_HINT)
        elif kind == "TABLE_FUNCTION":
            _check_function(node)
        elif kind == "FUNCTION" and str(node.get("function_name")).lower() in _CLOSED:
            raise Refused(f"{node['function_name']}() cannot be asked for", hint=_HINT)
    return frozenset(found)


def column_hint(name: str, views: frozenset[str]) -> str:
    """Return a hint at the column of these views that is nearest to a name."""
    known = [*(NIGHT_COLUMNS if views == {"nights"} else WINNER_COLUMNS)]
    return did_you_mean(name, known) or f"`DESCRIBE {min(views, default='winners')}` lists them"


def _root(tree: str) -> Mapping[str, object]:
    try:
        root = msgspec.json.decode(tree)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused("the query is nested too deeply") from error
    if not isinstance(root, dict):
        raise Refused("the query cannot be read", hint=_HINT)
    if not root.get("error"):
        return root
    said = " ".join(str(root.get("error_message", "")).split())
    if root.get("error_type") == "parser":
        raise Refused("the query cannot be read", why=said, hint=_HINT)
    raise Refused("the query is no SELECT", hint=_HINT)


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    left = [tree]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            yield each
            left += each.values()
        elif isinstance(each, list):
            left += each


def _named(node: Mapping[str, object]) -> list[dict[str, object]]:
    """Return what a WITH of this node names."""
    held = node.get("cte_map")
    named = held.get("map") if isinstance(held, dict) else None
    return [each for each in named if isinstance(each, dict)] if isinstance(named, list) else []


def _table(node: Mapping[str, object], own: set[str]) -> str:
    name = str(node.get("table_name", "")).lower()
    if node.get("schema_name") or node.get("catalog_name") or name not in own | set(VIEWS):
        known = sorted(own | set(VIEWS))
        raise Refused(
            f"there is no view {name!r}",
            why=f"known: {', '.join(VIEWS)}",
            hint=did_you_mean(name, known),
        )
    return name


def _check_function(node: Mapping[str, object]) -> None:
    function = node.get("function")
    name = str(function.get("function_name")) if isinstance(function, dict) else ""
    if name.lower() not in _TABLES:
        raise Refused(f"{name}() cannot be read from", hint=_HINT)
