"""Names of a package that are imported when they are first used: a command waits only for the libraries it needs."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing `typing` takes longer than the rest of a start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Args:
        package: its name.
        places: the module that each name is defined in.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(places[name]), name)

    return find
