"""The house keeps its shape: sizes, fences, complete tuples, one-way imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from analyze.findings.states import STATES, window_states
from analyze.metrics.idle import PART_LABELS
from analyze.timeline import IDLE_PARTS

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "analyze").rglob("*.py"), *(ROOT / "capture").rglob("*.py")])


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or 0) - function.body[0].lineno + 1


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    for function in functions(path):
        assert body_lines(function) <= 50, f"{path.name}: {function.name}"


def test_typical_sizes() -> None:
    assert median(body_lines(f) for path in MODULES for f in functions(path)) <= 12
    assert median(len(path.read_text().splitlines()) for path in MODULES) <= 150


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("click", {"analyze/cli/", "capture/cli/"}),
        ("rich", {"analyze/cli/", "analyze/report/to_terminal.py", "capture"}),
        ("jinja2", {"analyze/report/html/render.py", "analyze/report/svg/pictures.py", "analyze/report/templates.py"}),
        ("torch", {"capture"}),
        ("timm", {"capture"}),
        ("pandas", set()),
        ("pickle", {"analyze/snapshot", "capture"}),
    ],
)
def test_fences(library: str, allowed: set[str]) -> None:
    users = {str(path.relative_to(ROOT)) for path in MODULES if library in imports(path)}
    outside = {user for user in users if not any(user.startswith(place) for place in allowed)}
    assert not outside


def test_only_the_command_line_prints_and_exits() -> None:
    for path in MODULES:
        if path.name in ("cli.py", "__main__.py") or path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("print", "sys.exit", "exit"), f"{path}: {name}"


def test_import_contracts() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_idle_part_has_a_label_and_every_state_a_sentence() -> None:
    assert set(PART_LABELS) == set(IDLE_PARTS)
    assert all(state.cause and state.label for state in STATES)
    assert len({state.id for state in STATES}) == len(STATES)
    assert window_states.__doc__


def test_frames_of_lists_state_their_types() -> None:
    """A list may be empty, and then Polars takes a type that nothing else has: the frame must say what it holds."""
    lists = (ast.List, ast.ListComp, ast.GeneratorExp)
    stated = {"schema", "schema_overrides", "dtype"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("pl.DataFrame", "pl.Series"):
                continue
            of_list = any(isinstance(part, lists) for arg in node.args for part in ast.walk(arg))
            of_series = (
                ast.unparse(node.func) == "pl.DataFrame" and isinstance(node.args[0], ast.List | ast.ListComp)
                if node.args
                else False
            )
            if of_list and not of_series:
                assert stated & {keyword.arg for keyword in node.keywords}, f"{path}: {ast.unparse(node)}"


@pytest.mark.parametrize("package", ["analyze", "capture"])
def test_no_class_name_is_defined_twice(package: str) -> None:
    names = [
        node.name
        for path in MODULES
        if path.relative_to(ROOT).parts[0] == package
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
