"""A document to its files, to standard output and to the CI job's summary."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from analyze.cli.streams import is_terminal, put, say, takes_utf8, terminal_width
from analyze.errors import OutputError, SelectionError
from analyze.inert import printable
from analyze.report.formats import find_format

if TYPE_CHECKING:
    from analyze.blocks import Page
    from analyze.report.redact import Redaction
    from analyze.report.report import Document

_ENDS = re.compile(r"(\.(json|gz|zst|zip|pickle|pkl))+$", re.IGNORECASE)
PROGRESS_AFTER_S, PROGRESS_EVERY_S = 0.5, 0.1
SUMMARY = "GITHUB_STEP_SUMMARY"


class Delivery(Struct, frozen=True):
    """Where a document goes and how it looks; the options of `output_options`."""

    report_format: str | None
    outputs: tuple[str, ...]
    force: bool
    color: str
    ascii_only: bool
    redact: bool
    summary_github: bool
    redact_names: bool = False
    quiet: bool = False
    open_page: bool = False
    page_file: str = ""
    full: bool = False

    @property
    def pages(self) -> tuple[str, ...]:
        """The outputs that are HTML pages."""
        return tuple(one for one in self.outputs if Path(one).suffix.lower() in find_format("html").suffixes)

    def aimed(self, inputs: Sequence[str]) -> Delivery:
        """With a file for a page that was asked for without one: the input's own name, in the working folder.

        Args:
            inputs: the files that are read.

        Raises:
            OutputError: a page is to be opened, and none is made.
        """
        if self.report_format == "html":
            file = page_name(inputs, redacted=self.redact or self.redact_names)
            return replace(self, report_format=None, outputs=(*self.outputs, file), page_file=file)
        page = next(iter(self.pages), "")
        if self.open_page and not page:
            raise OutputError("--open opens an HTML page, and none is written.", "Add -o FILE.html, or --report html.")
        return replace(self, page_file=page) if self.open_page else self

    @property
    def one_screen_only(self) -> bool:
        """Nothing is made but the report on one screen, or less."""
        form = self.report_format or ("terminal" if is_terminal() else "md")
        return not (self.outputs or self.summary_github or self.full) and (self.quiet or form == "terminal")

    def redaction(self) -> Redaction | None:
        """What is taken out of the inputs, one for all of them; None where they may be shown as they are."""
        if not (self.redact or self.redact_names):
            return None
        from analyze.report.redact import Redaction

        return Redaction(names=self.redact_names)

    def check(self, inputs: Sequence[str], junit: str | None = None) -> None:
        """Refuse what cannot be served before a long file is read.

        Args:
            inputs: the files that are read; none of them is written to.
            junit: one more output.

        Raises:
            OutputError: no such format or folder, options that contradict each other, or a file that is not ours.
        """
        from analyze.report.files import refuse_inputs, refuse_others
        from analyze.report.formats import format_of

        if self.quiet and self.report_format:
            raise OutputError("--quiet prints no report on standard output.", "Pass --quiet or --report.")
        if self.full and self.quiet:
            raise OutputError("--quiet prints no report on standard output.", "Pass --quiet or --full.")
        if self.full and self.report_format in ("md", "json"):
            raise OutputError(
                f"--report {self.report_format} is full already: --full is for the terminal's.",
                "Leave out one of them.",
            )
        for output in self.outputs:
            format_of(output)
        outputs = [*self.outputs, *([] if junit is None else [junit])]
        summary = os.environ.get(SUMMARY) if self.summary_github else None
        refuse_inputs([*outputs, *([summary] if summary else [])], inputs)
        for output in outputs:
            if not os.path.isdir(Path(output).parent):
                raise OutputError(f"{output}: there is no such folder.", "Create it first.")
            refuse_others(output, force=self.force)

    def deliver(self, report: Document) -> None:
        """Write a document to its files, and print it where that is asked for or nothing was written."""
        from analyze.report import write

        if self.redact or self.redact_names:
            from analyze.report.redact import redacted

            report = redacted(report)
        if self.full:
            from analyze.report.lists import in_full

            report = in_full(report)
        for output in self.outputs:
            write(report, output, force=self.force)
            if output == self.page_file and not self.open_page:
                put(f"{printable(output)}\n", lambda text: text)
            else:
                say(f"wrote {printable(output)}")
        if self.summary_github:
            _append_summary(report.page)
        if self.open_page:
            import webbrowser  # it looks for browsers when it is loaded

            webbrowser.open(Path(self.page_file).resolve().as_uri())
        if self.quiet:
            from analyze.report.brief import brief
            from analyze.report.text import to_ascii

            text = brief(report)
            put(to_ascii(text) if self.ascii_only else text, to_ascii)
        elif self.report_format or not self.outputs:
            self._print(report, self.report_format or ("terminal" if self.full or is_terminal() else "md"))
        if self.outputs or self.report_format == "json":
            for line in report.page.gates:
                say(line)

    def _print(self, report: Document, form: str) -> None:
        from analyze.report import render
        from analyze.report.text import ascii_form, typable_in_ascii

        plain = self.ascii_only or not takes_utf8()
        if plain and form != "json":
            report = typable_in_ascii(report)
        if form == "terminal":
            from analyze.report import to_terminal

            width = terminal_width(to_terminal.MAX_WIDTH)
            text = to_terminal.render(report.page, width=width, color=_wants_color(self.color), ascii_only=plain)
        else:
            text = render(report, form)
            text = ascii_form(text, form) if plain else text
        put(text, lambda whole: ascii_form(whole, form))


def page_name(paths: Sequence[str], *, redacted: bool) -> str:
    """The file of a page: an input's own name without its suffixes, in the working folder; of several those of two.

    Args:
        paths: the inputs, "-" for standard input.
        redacted: whether hosts and persons are taken out of the names.
    """
    names = [Path(path).resolve().name if path not in ("", "-") else "report" for path in paths[:2]]
    if redacted:
        from analyze.report.redact import Redaction

        redaction = Redaction()
        names = [redaction.file(name) for name in names]
    return f"{'-and-'.join(_ENDS.sub('', name) for name in names) or 'report'}.html"


def check_read_once(paths: Sequence[str]) -> None:
    """Refuse standard input or a pipe as two inputs, by whatever names.

    Raises:
        SelectionError: one is named twice.
    """
    from analyze.trace.stream import STDIN, identity

    seen = set()
    for path in paths:
        pipe = identity(path)
        if pipe is not None and pipe in seen:
            what = "Standard input" if path == STDIN else path
            raise SelectionError(f"{what} can be read only once.", "Pass files.")
        seen.add(pipe)


def _append_summary(page: Page) -> None:
    """Append the Markdown to the summary of a GitHub Actions step."""
    path = os.environ.get(SUMMARY)
    if not path:
        say(f"{SUMMARY} is not set: no summary was appended.")
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
    """Bytes read, then what is measured, on a terminal's stderr, for work of over half a second; erased at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    begun, shown = time.monotonic(), 0.0

    def on_progress(done: int, whole: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun > PROGRESS_AFTER_S and now - shown > PROGRESS_EVERY_S:
            shown = now
            of = f" of {whole / 1e6:,.0f}" if whole else ""
            _draw(f"\r\x1b[Kread {done / 1e6:,.0f}{of} MB")

    def measure(record: logging.LogRecord) -> bool:
        nonlocal shown
        now = time.monotonic()
        if now - begun > PROGRESS_AFTER_S:
            shown = now
            _draw(f"\r\x1b[Kmeasuring {printable(record.getMessage())}, {now - begun:,.0f} s")
        return False  # it goes nowhere else

    from analyze.guard import STAGES

    STAGES.addFilter(measure)
    STAGES.setLevel(logging.DEBUG)
    try:
        yield on_progress
    finally:
        STAGES.removeFilter(measure)
        STAGES.setLevel(logging.NOTSET)
        if shown:
            _draw("\r\x1b[K")


def _draw(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone takes no progress
        sys.stderr.write(text)
        sys.stderr.flush()


def _wants_color(color: str) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal() and os.environ.get("TERM") != "dumb"
