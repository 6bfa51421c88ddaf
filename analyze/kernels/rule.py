"""The form of a classification rule."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal

from msgspec import Struct

from analyze.kernels.names import KernelName

Scope = Literal["name", "words", "text", "all_words"]
SCOPES: tuple[Scope, ...] = ("name", "words", "text", "all_words")


class NameRule(Struct, frozen=True, dict=True):
    """What a kernel whose name matches a pattern computes.

    Attributes:
        category: one of `analyze.kernels.categories.NAMES`.
        family: the library or the kind of kernel within the category.
        pattern: regular expression, searched in the form of the name that `scope` says.
        examples: names that this rule, and no earlier one, catches; the tests check it.
        scope: a field of `KernelName`: `name` (function name), `words` (the same as words), `text` and `all_words`
            (the two with template arguments).
        precision: precision where the family fixes it; otherwise the name's own markers decide.
        tensor_core: likewise for the use of matrix units; `unknown` says that no marker can be trusted.
        fused: the kernel does the work of several operators.
    """

    category: str
    family: str
    pattern: str
    examples: tuple[str, ...]
    scope: Scope = "name"
    precision: str | None = None
    tensor_core: Literal["yes", "no", "unknown"] | None = None
    fused: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern)

    def matches(self, kernel: KernelName) -> bool:
        """Whether the rule recognises this kernel."""
        subject: str = getattr(kernel, self.scope)
        return self.regex.search(subject) is not None
