"""Twenty secrets of different shapes, each with a mark that no name of this program has, and where to plant them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

MARK = "qzx"  # is in every secret, in the part that must not be shown
SECRETS = (
    "qzxhunter2",
    "/home/qzx-ann/pro ject, (new) 'a'/x",
    r"C:\Users\qzx bob\My Files\x",
    r"\\qzx-server\share [1]\x",
    "file:///srv/qzx/data, all/x",
    "qzxnode:/scratch/x",
    "qzx_src/private part/deep/x",
    "~qzx/notes/x",
    "../qzx/(old)/x",
    "ann@qzx.example.com",
    "qzx.internal.example:8443",
    "https://user:qzx@host/path?token=qzx",
    "AKIAqzx0EXAMPLE0KEY",
    "eyJhbGciOi.qzxJ9.SflKxw-RJSM",
    "-----BEGIN qzx KEY-----\nMIIE",
    "qzx-4b1c-11ee-be56-0242ac120002",
    "password=qzx;retry=3",
    "Ann Qzx qzx, born 1815",
    "秘密qzx№7",
    "[1, 2, qzx]",
)
assert len(SECRETS) == 20 == len(set(SECRETS))

Path = tuple[Any, ...]


def leaves(document: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in a document and where it stands."""
    if isinstance(document, str):
        yield path, document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, (*path, key))
    elif isinstance(document, list | tuple):
        for i, value in enumerate(document):
            yield from leaves(value, (*path, i))


def planted(document: Any, secret: str, where: Callable[[Path], bool]) -> Any:
    """A copy of a document with a secret in place of every text that `where` chooses."""
    copied = copy.deepcopy(document)
    for path, _ in list(leaves(copied)):
        if where(path):
            place = copied
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = secret
    return copied
