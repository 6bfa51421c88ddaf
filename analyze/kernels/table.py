"""A rule table that finds the first matching rule without trying each."""

from __future__ import annotations

from collections.abc import Sequence

from analyze.kernels.literals import MIN_LENGTH, required_literals
from analyze.kernels.names import KernelName
from analyze.kernels.rule import SCOPES, NameRule


class RuleTable:
    """An ordered rule table; the first rule that matches a name decides.

    A rule is tried only on names that hold a literal which its pattern cannot do without. Literals are looked for by
    the pairs of characters they begin with, of which a name holds few.
    """

    def __init__(self, rules: Sequence[NameRule]) -> None:
        self.rules = tuple(rules)
        self._always = 0
        self._literals: dict[str, dict[str, dict[str, int]]] = {scope: {} for scope in SCOPES}
        for position, rule in enumerate(self.rules):
            literals = required_literals(rule.pattern)
            if not literals:
                self._always |= 1 << position
            for literal in literals:
                alike = self._literals[rule.scope].setdefault(literal[:MIN_LENGTH], {})
                alike[literal] = alike.get(literal, 0) | 1 << position

    def match(self, kernel: KernelName) -> NameRule | None:
        """Give the first rule that recognises the kernel."""
        candidates = self._candidates(kernel)
        while candidates:
            lowest = candidates & -candidates
            rule = self.rules[lowest.bit_length() - 1]
            if rule.matches(kernel):
                return rule
            candidates ^= lowest
        return None

    def _candidates(self, kernel: KernelName) -> int:
        candidates = self._always
        for scope, by_start in self._literals.items():
            subject: str = getattr(kernel, scope)
            pairs = {subject[at : at + MIN_LENGTH] for at in range(len(subject) - 1)}
            for start in by_start.keys() & pairs:
                for literal, positions in by_start[start].items():
                    if literal in subject:
                        candidates |= positions
        return candidates
