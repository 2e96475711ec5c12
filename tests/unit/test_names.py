"""Two things never share a name, so that a name found by search is the thing that was meant."""

import ast
from collections import defaultdict
from pathlib import Path

import graphwright

PACKAGE = Path(graphwright.__file__).parent
ROOT = Path(__file__).parents[2]
BESIDE = ("benchmarks", "figures", "fuzzing", "supply_chain")
"""What stands beside the package in a checkout."""
ALLOWED = {
    "declare": "every command's module has its own, and cli/main calls them alike",
    "run": "every command's module has its own, and cli/main calls them alike",
    "main": "where a process begins: the command line, and the server's worker",
    "load": "graphwright.load is for users; a checkpoint's is called by its module, checkpoints.load",
}


def definitions() -> dict[str, list[str]]:
    """Where every public class and function at the top of a module is defined; a re-export is no definition."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_two_modules_define_the_same_name():
    shared = {name: modules for name, modules in definitions().items() if len(set(modules)) > 1}
    assert {name: modules for name, modules in shared.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(shared), "an allowed name that is no longer shared"


VAGUE = {"place", "places", "beyond", "sitting", "strange", "found"}
"""Words that had several meanings: index, padding, session, unknown and row say which is meant."""
WEIGHTS = {("place", "models/target_encoder.py"), ("places", "models/encoders/image.py")}
"""Names of weights, which saved models have."""


def modules() -> dict[str, Path]:
    """Every module of the package and beside it, by the name that a person would give it."""
    own = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return own | {
        path.relative_to(ROOT).as_posix(): path
        for folder in BESIDE
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def test_no_name_is_a_vague_word():
    met = set()
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
            met |= {(name, module) for name in names if isinstance(name, str) and name in VAGUE}
    assert met == WEIGHTS


def test_no_docstring_begins_in_the_middle_of_a_sentence():
    begun = [
        f"{module}:{node.lineno}"
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and node.value.value.startswith(("Of ", "None."))
    ]
    assert begun == []
