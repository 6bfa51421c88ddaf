"""All rules as a page of Markdown: docs/findings.md, which is generated."""

from __future__ import annotations

from analyze.findings import RULES, Rule
from analyze.units import percent

_COMMANDS = ("capture", "analyze", "torchrun", "sudo")
_HEAD = """\
# Findings

Each rule asks one question. It reports a finding if the change would save at least its limit, and says so if it could
not ask. `analyze rules` lists the rules with the limits in force, `analyze explain RULE` prints one of them, and
`--limit RULE=SHARE` changes a limit. [Savings](definitions.md#saving) are replayed.

This page is made from the rules themselves; `python -m tests.golden` writes it again.
"""


def findings_page() -> str:
    """All rules as Markdown."""
    return "\n".join((_HEAD, *(_markdown(rule) for rule in RULES)))


def _markdown(rule: Rule) -> str:
    limit = f"{percent(rule.limit)} of the {rule.of}" if rule.limit is not None else rule.of
    code = (f"```{_language(text)}\n{text}\n```" for text in (rule.code_before, rule.code_after))
    before, after = code
    return "\n".join(
        (
            f"## {rule.id}\n\n**{rule.question}** {rule.what} {rule.why}\n",
            f"Before:\n\n{before}\n\nAfter:\n\n{after}\n",
            f"- **Change**: {rule.fix}\n- **Does not apply when**: {_lower(rule.exceptions)}",
            f"- **Measured**: {rule.measured}\n- **Limit**: {limit}\n- [More]({rule.link})\n",
        )
    )


def _language(code: str) -> str:
    return "sh" if code.startswith(_COMMANDS) else "python"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
