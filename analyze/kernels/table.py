"""A rule table that finds the first matching rule without trying each."""

from __future__ import annotations

from collections.abc import Sequence

from analyze.kernels.literals import MIN_LENGTH, required_literals
from analyze.kernels.names import KernelName
from analyze.kernels.rule import SCOPES, Rule


class RuleTable:
    """An ordered rule table; the first rule that matches a name decides.

    A rule is tried only on names that hold a literal which its pattern cannot do without.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._always = 0
        self._literals: dict[str, dict[str, int]] = {scope: {} for scope in SCOPES}
        self._starts: dict[str, dict[str, int]] = {scope: {} for scope in SCOPES}
        for position, rule in enumerate(self.rules):
            literals = required_literals(rule.pattern)
            if not literals:
                self._always |= 1 << position
            for literal in literals:
                _add(self._literals[rule.scope], literal, position)
                _add(self._starts[rule.scope], literal[:MIN_LENGTH], position)

    def match(self, kernel: KernelName) -> Rule | None:
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
        for scope, literals in self._literals.items():
            subject: str = getattr(kernel, scope)
            # Either look for every literal in the name, or for every piece of the name among the literals.
            if len(subject) > len(literals):
                found = [positions for literal, positions in literals.items() if literal in subject]
            else:
                starts = self._starts[scope]
                pieces = {subject[start : start + MIN_LENGTH] for start in range(len(subject) - MIN_LENGTH + 1)}
                found = [starts[piece] for piece in pieces & starts.keys()]
            for positions in found:
                candidates |= positions
        return candidates


def _add(positions: dict[str, int], key: str, position: int) -> None:
    positions[key] = positions.get(key, 0) | 1 << position
