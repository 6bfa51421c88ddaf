"""Literals that any match of a rule's pattern must contain, so that most rules need not be tried on a name."""

from __future__ import annotations

import re

MIN_LENGTH = 2

_TOKEN = re.compile(
    r"(?P<open>\((?:\?(?P<look>:|=|!|<=|<!))?)|(?P<close>\))|(?P<alternative>\|)|"
    r"(?P<run>[a-z0-9_:<>,\-= ]+(?![?*+{]))|(?P<literal>[a-z0-9_:<>,\-= ])|(?P<other>\\.|\[\^?[^\]]*\]|.)",
    re.DOTALL,
)
_QUANTIFIER = re.compile(r"[?*]|\+|\{(\d+)(?:,\d*)?\}")


def required_literals(pattern: str) -> frozenset[str]:
    """Give literals of which every match of the pattern contains at least one; none when nothing is sure."""
    literals, _ = _alternatives(pattern, 0)
    return literals


def _alternatives(pattern: str, position: int) -> tuple[frozenset[str], int]:
    """Read up to the closing parenthesis; each alternative must require something for the whole to do so."""
    branches: list[frozenset[str]] = []
    while True:
        branch, position = _sequence(pattern, position)
        branches.append(branch)
        if position >= len(pattern) or pattern[position] == ")":
            return (frozenset().union(*branches) if all(branches) else frozenset()), position
        position += 1


def _sequence(pattern: str, position: int) -> tuple[frozenset[str], int]:
    best: frozenset[str] = frozenset()
    run = ""
    while position < len(pattern) and pattern[position] not in "|)":
        token = _TOKEN.match(pattern, position)
        assert token is not None
        position = token.end()
        kind, text = token.lastgroup, token.group()
        if kind == "run":
            run += text
            continue
        inner: frozenset[str] = frozenset()
        if kind == "open":
            inner, position = _alternatives(pattern, position)
            position += 1
        is_optional, is_repeated, position = _quantifier(pattern, position)
        if kind == "literal" and not is_optional:
            run += text
            if not is_repeated:
                continue
        elif kind == "open" and not is_optional and token["look"] not in {"!", "<!"}:
            best = _stronger(best, inner)
        best = _stronger(best, _of_run(run))
        run = ""
    return _stronger(best, _of_run(run)), position


def _quantifier(pattern: str, position: int) -> tuple[bool, bool, int]:
    quantifier = _QUANTIFIER.match(pattern, position)
    if quantifier is None:
        return False, False, position
    return quantifier.group() in {"?", "*"} or quantifier[1] == "0", True, quantifier.end()


def _of_run(run: str) -> frozenset[str]:
    return frozenset({run}) if len(run) >= MIN_LENGTH else frozenset()


def _stronger(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Keep the requirement whose shortest literal is longest; the word kernel is in most names and says nothing."""
    if not one or not other:
        return one or other
    return max(one, other, key=lambda literals: min(len(text.replace("kernel", "")) for text in literals))
