"""What `analyze TRACE` writes beside the report: tables and pictures."""

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
            "--svg", metavar="DIR", help="Also draw ledger, timeline and roofline as SVG files in DIR, light and dark."
        ),
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
        pictures: folder for pictures, None for none.
        force: replace files that this program did not make.
    """

    tables: str | None
    form: str
    pictures: str | None
    force: bool

    @property
    def asked(self) -> dict[str, str]:
        """The options that were given, with their folders."""
        folders = {"--tables": self.tables, "--svg": self.pictures}
        return {option: folder for option, folder in folders.items() if folder is not None}

    def check(self) -> None:
        """Refuse what cannot be served before a long file is read.

        Raises:
            OutputError: a folder that cannot be written to.
        """
        if self.tables is not None:
            from analyze.report.share.tables import check_folder

            check_folder(self.tables, force=self.force)
        if self.pictures is not None:
            from analyze.report.svg import write

            write.check_folder(self.pictures, force=self.force)

    def write(self, report: Report) -> None:
        """Write what was asked for."""
        if self.tables is not None:
            from analyze.report.share.tables import write_tables

            count = write_tables(report, self.tables, self.form, force=self.force)
            say(f"wrote {plural(count, 'table')} to {printable(self.tables)}")
        if self.pictures is not None:
            from analyze.report.svg.write import write_pictures

            names = write_pictures(report, self.pictures, force=self.force)
            say(
                f"drew {', '.join(names) or 'nothing: the report has no figures to draw'} in {printable(self.pictures)}"
            )
