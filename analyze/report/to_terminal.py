"""The report on one terminal screen: verdict first, at most 80 columns unless the terminal is wider."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, OverflowMethod
from rich.style import Style
from rich.text import Text
from typing_extensions import assert_never

from analyze.blocks import Advice, Block, Breakdown, Column, Kind, Page, Series, Stat, Table
from analyze.inert import printable
from analyze.palette import BUSY, IDLE, SEVERITIES, VERDICTS
from analyze.report.text import (
    bar,
    breakdown_rows,
    cells,
    savings_column,
    series_figures,
    shorten,
    sparkline,
    to_ascii,
)
from analyze.report.walk import map_texts
from analyze.units import percent

DEFAULT_WIDTH = 80
MAX_WIDTH = 120
_LABEL = 10  # characters of the longest label on one screen and a blank
_BAR = 24
_NARROW = 60  # below it bars and shares go first; names are cut, numbers never
_NAME_AT_LEAST = 8
_GAP = "  "
_ADVISED = 3
_COMMANDS = 2
_LEVEL = 5
_LEVELS = {"high": "HIGH", "medium": "MED", "low": "LOW"}
_WHOLE: OverflowMethod = "ignore"  # a line that is never cut
_CONTINUED = " \\"
_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")  # of a command line, as it is written
_LEFT = (Kind.TEXT, Kind.CODE, Kind.BAR)


def render(page: Page, *, width: int = DEFAULT_WIDTH, color: bool = False, ascii_only: bool = False) -> str:
    """The page for a terminal.

    Args:
        page: what to draw.
        width: columns to fill.
        color: with ANSI colours; everything they say is also in the text.
        ascii_only: without bars, `µ` and other characters beyond ASCII.
    """
    file = io.StringIO()
    console = Console(
        file=file,
        width=min(width, MAX_WIDTH),
        force_terminal=color,
        color_system="truecolor" if color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in _lines(map_texts(page, printable), console.width):
        console.print(line, no_wrap=True, crop=line.overflow != _WHOLE, overflow=line.overflow or "crop")
    text = "\n".join(line.rstrip() for line in file.getvalue().split("\n"))
    return to_ascii(text) if ascii_only else text


def _lines(page: Page, width: int) -> Iterator[Text]:
    name = shorten(page.name, width - 2)
    about = page.about
    if len(name) + 2 + len(about) <= width:
        yield Text.assemble((name, "bold"), _GAP, about)
    else:
        yield Text(name, "bold")
        yield from _wrapped(about, width, " ")
    yield Text()
    word = Text(" " + page.headline.upper() + _GAP, Style(bold=True, color=VERDICTS.get(page.verdict)))
    yield from _wrapped(page.sentences[0], width, " ", word)
    for sentence in page.sentences[1:]:
        yield from _wrapped(sentence, width, " ")
    if page.whole is not None:
        yield Text()
        yield from _breakdown(page.whole, width)
    if page.full:
        yield from _everything(page, width)
        return
    stats: list[Stat] = []
    for section in page.sections:
        stats += [block for block in section.blocks if isinstance(block, Stat) and block.brief]
        for block in section.blocks:
            if isinstance(block, Advice):
                yield from _figures(stats, width)  # what the figures stand on comes before what to do about them
                stats.clear()
            if isinstance(block, Advice) or (isinstance(block, Table) and block.brief and block.rows):
                yield Text()
                yield from _block(block, width)
            elif isinstance(block, Series) and block.brief:
                yield from _block(block, width)
    yield from _figures(stats, width) if stats else (Text(),)
    yield from _closing(page, width)


def _everything(page: Page, width: int) -> Iterator[Text]:
    """Section by section under headings, with every row: to be read in a pager."""
    for section in page.sections:
        yield Text()
        yield Text(f" {section.title.upper()}", "bold underline")
        for block in section.blocks:
            if not isinstance(block, Stat):
                yield Text()
            if isinstance(block, Advice):
                yield from _whole_advice(block, width)
            elif not isinstance(block, Table):
                yield from _block(block, width)
            elif block.rows:
                yield from _whole_table(block, width)
    yield Text()
    yield from _closing(page, width)
    for i, missing in enumerate(page.not_measured):
        text = f"{missing.id}: {missing.reason}; to get it, {missing.how_to_get_it}"
        yield from _labelled("Missing" if i == 0 else "", text, width)
    yield from _wrapped(page.footer, width, " ")


def _whole_table(table: Table, width: int) -> Iterator[Text]:
    yield from _table(replace(table, brief=len(table.rows)), width)
    if table.note:
        yield from _wrapped(table.note, width, " ")


def _whole_advice(advice: Advice, width: int) -> Iterator[Text]:
    """Every suggestion with its reasons and its evidence, then the checks."""
    yield from _advice(advice, width, most=len(advice.suggestions))
    for item in advice.suggestions:
        yield Text()
        yield from _wrapped(f"{item.id}: {item.title}", width, " ", Text(" ", "bold"))
        for heading, text in (*item.paragraphs, ("Change", item.change), ("More", item.link)):
            yield from _wrapped(text, width, "   ", Text.assemble(("   " + heading + ": ", "bold")))
        for table in item.evidence:
            yield Text()
            yield from _whole_table(table, width)
    for what, checks in (("passed", advice.passed), ("not measured", advice.unmeasured)):
        if checks:
            yield Text()
            yield Text(f" Checks {what}", "bold")
        for name, reason in checks:
            yield from _wrapped(f"{name}: {reason}", width, "   ")


def _figures(stats: Sequence[Stat], width: int) -> Iterator[Text]:
    """Lines of figures under an empty one."""
    if stats:
        yield Text()
    for stat in stats:
        yield from _block(stat, width)


def _closing(page: Page, width: int) -> Iterator[Text]:
    for i, notice in enumerate(page.notices):
        yield from _labelled("Notes" if i == 0 else "", notice.text, width)
    for i, command in enumerate(page.next_steps[: None if page.full else _COMMANDS]):
        yield from _command("Next" if i == 0 else "", command, width)
    for i, gate in enumerate(page.gates):
        yield from _labelled("Gates" if i == 0 else "", gate, width)


def _block(block: Block, width: int) -> Iterator[Text]:
    match block:
        case Stat():
            yield from _labelled(block.label, block.text, width)
        case Breakdown():
            yield from _breakdown(block, width)
        case Table():
            yield from _table(block, width)
        case Series():
            yield _series(block, width)
        case Advice():
            yield from _advice(block, width)
        case _:
            assert_never(block)


def _advice(advice: Advice, width: int, *, most: int = _ADVISED) -> Iterator[Text]:
    """The first suggestions, each with its change on a second line."""
    shown = advice.suggestions[:most]
    if not shown:
        yield from _labelled("Checks", f"{_counted(advice)}; nothing found above a limit", width)
        return
    yield Text(f" {advice.title}", "bold")
    savings = savings_column(advice.suggestions)[: len(shown)]
    shares = ["" if s.saved_share is None else percent(s.saved_share) for s in shown]
    time, share = max(len(text) for text in savings), max(len(text) for text in shares)
    for i, suggestion in enumerate(shown):
        level = _LEVELS.get(suggestion.severity, suggestion.severity.upper())
        lead = Text.assemble(f" {i + 1} ", (f"{level:<{_LEVEL}}", Style(color=SEVERITIES.get(suggestion.severity))))
        if width >= _NARROW:
            lead.append(f"{savings[i]:>{time}}{_GAP}{shares[i]:>{share}}{_GAP}")
        yield lead.append(shorten(suggestion.title, max(width - lead.cell_len, _NAME_AT_LEAST)))
        shared = f" ({suggestion.shared})" if suggestion.shared else ""
        yield from _wrapped(f"{suggestion.id} → {suggestion.change}{shared}", width, "     ", Text("   "))
    more = len(advice.suggestions) - len(shown)
    rest = f"{more:,} more; " if more else ""
    yield from _wrapped(f"{advice.note} {rest}{_counted(advice)}.".strip(), width, "   ")


def _counted(advice: Advice) -> str:
    return f"{len(advice.passed):,} checks passed, {len(advice.unmeasured):,} not measured"


def _series(series: Series, width: int) -> Text:
    """Name, sparkline and figures; where it is narrow the sparkline goes first."""
    figures = series_figures(series)
    room = width - _LABEL - 2 - len(_GAP) - len(figures)
    drawn = sparkline(series, room) if width >= _NARROW else ""
    name = shorten(series.name, _LABEL)
    line = Text.assemble((f" {name:<{_LABEL}} ", "bold"), (drawn, Style(color=BUSY)), _GAP if drawn else "", figures)
    line.truncate(width)
    return line


def _labelled(label: str, text: str, width: int) -> Iterator[Text]:
    yield from _wrapped(text, width, " " * (_LABEL + 1), Text(f" {label:<{_LABEL}}", "bold"))


def _command(label: str, command: str, width: int) -> Iterator[Text]:
    """A command that still works when it is copied: broken between its words only, with the shell's own mark."""
    line, begun = Text(f" {label:<{_LABEL}}", "bold", overflow=_WHOLE), False
    for word in _WORD.findall(command):
        if begun and line.cell_len + 1 + cell_len(word) + len(_CONTINUED) > width:
            yield line.append(_CONTINUED)
            line, begun = Text(" " * (_LABEL + 3), overflow=_WHOLE), False
        line.append((" " if begun else "") + word, "not bold")
        begun = True
    yield line


def _wrapped(text: str, width: int, indent: str, first: Text | None = None) -> Iterator[Text]:
    """The text in lines of at most `width` cells; the first may begin with a styled lead."""
    line = first if first is not None else Text(indent)
    begun = False
    for word in text.split():
        if begun and line.cell_len + 1 + cell_len(word) > width:
            yield line
            line, begun = Text(indent), False
        line.append((" " if begun else "") + word)
        begun = True
    yield line


def _breakdown(block: Breakdown, width: int) -> Iterator[Text]:
    """The parts with bars; where it is narrow the bars go first, then the percents; labels are cut, numbers never."""
    rows = breakdown_rows(block)
    label = max(len(row.label) for row in rows)
    time = max(len(row.time) for row in rows)
    share = max(len(block.of), *(len(row.percent) for row in rows))
    bars = width - 2 - label - time - share - 3 * len(_GAP) if width >= _NARROW else 0
    if not bars and label + time + share + 2 * len(_GAP) >= width:
        share = 0
    label = min(label, width - 1 - time - len(_GAP))
    of, title = (f"{_GAP}{block.of:>{share}}" if share else ""), label + (bars + len(_GAP) if bars else 0)
    yield Text(f" {shorten(block.title, title):<{title}}{_GAP}{'time':>{time}}{of}", "bold")
    for row in rows:
        shown = bar(row.share, bars) if row.label != "Total" else ""
        yield Text.assemble(
            f" {shorten(row.label, label):<{label}}",
            (f"{_GAP}{shown:<{bars}}" if bars else "", Style(color=IDLE if row.idle else BUSY)),
            f"{_GAP}{row.time:>{time}}",
            f"{_GAP}{row.percent:>{share}}" if share else "",
        )


def _table(table: Table, width: int) -> Iterator[Text]:
    """The first rows of a table, its title in place of the first caption."""
    rows = table.rows[: table.brief]
    keep = [
        i for i, column in enumerate(table.columns) if width >= _NARROW or column.kind not in (Kind.BAR, Kind.SHARE)
    ]
    while True:
        columns = [table.columns[i] for i in keep]
        texts = [cells(table.columns[i], [row[i] for row in rows]) for i in keep]
        heads = ["" if column.kind is Kind.BAR else column.head for column in columns]
        heads[0] = table.heading(len(rows))
        widths = _widths(columns, texts, heads, width - 1)
        if sum(widths) + len(_GAP) * (len(widths) - 1) < width or len(keep) <= 2:
            break
        keep.pop()  # a column less rather than a number cut
    yield Text(" " + _head_row(columns, heads, widths), "bold")
    for row in zip(*texts, strict=True):
        yield _styled_row(columns, row, widths)


def _widths(columns: Sequence[Column], texts: Sequence[Sequence[str]], heads: Sequence[str], room: int) -> list[int]:
    """Column widths that fill the room: numbers as wide as they are, names share what is left."""
    wanted = [
        _BAR if column.kind is Kind.BAR else max(cell_len(text) for text in (head, *cell))
        for column, cell, head in zip(columns, texts, heads, strict=True)
    ]
    if len(columns) > 1 and columns[1].kind is Kind.BAR:
        wanted[0] = max(cell_len(text) for text in ("", *texts[0]))
    over = sum(wanted) + len(_GAP) * (len(wanted) - 1) - room
    elastic = [i for i, column in enumerate(columns) if column.kind in _LEFT]
    while over > 0 and elastic:
        widest = max(elastic, key=lambda i: wanted[i])
        if wanted[widest] <= _NAME_AT_LEAST:
            break
        wanted[widest] -= 1
        over -= 1
    return wanted


def _head_row(columns: Sequence[Column], heads: Sequence[str], widths: Sequence[int]) -> str:
    """The captions; a title runs on over the bars beside it."""
    if len(columns) > 1 and columns[1].kind is Kind.BAR:
        columns, heads = (columns[0], *columns[2:]), (heads[0], *heads[2:])
        widths = (widths[0] + len(_GAP) + widths[1], *widths[2:])
    return _row(columns, [shorten(head, width) for head, width in zip(heads, widths, strict=True)], widths)


def _row(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(_fit(column, text, width) for column, text, width in zip(columns, row, widths, strict=True))


def _fit(column: Column, text: str, width: int) -> str:
    if column.kind in _LEFT:
        text = shorten(text, width)
        return text + " " * (width - cell_len(text))
    return " " * (width - cell_len(text)) + text


def _styled_row(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> Text:
    line = Text(" ")
    for i, (column, text, width) in enumerate(zip(columns, row, widths, strict=True)):
        line.append(_GAP if i else "")
        if column.kind is Kind.BAR:
            line.append(f"{bar(float(text), width):<{width}}", Style(color=BUSY))
        else:
            line.append(_fit(column, text, width))
    return line
