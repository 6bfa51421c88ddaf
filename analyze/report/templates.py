"""Templates of a package: every value is escaped, and one that is missing is an error."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment(package: str, **known: Any) -> Environment:
    """The templates of a package; they take a while to compile.

    Args:
        package: whose folder `templates` holds them.
        known: what every template can use.
    """
    made = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.globals.update(known)
    return made
