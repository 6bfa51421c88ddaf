"""Options that the commands of capture share."""

from __future__ import annotations

import click


class RenamedOption(click.Option):
    """An option with an older spelling, which still works and which help does not show.

    Its names are given in the order new, old.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The new name alone."""
        both, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = both
