"""The profiles of a store, one by one: search, find by any of their names, show, read one value."""

from farm.profiles.search import Listed, find, listed
from farm.profiles.showing import document, screen, table
from farm.profiles.values import Value, fields, value

__all__ = [
    "Listed",
    "Value",
    "document",
    "fields",
    "find",
    "listed",
    "screen",
    "table",
    "value",
]
