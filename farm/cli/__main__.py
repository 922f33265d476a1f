"""`python -m farm.cli`: the command where its script is not at hand."""

from farm.cli import main

main()
