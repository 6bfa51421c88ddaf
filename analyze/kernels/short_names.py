"""Kernel names as people say them: `vectorized_elementwise<MulFunctor<float>>`. No two kernels get the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from analyze.kernels.names import brackets, clean, signature

_LONGEST = 4_000  # characters of a name that are looked at
_DEEPEST = 6  # template arguments in template arguments
_TRANSFERS = ("Memcpy", "Memset")
_READABLE = 100  # characters: a longer name is no longer read, so that it gets a number instead
_FULL = 2  # the level of detail that leaves out nothing but namespaces and parameters

_TYPES = {
    "BFloat16": "bf16", "__nv_bfloat16": "bf16", "bfloat16_t": "bf16", "nv_bfloat16": "bf16", "hip_bfloat16": "bf16",
    "Half": "fp16", "__half": "fp16", "half": "fp16", "half_t": "fp16", "_Float16": "fp16",
    "Float8_e4m3fn": "fp8", "__nv_fp8_e4m3": "fp8",
    "float": "float", "double": "double", "int": "int", "long": "long", "bool": "bool", "unsigned int": "unsigned",
    "unsigned char": "uint8", "signed char": "int8", "short": "short",
}  # fmt: skip
_WRAPPERS = re.compile(r"^(Unary|Binary|AUnary|BUnary)Functor$")
_FUNCTION = re.compile(r"Functor|(?:Op|Ops)$")
_LAUNCHERS = re.compile(r"^(Kernel2?|device_kernel|kernel2?|kentry)$")
_LAMBDA_OF = re.compile(r"\{lambda\((?:[\w ]+::)*([\w ]+)[^{]*$")
_NAMESPACE = re.compile(r"(?:[A-Za-z_]\w*|anonymous)::")
_ENDING = re.compile(r"(?<=\w)_?[kK]ernel$")
_CUTLASS = re.compile(
    r"^cutlass_(?:\d+_)?(?:wmma_)?(?:tensorop|simt)_(?:(?P<type>bf16|f16|tf32|s8|e4m3)_)?"
    r"(?P<op>[a-z0-9]*gemm\w*?)(?:_(?:bf16|f16|f32|s8))?_(?P<tile>\d+x\d+)(?:_\w+?)??"
    r"(?:_(?P<layout>[tn]{2}))?(?:_(?P<align>align\d+))?$"
)
_XMMA = re.compile(r"^(sm\d+_xmma_\w+?)_tilesize(\d+x\d+x\d+)(?:_(\w+?))?(?:_execute\w*)?$")
_TENSILE = re.compile(r"^(Cijk_\w+?_\w+?)_([A-Z]\w*?)_(?:\w+_)?MT(\d+x\d+x\d+)")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """A short name for each of some kernels, none of them twice.

    Args:
        names: as recorded; any text is accepted. Repeats count once.

    Names that come out alike get more of their template arguments, and in the end a number.
    """
    found: dict[str, str] = {}
    left = list(dict.fromkeys(names))
    for level in range(_FULL + 1):
        groups = defaultdict(list)
        for name in left:
            groups[short_name(name, level)].append(name)
        taken = set(found.values())
        found |= {
            same[0]: short
            for short, same in groups.items()
            if len(same) == 1 and short not in taken and (level == 0 or len(short) <= _READABLE)
        }
        left = [name for name in left if name not in found]
    taken = set(found.values())
    for name in left:
        short, number = short_name(name, 0), 1
        while f"{short} #{number}" in taken:
            number += 1
        found[name] = f"{short} #{number}"
        taken.add(found[name])
    return found


def short_name(name: str, level: int = 0) -> str:
    """A kernel's name without namespaces, parameters and, below the full level, most template arguments.

    Args:
        name: as recorded.
        level: 0 keeps what computes, or the first type; 1 all types and functions; 2 every template argument.
    """
    if name.startswith(_TRANSFERS):
        return name
    if "<" not in name and "(" not in name and "::" not in name:
        return _library(name, level)
    return _short(signature(clean(name[:_LONGEST])), level, 0) or name


def _library(name: str, level: int) -> str:
    """Names of libraries that put everything between underscores."""
    if level < _FULL and (found := _CUTLASS.match(name)):
        kind = "_".join(part for part in (found["type"], found["op"]) if part)
        extra = [found["layout"], found["align"]] if level or found["layout"] else []
        return " ".join(part for part in ("cutlass", kind, found["tile"], *extra) if part)
    if level < _FULL and (found := _XMMA.match(name)):
        return " ".join((found[1], found[2], *([found[3]] if level and found[3] else [])))
    if level < _FULL and (found := _TENSILE.match(name)):
        return f"{found[1]}_{found[2]} {found[3]}"
    return name


def _short(name: str, level: int, depth: int) -> str:
    """One qualified name with its template arguments."""
    if depth > _DEEPEST:
        return _unqualified(name[:_READABLE])
    if depth and "{lambda" in name:
        return _short_lambda(name, level, depth)
    base, arguments, rest = _taken_apart(name)
    base = _NAMESPACE.sub("", base).strip()
    if not arguments:
        return _TYPES.get(base) or (_unqualified(base) if depth else _library(_unqualified(base), level))
    return _with_arguments(name, base, arguments, rest, level=level, depth=depth)


def _with_arguments(name: str, base: str, arguments: list[str], rest: str, *, level: int, depth: int) -> str:
    """A template with those of its arguments that say what it does."""
    if _LAUNCHERS.match(base) and depth == 0:
        launched = _base(arguments[0])
        return _short(arguments[0], level, depth) if launched not in _TYPES and "(" not in launched else name
    plain = _ENDING.sub("", base) or base
    if level == 0 and _WRAPPERS.match(base):
        return _short(_computing(arguments) or arguments[-1], level, depth + 1)
    kept = _kept(arguments, level, depth)
    ending = _unqualified(rest.removeprefix("::")) if rest.startswith("::") and "{" not in rest else ""
    inside = f"<{', '.join(kept)}>" if kept else ""
    return f"{plain}{inside}{'::' + ending if ending else ''}"


def _short_lambda(name: str, level: int, depth: int) -> str:
    """A function around a lambda, with the type that the lambda is for: `sigmoid_kernel_cuda<float>`."""
    outer = name.replace("::operator()", "")
    opened = next((position for position, level_, character in brackets(outer) if not level_ and character == "("), 0)
    function = _short(outer[:opened] if opened else outer.partition("::{lambda")[0], level, depth + 1)
    found = _LAMBDA_OF.search(outer)
    kind = _TYPES.get(found[1].strip()) if found else None
    return f"{function}<{kind}>" if kind and "<" not in function else function


def _unqualified(name: str) -> str:
    return _ENDING.sub("", name.strip(" *&")) or name


def _kept(arguments: list[str], level: int, depth: int) -> list[str]:
    """The template arguments that are shown."""
    if level >= _FULL:
        return [_short(argument, level, depth + 1) for argument in arguments]
    functions = [argument for argument in arguments if _computes(argument)]
    types = [argument for argument in arguments if _base(argument) in _TYPES]
    if level == 0:
        chosen = functions[:1] or types[:1]
    else:
        chosen = [argument for argument in arguments if argument in functions or argument in types]
    return list(dict.fromkeys(_short(argument, level, depth + 1) for argument in chosen))


def _computing(arguments: list[str]) -> str | None:
    return next((argument for argument in arguments if _computes(argument)), None)


def _computes(argument: str) -> bool:
    return bool(_FUNCTION.search(_base(argument)) or "{lambda" in argument or _WRAPPERS.match(_base(argument)))


def _base(argument: str) -> str:
    return _NAMESPACE.sub("", argument.partition("<")[0]).strip()


def _taken_apart(name: str) -> tuple[str, list[str], str]:
    """What stands before the first template arguments, these, and what follows them."""
    start, cuts = -1, []
    for position, depth, character in brackets(name):
        if depth == 0 and character == "<" and start < 0:
            start = position
            cuts = [position]
        elif depth == 0 and character == ">" and start >= 0:
            return name[:start], _split(name[start + 1 : position]), name[position + 1 :]
    return (name[:start], _split(name[start + 1 :]), "") if cuts else (name, [], "")


def _split(text: str) -> list[str]:
    """Arguments between commas that stand outside all brackets."""
    parts, begin = [], 0
    opened = {position: depth for position, depth, _ in brackets(text)}
    level = 0
    for position, character in enumerate(text):
        if position in opened:
            level = opened[position] + (1 if character in "([{<" else 0)
        elif character == "," and level == 0:
            parts.append(text[begin:position].strip())
            begin = position + 1
    return [part for part in (*parts, text[begin:].strip()) if part]
