"""`python -m analyze`."""

from analyze.cli import main

main()
