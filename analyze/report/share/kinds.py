"""What was taken out, in words: how much of each kind, and what of it looks like a secret. None of it is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from analyze.units import plural

_PLURALS = {
    "category": "categories",
    "process": "processes",
    "e-mail address": "e-mail addresses",
    "IP address": "IP addresses",
    "MAC address": "MAC addresses",
    "password or token": "passwords or tokens",
    "URL with a password": "URLs with passwords",
    "text in place of a number": "texts in place of numbers",
}
_LOOKS = (
    ("private key", r"-----BEGIN [A-Z ]*KEY"),
    ("URL with a password", r"[a-z][a-z0-9+.-]{1,20}://[^/\s:@\"]{1,80}:[^/\s@\"]{1,200}@"),
    ("access key", r"\b(?:A[KS]IA[0-9A-Za-z]{12,20}|AIza[\w-]{20,50}|gh[pousr]_\w{16,80}|github_pat_\w{16,100}"
                   r"|glpat-[\w-]{16,40}|hf_\w{16,60}|sk-[\w-]{16,200}|xox[abprs]-[\w-]{10,100}"
                   r"|eyJ[\w-]{5,2000}\.[\w-]{3,2000}\.[\w-]{3,2000})"),
    ("password or token", r"(?:passw(?:or)?d|secret|token|api_?key|credentials?)[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}"
                          r"[^\s,;&]{1,200}"),
    ("e-mail address", r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"),
    ("MAC address", r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"),
    ("IP address", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
                   r"|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}:?[0-9a-f]{1,4}(?![\w:])"),
    ("home folder", r"(?:/(?:home|Users)/|[a-z]:[\\/]{1,4}Users[\\/]{1,4})[^\s/\\\":]{1,64}"),
)  # fmt: skip
_SECRET = re.compile("|".join(f"(?P<k{i}>{pattern})" for i, (_, pattern) in enumerate(_LOOKS)), re.IGNORECASE)
_MOST_READ = 1 << 14  # characters of one text


class Taken:
    """Counts what is taken out.

    Attributes:
        dropped: what is left out, by its kind.
        changed: what is shortened or replaced, by its kind.
    """

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self._secrets: dict[bytes, str] = {}

    def drop(self, kind: str, text: str) -> None:
        """Count what was left out.

        Args:
            kind: what it is, in the singular.
            text: what is left out, to see whether it looks like a secret.
        """
        self.dropped[kind] += 1
        self.look(text)

    def change(self, kind: str, text: str) -> None:
        """Count what was shortened or replaced; arguments as of `drop`."""
        self.changed[kind] += 1
        self.look(text)

    def look(self, text: str) -> None:
        """Count what looks like a secret, each one once; of each a hash is kept."""
        for found in _SECRET.finditer(text[:_MOST_READ]):
            assert found.lastgroup is not None
            self._secrets[blake2b(found[0].encode("utf-8", "replace"), digest_size=8).digest()] = found.lastgroup

    def secrets(self) -> Counter[str]:
        """How many different texts look like a secret, by its kind."""
        return Counter(_LOOKS[int(group[1:])][0] for group in self._secrets.values())


def counted(counts: Mapping[str, int]) -> str:
    """Counts in a sentence: 3 folders, 1 host and 2 users."""
    return _joined([plural(count, kind, _PLURALS.get(kind)) for kind, count in sorted(counts.items()) if count])


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def sentences(taken: Taken, pseudonyms: Mapping[str, int]) -> Iterator[str]:
    """What was taken out, a line each; no word of it."""
    if +taken.dropped:
        yield f"Left out: {counted(taken.dropped)}."
    if +taken.changed:
        yield f"Shortened or replaced: {counted(taken.changed)}."
    if found := taken.secrets():
        yield f"Of what went, this looks like secrets or personal data: {counted(found)}."
    if pseudonyms:
        yield f"Pseudonyms, one for each different text: {counted(pseudonyms)}."
