"""C++ names of kernels that the profiler left mangled, made readable."""

from __future__ import annotations

import re
from functools import lru_cache

try:
    import demangle as itanium
except ImportError:  # it needs Python 3.11
    itanium = None  # type: ignore[assignment, unused-ignore]

# The profiler gives up on names of 1,024 characters and more; Composable Kernel writes up to 10,000.
_MAX_CHARACTERS = 16_384
_MANGLED = "_Z"
_SUFFIX = re.compile(r"(\.kd|\s*\[clone [^\]]*\])+\s*$")
_TYPE_INFO = ("typeinfo name for ", "typeinfo for ")  # SYCL names a kernel by the type of its functor
_NESTED = re.compile(r"_Z(?:TS|TI)?N")
_LENGTH = re.compile(r"[1-9]\d{0,3}")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=20_000)
def demangle(name: str) -> str | None:
    """The C++ name behind a mangled one, None where it is not mangled, is cut or does not parse.

    The library bounds depth, substitutions and output: a mangled name of 300 characters can stand for gigabytes.
    """
    if itanium is None or not name.startswith(_MANGLED) or len(name) > _MAX_CHARACTERS:
        return None
    symbol = _SUFFIX.sub("", name.strip())
    try:
        found = itanium.demangle(symbol, language="itanium")
    except Exception:  # noqa: BLE001 - names are untrusted, and one that breaks the library must not cost the report
        return None
    if found == symbol:
        return None
    for prefix in _TYPE_INFO:
        found = found.removeprefix(prefix)
    return found


def readable(name: str) -> str:
    """A kernel name as it is shown: demangled; of one that is cut, the name in front of its template arguments."""
    if not name.startswith(_MANGLED):
        return name
    return demangle(name) or _front(name) or name


def _front(name: str) -> str | None:
    """A mangled name whose template arguments are cut, with the nested name before them in C++ and the rest as it is.

    The rest stays because kernels of one template differ in nothing else.
    """
    nested = _NESTED.match(name)
    end = nested.end() if nested else 0
    while length := _LENGTH.match(name, end):
        start, end = length.end(), length.end() + int(length.group())
        if end > len(name) or not _IDENTIFIER.fullmatch(name, start, end):
            return None
    if nested is None or end == nested.end() or name[end : end + 1] != "I":
        return None
    front = demangle(f"_ZN{name[nested.end() : end]}E")
    return front and f"{front}<{name[end + 1 :]}"
