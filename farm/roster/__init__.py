"""Rosters: the models that somebody expects to be measured, checked and put in a table."""

from farm.roster.expected import Expected, Roster, load
from farm.roster.judging import FIELDS, Aggregate, aggregate, comma_separated
from farm.roster.reports import Report, in_files, in_store

__all__ = [
    "FIELDS",
    "Aggregate",
    "Expected",
    "Report",
    "Roster",
    "aggregate",
    "comma_separated",
    "in_files",
    "in_store",
    "load",
]
