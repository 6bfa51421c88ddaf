"""Kernel names as profilers write them, taken apart into the strings that rules match."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from analyze.kernels.demangle import demangle

# CK and CUTLASS names run to 10,000 characters of nested templates; what a kernel is stands at their front.
MAX_MATCHED_CHARACTERS = 1_500

_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|_GLOBAL__N__[0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(\.kd|\s*\[clone [^\]]*\]|\[SIMD\d+.*\])+\s*$")
_COMPOUNDS = (
    ("MoE", "Moe"),
    ("RoPE", "Rope"),
    ("SoftMax", "Softmax"),
    ("MIOpen", "Miopen"),
    ("A2A", "A2a"),
    ("TopK", "Topk"),
    ("TopP", "Topp"),
)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]*[a-z0-9]+|[A-Z]+")
_MANGLED_LENGTH = re.compile(r"[0-9]{1,4}")
_MANGLED_LITERAL = re.compile(r"L[a-z]n?[0-9]+E|E[0-9]+E|[ST][0-9A-Z]*_|DF[0-9]+[_b]")
_LAUNCHER = re.compile(r"(^|::)(device_kernel|kernel2?|kentry|_kernel_agent|trampoline_kernel|static_kernel)$", re.I)
# A launcher's first template argument is the kernel; what follows in it are the kernel's own parameters.
_LAUNCHED_CHARACTERS = 240
_BRACKET = re.compile(r"[<>(){}\[\]]")
_ANGLE = re.compile(r"<|(?<!-)>")
_CONTINUED = ("::", " const::", "(", "() ")


class KernelName(Struct, frozen=True):
    """One kernel name in the forms that rules match.

    Attributes:
        raw: the name as recorded.
        text: lower case, with template arguments, without return type and parameter list.
        name: lower case, the qualified function name alone.
        words: `name` cut into lower-case words joined by underscores (`RMSNormKernel` gives `rms_norm_kernel`); where
            it only launches its first template argument (`cutlass::device_kernel<...>`), that is part of it.
        all_words: the same of `text`.
    """

    raw: str
    text: str
    name: str
    words: str
    all_words: str


def parse(raw: str) -> KernelName:
    """Take a kernel name apart; any string is accepted."""
    cleaned = clean((demangle(raw) or raw)[: 4 * MAX_MATCHED_CHARACTERS])
    if cleaned.startswith("_Z"):
        text, name = _unmangle(cleaned)
    else:
        text = signature(cleaned)
        name = _drop_template_arguments(text)
    text, name = text[:MAX_MATCHED_CHARACTERS], name[:MAX_MATCHED_CHARACTERS]
    named = text[: len(name) + _LAUNCHED_CHARACTERS] if _LAUNCHER.search(name) else name
    return KernelName(raw, text.lower(), name.lower(), to_words(named), to_words(text))


def signature(cleaned: str) -> str:
    """A C++ name with its template arguments, without its return type and parameter list."""
    return _drop_return_type(_drop_parameters(cleaned))


def brackets(name: str) -> Iterator[tuple[int, int, str]]:
    """Give each bracket with its position and the number of brackets open around it."""
    depth = 0
    for match in _BRACKET.finditer(name):
        character = match.group()
        if character in "([{<":
            yield match.start(), depth, character
            depth += 1
        elif name[match.start() - 1 : match.start()] != "-":
            depth = max(0, depth - 1)
            yield match.start(), depth, character


def to_words(identifier: str) -> str:
    """Cut camel case and punctuation into lower-case words joined by single underscores."""
    for compound, plain in _COMPOUNDS:
        identifier = identifier.replace(compound, plain)
    return "_".join(_WORD.findall(identifier)).lower()


def clean(raw: str) -> str:
    """A name without suffixes of compilers, and with anonymous namespaces as one word."""
    return _ANONYMOUS.sub("anonymous", _SUFFIX.sub("", raw.strip()))


def _drop_parameters(name: str) -> str:
    """Cut at the parenthesis that opens the parameter list of the kernel itself.

    Parentheses inside template arguments and those of an enclosing function (`f(int)::{lambda()#1}`) are not it.
    """
    opened = 0
    for position, depth, character in brackets(name):
        if character == "(" and depth == 0:
            opened = position
        elif character == ")" and depth == 0 and opened and not name.startswith(_CONTINUED, position + 1):
            return name[:opened].rstrip()
    return name[: _cut_parameters(name)].rstrip()


def _cut_parameters(name: str) -> int:
    """Where a parameter list begins that a cut name does not close."""
    start, level = len(name), 0
    for position, depth, character in brackets(name):
        if character in "([{<" and depth == 0:
            start, level = (position if character == "(" and position else len(name)), 1
        elif character in ")]}>" and depth == 0:
            start, level = len(name), 0
    return start if level else len(name)


def _drop_return_type(name: str) -> str:
    """Keep what follows the last space outside all brackets: C++ writes the return type there."""
    if "::" not in name and "<" not in name and not name.startswith(("void ", "auto ")):
        return name
    start, end = 0, 0
    for position, depth, character in brackets(name):
        if depth == 0 and character in "([{<":
            start = max(start, name.rfind(" ", end, position) + 1)
            end = len(name)
        elif depth == 0:
            end = position
    return name[max(start, name.rfind(" ", end) + 1) :]


def _drop_template_arguments(name: str) -> str:
    if "<" not in name:
        return name
    kept: list[str] = []
    start, angles = 0, 0
    for match in _ANGLE.finditer(name):
        if match.group() == "<":
            if angles == 0:
                kept.append(name[start : match.start()])
            angles += 1
        else:
            angles = max(0, angles - 1)
            start = match.end()
    return "".join([*kept, name[start:]] if angles == 0 else kept)


def _unmangle(name: str) -> tuple[str, str]:
    """Give the identifiers of an Itanium-mangled name: what is left to read where the name is cut.

    Returns:
        The text (`a::b<c d e>`, without the codes between the identifiers) and the function name (`a::b`).
    """
    outer: list[str] = []
    arguments: list[str] = []
    in_template = False
    position = 0
    while position < len(name):
        literal = _MANGLED_LITERAL.match(name, position)
        length = _MANGLED_LENGTH.match(name, position)
        if literal and outer:
            position = literal.end()
        elif length and int(length.group()) and _starts_identifier(name[length.end() : length.end() + 1]):
            position = length.end() + int(length.group())
            (arguments if in_template else outer).append(name[length.end() : position])
        elif outer and not in_template and name[position] == "E":
            break
        else:
            in_template = in_template or (bool(outer) and name[position] == "I")
            position += 1
    joined = "::".join(outer) or name
    return (f"{joined}<{' '.join(arguments)}>" if arguments else joined), joined


def _starts_identifier(character: str) -> bool:
    return character.isalpha() or character == "_"
