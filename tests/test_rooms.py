"""What each room of the source keeps to, beyond what imports show."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
#: Rooms that hold and evaluate rules: what is there is known by types.
TYPED: Final = ("model", "parsers", "semantics", "kubeproxy", "failure", "reports", "cluster")
#: What is asked of things that others make: modules and streams of Python, and of libraries.
OF_OTHERS: Final = frozenset(
    {"LZMAError", "CSafeLoader", "problem_mark", "problem", "reason", "MADV_HUGEPAGE"}
    | {"_processes"}
)
#: In `model.value`, which makes the classes of values.
OF_VALUES: Final = frozenset({"__post_init__", "__closure__", "__value_fields__"})
MOST_LINES: Final = 400


def modules(*folders: str) -> list[Path]:
    return sorted(path for each in folders for path in (ROOT / each).rglob("*.py"))


def calls(path: Path, *names: str) -> Iterator[ast.Call]:
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in names):  # to parse all of them takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def probed(path: Path) -> Iterator[str]:
    """Yield the attributes that something may or may not have."""
    for call in calls(path, "getattr", "hasattr"):
        name = call.args[1]
        is_probe = len(call.args) == 3 or (
            isinstance(call.func, ast.Name) and call.func.id == "hasattr"
        )
        if is_probe and isinstance(name, ast.Constant):
            yield str(name.value)


@pytest.mark.parametrize("room", TYPED)
def test_what_is_lazy_is_known_by_its_type(room: str) -> None:
    folder = f"analyzer/{room}"
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(folder)
        for name in probed(path)
        if name not in (OF_VALUES if path.name == "value.py" else OF_OTHERS)
    }
    assert not found


def test_no_class_is_known_by_the_module_that_has_it() -> None:
    paths = modules("analyzer", "netns-lab")
    found = [path.name for path in paths if ".__module__" in path.read_text(encoding="utf-8")]
    assert found == ["python_iptables.py"]  # which loads a shim of setuptools


def test_readers_know_no_chain_of_any_program() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in modules("analyzer/parsers")
        if "KUBE-" in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_a_long_file_says_why() -> None:
    long = [
        str(path.relative_to(ROOT))
        for path in modules("analyzer", "netns-lab", "tests", "release")
        if (text := path.read_text(encoding="utf-8")).count("\n") > MOST_LINES
        and "however long" not in (ast.get_docstring(ast.parse(text)) or "")
    ]
    assert long == []


def test_every_module_says_what_it_is_for_and_none_only_passes_on_what_another_has() -> None:
    silent, idle = [], []
    for path in modules("analyzer", "netns-lab", "release"):
        module = ast.parse(path.read_text(encoding="utf-8"))  # once for both: it takes seconds
        name = str(path.relative_to(ROOT))
        if not ast.get_docstring(module):
            silent.append(name)
        if path.name != "__init__.py" and all(
            isinstance(each, ast.Import | ast.ImportFrom | ast.Expr)
            or (isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__")
            for each in module.body
        ):
            idle.append(name)
    assert silent == []
    assert idle == []
