"""The profiles of a store, one by one: search, find by any of their names, show, read one value."""

from farm.profiles.pulling import Pulled, pull
from farm.profiles.search import Listed, earliest, find, listed
from farm.profiles.showing import document, screen, table
from farm.profiles.values import METRICS, Value, by, fields, value

__all__ = [
    "METRICS",
    "Listed",
    "Pulled",
    "Value",
    "by",
    "document",
    "earliest",
    "fields",
    "find",
    "listed",
    "pull",
    "screen",
    "table",
    "value",
]
