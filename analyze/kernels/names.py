"""Kernel names as profilers write them, taken apart into the strings that rules match."""

from __future__ import annotations

import re
from dataclasses import dataclass

# CK and CUTLASS names run to 10,000 characters of nested templates; what a kernel is stands at their front.
MAX_MATCHED_CHARACTERS = 3_000

_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|_GLOBAL__N__[0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(\.kd|\s*\[clone [^\]]*\]|\[SIMD\d+.*\])+\s*$")
_NSYS_CAST = re.compile(r"\((?:int|bool|long|unsigned int|unsigned long|unsigned char)\)(?=-?\d)")
_LITERAL_SUFFIX = re.compile(r"(?<=\d)(?:u|ul|l|ull)(?=[,>\s])")
_COMPOUNDS = (("MoE", "Moe"), ("RoPE", "Rope"), ("SoftMax", "Softmax"), ("TopK", "Topk"), ("TopP", "Topp"))
_CAMEL_LOWER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CAMEL_UPPER = re.compile(r"(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_MANGLED_LENGTH = re.compile(r"\d+")
_OPENING = {"<": ">", "{": "}", "[": "]"}


@dataclass(frozen=True)
class KernelName:
    """One kernel name in the forms that rules match.

    Attributes:
        raw: the name as recorded.
        text: lower case, with template arguments, without return type and parameter list.
        name: lower case, the qualified function name alone.
        words: `name` cut into lower-case words joined by underscores (`RMSNormKernel` gives `rms_norm_kernel`).
        all_words: the same of `text`.
    """

    raw: str
    text: str
    name: str
    words: str
    all_words: str


def parse(raw: str) -> KernelName:
    """Take a kernel name apart; any string is accepted."""
    cleaned = _clean(raw[: 4 * MAX_MATCHED_CHARACTERS])
    if cleaned.startswith(("_ZN", "_ZTS", "_Z")):
        text, name = _unmangle(cleaned)
    else:
        text = _drop_return_type(_drop_parameters(cleaned))
        name = _drop_template_arguments(text)
    text, name = text[:MAX_MATCHED_CHARACTERS], name[:MAX_MATCHED_CHARACTERS]
    return KernelName(raw, text.lower(), name.lower(), to_words(name), to_words(text))


def to_words(identifier: str) -> str:
    """Cut camel case and punctuation into lower-case words joined by single underscores."""
    for compound, plain in _COMPOUNDS:
        identifier = identifier.replace(compound, plain)
    identifier = _CAMEL_UPPER.sub("_", _CAMEL_LOWER.sub("_", identifier))
    return _NOT_WORD.sub("_", identifier).strip("_").lower()


def _clean(raw: str) -> str:
    name = _SUFFIX.sub("", raw.strip())
    name = _ANONYMOUS.sub("anonymous", name)
    name = _NSYS_CAST.sub("", name)
    return _LITERAL_SUFFIX.sub("", name)


def _drop_parameters(name: str) -> str:
    """Cut at the parenthesis that opens the parameter list of the kernel itself.

    Parentheses inside template arguments and those of an enclosing function (`f(int)::{lambda()#1}`) are not it.
    """
    depth, position = 0, 0
    while position < len(name):
        character = name[position]
        if character in _OPENING:
            depth += 1
        elif character in ">}]" and name[position - 1 : position] != "-":
            depth = max(0, depth - 1)
        elif character == "(" and depth == 0 and position > 0:
            end = _closing_parenthesis(name, position)
            if not name[end + 1 :].startswith(("::", " const::", "(", "() ")):
                return name[:position].rstrip()
            position = end
        position += 1
    return name


def _closing_parenthesis(name: str, start: int) -> int:
    depth = 0
    for position in range(start, len(name)):
        if name[position] == "(":
            depth += 1
        elif name[position] == ")":
            depth -= 1
            if depth == 0:
                return position
    return len(name)


def _drop_return_type(name: str) -> str:
    """Keep what follows the last space outside all brackets: C++ writes the return type there."""
    depth, start = 0, 0
    for position, character in enumerate(name):
        if character in "<{[(":
            depth += 1
        elif character in ">}])" and name[position - 1 : position] != "-":
            depth = max(0, depth - 1)
        elif character == " " and depth == 0:
            start = position + 1
    is_code = "::" in name or "<" in name or name.startswith(("void ", "auto "))
    return name[start:] if is_code else name


def _drop_template_arguments(name: str) -> str:
    depth = 0
    kept: list[str] = []
    for position, character in enumerate(name):
        if character == "<":
            depth += 1
        elif character == ">" and name[position - 1 : position] != "-":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def _unmangle(name: str) -> tuple[str, str]:
    """Give the identifiers of an Itanium-mangled name: all that is needed where the demangler gave up.

    Returns:
        The text (`a::b<c d e>`, builtin type letters kept between the identifiers) and the function name (`a::b`).
    """
    identifiers: list[str] = []
    text: list[str] = []
    in_template = False
    position = 0
    while position < len(name):
        match = _MANGLED_LENGTH.match(name, position)
        length = int(match.group()[:6]) if match else 0
        if match and 0 < length <= len(name) - match.end() and _is_identifier(name[match.end()]):
            identifier = name[match.end() : match.end() + length]
            text.append(f" {identifier} " if in_template else f"::{identifier}")
            if not in_template:
                identifiers.append(identifier)
            position = match.end() + length
            continue
        if name[position] == "I" and identifiers and not in_template:
            in_template = True
            text.append("<")
        elif identifiers:
            text.append(name[position])
        if name[position] == "E" and identifiers and not in_template:
            break
        position += 1
    joined = "::".join(identifiers)
    return ("".join(text).removeprefix("::"), joined) if joined else (name, name)


def _is_identifier(character: str) -> bool:
    return character.isalpha() or character == "_"
