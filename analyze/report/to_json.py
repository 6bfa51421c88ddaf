"""The report as JSON for scripts: sorted keys, SI base units in the names, the same bytes for the same trace."""

from __future__ import annotations

import orjson

from analyze.inert import json_text, whole_characters
from analyze.report.report import Document
from analyze.report.walk import map_texts


def render(document: Document) -> str:
    """The document as indented JSON with a final newline."""
    found, options = document.as_json(), orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    try:
        data = orjson.dumps(found, option=options)
    except TypeError:  # half a surrogate pair, from a file or from a file's name
        data = orjson.dumps(map_texts(found, whole_characters), option=options)
    return json_text(data.decode()) + "\n"
