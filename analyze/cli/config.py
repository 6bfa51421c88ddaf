"""Settings of a project: `[tool.gpuledger]` in the nearest pyproject.toml, from the working folder upwards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from analyze.errors import ConfigError, closest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE, TABLE = "pyproject.toml", "tool.gpuledger"
LIMIT_BYTES = 1 << 20
_NAMES = {"fail-if": "gates", "top": "top", "limits": "limits"}  # key in the file: parameter of the commands


def read_config(folder: Path | None = None) -> dict[str, Any]:
    """The settings by name of the parameter that they set; empty without a file or a table.

    Args:
        folder: where to look first; the working folder where None.

    Raises:
        ConfigError: the file cannot be read, a key is unknown or its value has the wrong type.
    """
    try:
        here = (folder or Path.cwd()).absolute()
    except OSError:  # the working folder was deleted
        return {}
    path = next((place / FILE for place in (here, *here.parents) if (place / FILE).is_file()), None)
    if path is None:
        return {}
    table = _table(path)
    for key, value in table.items():
        _check(path, key, value)
    limits = table.get("limits")
    if limits is not None:
        table = {**table, "limits": [f"{rule}={share}" for rule, share in limits.items()]}
    return {_NAMES[key]: value for key, value in table.items()}


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(LIMIT_BYTES).decode()
        tool = tomllib.loads(text).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Fix it, or pass --no-config.") from error
    table = tool.get("gpuledger", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [{TABLE}] is no table.", f"Keys: {', '.join(_NAMES)}.")
    return table


def _check(path: Path, key: str, value: object) -> None:
    where = f"{path}: {key!r} in [{TABLE}]"
    if key not in _NAMES:
        close = closest(key, _NAMES, n=1)
        raise ConfigError(
            f"{where} is unknown.", f"Did you mean {close[0]!r}?" if close else f"Keys: {', '.join(_NAMES)}."
        )
    if key == "fail-if" and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(f"{where} is no list of texts.", "Write fail-if = ['idle_share > 10%'].")
    if key == "limits" and not (isinstance(value, dict) and all(map(_is_number, value.values()))):
        raise ConfigError(f"{where} is no table of shares.", "Write sync-stall = 0.02 under [tool.gpuledger.limits].")
    if key == "top" and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{where} is no whole number.", "Write top = 20.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
