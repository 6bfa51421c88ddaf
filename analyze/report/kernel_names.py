"""Short kernel names in the tables of a report. The JSON report holds the full ones beside them, under `kernels`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from analyze.blocks import Advice, Block, Cell, Kind, Section, Table
from analyze.kernels.short_names import short_names


def with_short_names(sections: Iterable[Section], names: Iterable[str]) -> tuple[Section, ...]:
    """The sections with kernels under their short names.

    Args:
        sections: of one report.
        names: of all its activities: no two of them get the same short name.
    """
    short = short_names(names)
    return tuple(
        replace(section, blocks=tuple(_block(block, short) for block in section.blocks)) for section in sections
    )


def _block(block: Block, short: Mapping[str, str]) -> Block:
    if isinstance(block, Table):
        return _table(block, short)
    if isinstance(block, Advice):
        suggestions = (
            replace(one, evidence=tuple(_table(table, short) for table in one.evidence)) for one in block.suggestions
        )
        return replace(block, suggestions=tuple(suggestions))
    return block


def _table(table: Table, short: Mapping[str, str]) -> Table:
    code = {at for at, column in enumerate(table.columns) if column.kind is Kind.CODE}
    if not code:
        return table

    def shown(at: int, cell: Cell) -> Cell:
        return short.get(cell, cell) if at in code and isinstance(cell, str) else cell

    return replace(table, rows=tuple(tuple(shown(at, cell) for at, cell in enumerate(row)) for row in table.rows))
