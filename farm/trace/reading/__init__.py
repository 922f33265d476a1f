"""Traces of a whole run, read in constant memory: what is whole is kept, what is not is counted."""
