"""What `analyze TRACE` writes beside the report: tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from analyze.cli.streams import say
from analyze.inert import printable
from analyze.units import plural

if TYPE_CHECKING:
    from analyze.report.report import Report

_Command = TypeVar("_Command", bound=Callable[..., Any])


def extra_options(command: _Command) -> _Command:
    """Files beside the report."""
    for decorate in (
        click.option(
            "--as",
            "table_form",
            type=click.Choice(["parquet", "csv"]),
            default="parquet",
            show_default=True,
            help="Format of --tables.",
        ),
        click.option(
            "--tables", metavar="DIR", help="Also write every table of the report and frame of the trace to DIR."
        ),
    ):
        command = decorate(command)
    return command


class Extras(Struct, frozen=True):
    """What is written beside the report.

    Attributes:
        tables: folder for tables, None for none.
        form: format of the tables.
        force: replace files that this program did not make.
    """

    tables: str | None
    form: str
    force: bool

    def check(self) -> None:
        """Refuse what cannot be served before a long file is read.

        Raises:
            OutputError: a folder that cannot be written to.
        """
        if self.tables is not None:
            from analyze.report.share.tables import check_folder

            check_folder(self.tables, force=self.force)

    def write(self, report: Report) -> None:
        """Write what was asked for."""
        if self.tables is not None:
            from analyze.report.share.tables import write_tables

            count = write_tables(report, self.tables, self.form, force=self.force)
            say(f"wrote {plural(count, 'table')} to {printable(self.tables)}")
