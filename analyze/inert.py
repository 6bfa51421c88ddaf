"""Text from strangers that stays text: one function per format, and every name in a report or a message passes it.

Terminals act on control codes and on marks that turn text around; Markdown makes links, mentions and HTML of what looks
like them; JSON is read on terminals too. A name keeps its length: one character for one character.
"""

from __future__ import annotations

import re
import unicodedata

_ODD = "\ufffd"
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0]")  # letters without a shape
_LINE_ENDS = ("Zl", "Zp")
_BEYOND_ASCII = re.compile("[^\x00-\x7e]")
_SPECIAL = re.compile(r"([\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_OPENS_BLOCK = re.compile(r"^(?:([-+=])|(\d{1,9})([.)])(?=\s|$))")
# What GitHub, GitLab and mail programs make links, mentions or formulas of, anywhere in a text.
_LIVE = re.compile(
    r"@|://|(?<![A-Za-z0-9])www\.|(?<![A-Za-z0-9])(?:mailto|xmpp|javascript|data|vbscript|file):(?=\S)"
    r"|(?<![A-Za-z0-9_])[#!]\d|/[\w.-]*[#!]\d|(?<![A-Za-z0-9])GH-\d|\$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(\s+)")
_ENTITIES = str.maketrans({c: f"&#{ord(c)};" for c in "&<>\"'`*_[]|~#\\$@:!"})


def printable(text: str) -> str:
    """A text for a terminal, a message or XML: nothing in it moves the cursor, ends the line, hides or reorders text.

    Control codes and line ends become blanks; what has no shape, and halves of surrogate pairs, a question mark.
    """
    if text.isascii() and text.isprintable():
        return text
    return _BLANK.sub(_ODD, "".join(map(_shown, text)))


def _shown(character: str) -> str:
    if character < " ":
        return " "
    category = unicodedata.category(character)
    if category in _LINE_ENDS:
        return " "
    return _ODD if category[0] == "C" else character


def lines(text: str) -> str:
    """A message of several lines, each of them printable."""
    return "\n".join(map(printable, text.split("\n")))


def markdown(text: str) -> str:
    """A sentence for Markdown, also in a table: a word that would become a link or a mention goes into a code span."""
    safe = "".join(
        _code(word) if _LIVE.search(word) else _SPECIAL.sub(r"\\\1", _references(word))
        for word in _WORDS.split(printable(text).strip())
    )
    return _OPENS_BLOCK.sub(r"\\\1" if safe[:1] in "-+=" else r"\2\\\3", safe)


def _references(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code_span(name: str) -> str:
    """A name as a code span of Markdown that shows it as it is, also in a table; a dash where nothing would show."""
    inner = printable(name).strip()
    return _code(inner) if inner else "–"


def _code(inner: str) -> str:
    """Backticks where they do, else HTML: a backtick would end the span, and a bar the table's cell."""
    return f"<code>{inner.translate(_ENTITIES)}</code>" if "`" in inner or "|" in inner else f"`{inner}`"


def html(text: str) -> str:
    """A text for an HTML element within Markdown, where Markdown itself is not read."""
    return "".join(
        f"<code>{word.translate(_ENTITIES)}</code>" if _LIVE.search(word) else _references(word)
        for word in _WORDS.split(printable(text).strip())
    )


def fenced(block: list[str]) -> str:
    """Lines of code exactly as they are, in a fence that none of them can close."""
    longest = max((len(run) for line in block for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence, *block, fence))


def json_text(text: str) -> str:
    """A JSON document whose texts escape what a terminal would act on; what it says stays the same."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escaped, text)


def ascii_json(text: str) -> str:
    """A JSON document in ASCII that says the same."""
    return _BEYOND_ASCII.sub(lambda found: _units(found[0]), text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    odd = printable(character) != character
    return _units(character) if odd else character


def _units(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i]:02x}{data[i + 1]:02x}" for i in range(0, len(data), 2))


def whole_characters(text: str) -> str:
    """The text with halves of surrogate pairs replaced: no encoding holds them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
