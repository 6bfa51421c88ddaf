"""The report as GitHub-flavoured Markdown: readable in a pull request, in an e-mail and with `less`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from typing_extensions import assert_never

from analyze.blocks import Advice, Block, Breakdown, Kind, Page, Series, Stat, Table
from analyze.inert import code_span, fenced, html, printable
from analyze.inert import markdown as escape
from analyze.report.text import (
    bar,
    breakdown_rows,
    cells,
    savings_column,
    series_figures,
    shorten,
    sparkline,
)
from analyze.units import percent, plural

BUDGET_CHARACTERS = 60_000  # a pull request comment holds 65,536
_BAR_CELLS = 20
_NAME_CELLS = 100
_SPARK_CELLS = 60
_RIGHT = (Kind.TIME, Kind.COUNT, Kind.SHARE, Kind.MEMORY, Kind.FIGURE)


def render(page: Page, *, budget: int = BUDGET_CHARACTERS) -> str:
    """The page as Markdown.

    Args:
        page: what to draw.
        budget: most characters; whole sections are dropped from the end to keep it, and named.
    """
    top = "\n".join(_top(page))
    bottom = "\n".join(_bottom(page))
    titles = [escape(section.title) for section in page.sections]
    texts = ["\n".join((f"### {escape(s.title)}\n", *_section(s.blocks))) for s in page.sections]
    room = budget - len(top) - len(bottom) - 1
    if sum(len(text) + 1 for text in texts) <= room:
        return "\n".join((top, *texts, bottom))
    room -= len(_left_out(titles, budget)) + 1
    ends = list(accumulate(len(text) + 1 for text in texts))
    kept = sum(end <= room for end in ends)
    return "\n".join((top, *texts[:kept], _left_out(titles[kept:], budget), bottom))


def _left_out(titles: Sequence[str], budget: int) -> str:
    return f"Left out to keep within {budget:,} characters: {', '.join(titles)}.\n"


def code(name: str) -> str:
    """A name as a code span, cut in the middle where it is long."""
    return code_span(shorten(printable(name), _NAME_CELLS))


def _top(page: Page) -> Iterator[str]:
    yield f"## {escape(page.subject)} report: {code(page.name)}\n"
    first, *more = page.sentences
    yield f"> [!IMPORTANT]\n> **{escape(page.headline)}.** {escape(first)}"
    for sentence in more:
        yield f"> {escape(sentence)}"
    yield f"\n{escape(page.about)}\n"
    if page.whole is not None:
        yield from _block(page.whole)


def _section(blocks: tuple[Block, ...]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Stat():
            yield f"**{escape(block.label)}**: {escape(block.text)}\n"
        case Breakdown():
            yield from _breakdown(block)
        case Table():
            yield from _table(block)
        case Series():
            drawn = sparkline(block, _SPARK_CELLS)
            yield f"**{escape(block.name)}** {f'`{drawn}` ' if drawn.strip() else ''}{escape(series_figures(block))}\n"
        case Advice():
            yield from _advice(block)
        case _:
            assert_never(block)


def _advice(advice: Advice) -> Iterator[str]:
    """The findings as a table, each one with its reasons and evidence, and the checks that found nothing."""
    if advice.suggestions:
        yield f"| # | finding | saving | {escape(advice.of)} | change |\n|--:|:--|--:|--:|:--|"
        for i, (item, saving) in enumerate(zip(advice.suggestions, savings_column(advice.suggestions), strict=True)):
            share = "–" if item.saved_share is None else percent(item.saved_share)
            title = f"**{escape(item.severity.capitalize())}** [{item.id}](#finding-{item.id}): {escape(item.title)}"
            title += f" ({escape(item.shared)})" if item.shared else ""
            yield f"| {i + 1} | {title} | {saving} | {share} | {escape(item.change)} |"
        yield ""
        if advice.note:
            yield f"{escape(advice.note)}\n"
    for item in advice.suggestions:
        yield f'<a id="finding-{item.id}"></a>\n\n#### {item.id}\n\n{escape(item.title)}.\n'
        yield from (f"**{escape(heading)}**: {escape(text)}\n" for heading, text in item.paragraphs)
        if item.link:
            yield f"**More**: <{item.link}>\n"
        yield f"**Change**: {escape(item.change)}\n"
        for table in item.evidence:
            yield from _table(table)
    yield from _checks("passed", advice.passed)
    yield from _checks("not measured", advice.unmeasured)


def _checks(what: str, checks: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if checks:
        yield f"<details><summary>{plural(len(checks), 'check')} {what}</summary>\n"
        yield from (f"- *{escape(name)}*: {escape(reason)}" for name, reason in checks)
        yield "\n</details>\n"


def _breakdown(block: Breakdown) -> Iterator[str]:
    yield f"| {escape(block.title)} | time | {escape(block.of)} | |\n|:--|--:|--:|:--|"
    *parts, total = breakdown_rows(block)
    for row in parts:
        yield f"| {escape(row.label)} | {row.time} | {row.percent} | {_bar(row.share)} |"
    yield f"| **{total.label}** | **{total.time}** | **{total.percent}** | |\n"


def _bar(share: float) -> str:
    return f"`{bar(share, _BAR_CELLS):<{_BAR_CELLS}}`"


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    if not table.brief:
        yield f"<details><summary>{html(table.heading(len(table.rows)))}</summary>\n"
    else:
        yield f"{escape(table.heading(len(table.rows)))}:\n"
    heads = [escape(column.head) for column in table.columns]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "|".join("--:" if column.kind in _RIGHT else ":--" for column in table.columns) + "|"
    columns = []
    for i, column in enumerate(table.columns):
        texts = cells(column, [row[i] for row in table.rows])
        match column.kind:
            case Kind.CODE:
                texts = [code(text) if text != "–" else text for text in texts]
            case Kind.BAR:
                texts = [_bar(float(text)) for text in texts]
            case Kind.TEXT | Kind.FIGURE:
                texts = [escape(text) for text in texts]
            case Kind.TIME | Kind.COUNT | Kind.SHARE | Kind.MEMORY:
                pass
            case _:
                assert_never(column.kind)
        columns.append(texts)
    for cells_of_row in zip(*columns, strict=True):
        yield "| " + " | ".join(cells_of_row) + " |"
    yield ""
    if table.note:
        yield f"{escape(table.note)}\n"
    if not table.brief:
        yield "</details>\n"


def _bottom(page: Page) -> Iterator[str]:
    if page.notices:
        yield f"### {escape(page.subject)} quality\n\n> [!NOTE]"
        for notice in page.notices:
            yield f"> {escape(notice.text)}  "
        yield ""
    if page.not_measured:
        yield "<details><summary>Not measured</summary>\n"
        for missing in page.not_measured:
            yield f"- *{escape(missing.id)}*: {escape(missing.reason)}; to get it, {escape(missing.how_to_get_it)}."
        yield "\n</details>\n"
    if page.next_steps:
        yield f"### How to go on\n\n{fenced([printable(command) for command in page.next_steps])}\n"
    if page.gates:
        yield "### Gates\n"
        yield from (f"- {escape(gate)}" for gate in page.gates)
        yield ""
    yield f"<sub>{escape(page.footer)}</sub>\n"
