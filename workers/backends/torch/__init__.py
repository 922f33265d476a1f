"""The backend `torch`: modules and step functions, from the zoo, a package or a user's file.

A step that works on numpy arrays runs here too, and then torch is not even imported. Because a
user's package may take the names `workers` and `farm` (see `usercode`), everything of ours is
imported at the top of these files, and only torch itself inside functions.
"""
