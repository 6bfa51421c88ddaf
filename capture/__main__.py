"""Lets `python -m capture` do what the command `capture` does."""

from capture.cli import main

main()
