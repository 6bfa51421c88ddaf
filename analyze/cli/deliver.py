"""A document to its files, to standard output and to the CI job's summary."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.errors import OutputError

if TYPE_CHECKING:
    from analyze.blocks import Page
    from analyze.report.to_json import AnyReport

PROGRESS_AFTER_S, PROGRESS_EVERY_S = 0.5, 0.1
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Delivery:
    """Where a document goes and how it looks; the options of `output_options`."""

    report_format: str | None
    outputs: tuple[str, ...]
    force: bool
    color: str
    ascii_only: bool
    redact: bool
    summary_github: bool
    quiet: bool = False

    def check(self) -> None:
        """Refuse what cannot be served before a long file is read.

        Raises:
            OutputError: no such format or folder, or options that contradict each other.
        """
        from analyze.report.formats import HTML_LATER

        if self.report_format == "html":
            raise OutputError(HTML_LATER)
        if self.quiet and self.report_format:
            raise OutputError("--quiet prints no report on standard output.", "Pass --quiet or --report.")
        for output in self.outputs:
            check_output(output)

    def deliver(self, report: AnyReport) -> None:
        """Write a document to its files, and print it where that is asked for or nothing was written."""
        from analyze.report import write

        if self.redact:
            from analyze.report.redact import redacted

            report = redacted(report)
        for output in self.outputs:
            write(report, output, force=self.force)
            click.echo(f"wrote {output}", err=True)
        if self.summary_github:
            _append_summary(report.page)
        if self.quiet:
            from analyze.report.brief import brief

            self._print(brief(report))
        elif self.report_format or not self.outputs:
            form = self.report_format or ("terminal" if sys.stdout.isatty() else "md")
            self._print(self._text(report, form))
        if self.outputs or self.report_format == "json":
            for line in report.page.gates:
                click.echo(line, err=True)

    def _text(self, report: AnyReport, form: str) -> str:
        from analyze.report import render

        if form != "terminal":
            return render(report, form)
        from analyze.report import to_terminal

        plain = self.ascii_only or not _takes_utf8()
        return to_terminal.render(report.page, width=_width(), color=_wants_color(self.color), ascii_only=plain)

    def _print(self, text: str) -> None:
        if self.ascii_only or (self.quiet and not _takes_utf8()):
            from analyze.report.text import to_ascii

            text = to_ascii(text) if self.quiet else text
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read it has seen enough; a failed gate is one all the same
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_output(output: str, *, any_suffix: bool = False) -> None:
    """Refuse a file that cannot be written, by its name alone.

    Raises:
        OutputError: the suffix names no format, or the folder is not there.
    """
    from analyze.report.formats import format_of

    if not any_suffix:
        format_of(output)
    if not Path(output).absolute().parent.is_dir():
        raise OutputError(f"{output}: there is no such folder.", "Create it first.")


def _append_summary(page: Page) -> None:
    """Append the Markdown to the summary of a GitHub Actions step."""
    path = os.environ.get(SUMMARY)
    if not path:
        click.echo(f"{SUMMARY} is not set: no summary was appended.", err=True)
        return
    from analyze.report import to_markdown

    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(to_markdown.render(page) + "\n")
    except OSError as error:
        raise OutputError(
            f"{SUMMARY} names {path}, which cannot be written: {error.strerror or error}.",
            "Leave --summary-github out.",
        ) from error


@contextmanager
def progress() -> Iterator[Callable[[int, int], None] | None]:
    """Bytes read so far, on a terminal's stderr, for work of over half a second; erased at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    begun, shown = time.monotonic(), 0.0

    def tell(done: int, whole: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun > PROGRESS_AFTER_S and now - shown > PROGRESS_EVERY_S:
            shown = now
            of = f" of {whole / 1e6:,.0f}" if whole else ""
            sys.stderr.write(f"\r\x1b[Kread {done / 1e6:,.0f}{of} MB")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _takes_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _width() -> int:
    from analyze.report.to_terminal import DEFAULT_WIDTH, MAX_WIDTH

    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return min(os.get_terminal_size(sys.stdout.fileno()).columns, MAX_WIDTH)


def _wants_color(color: str) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
