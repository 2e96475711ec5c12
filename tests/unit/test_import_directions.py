"""Who may import whom: a package knows only the packages below it."""

import ast
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import graphwright

SOURCE = Path(graphwright.__file__).parent

# From the ground up. A package may import earlier rows and itself, but not its neighbours in the same row.
LAYERS = (
    {"files", "parallel"},
    {"graphs", "registry", "transport"},
    {"losses", "decoding", "spectra"},
    {"metrics"},
    {"settings"},
    {"models"},
    {"matching", "known"},
    {"tasks"},
    {"inference"},
    {"testing"},
    {"training"},
    {"report"},
    {"baselines"},
    {"experiments"},
    {"server"},
    {"cli"},
)
HEIGHT = {package: height for height, row in enumerate(LAYERS) for package in row}
OPTIONAL = {"networkx", "matplotlib", "PIL", "rdkit", "ot", "ray", "fastapi", "uvicorn", "pyteomics"}


def imported(tree: ast.AST, module: tuple[str, ...]) -> Iterator[str]:
    """Full names of all that the source of a module in the package `module` imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level + 1] if node.level else ()
            path = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{path}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in ("import_module", "__import__"):
                yield str(node.args[0].value)


def forbidden(source: str, module: tuple[str, ...]) -> list[str]:
    """Imports of a module in package `module`, ("graphwright", "losses", ...), that point up or sideways."""
    own = module[1]
    wrong = []
    for name in imported(ast.parse(source), module):
        root, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if root != "graphwright" or target in (own, "__version__"):
            continue
        if HEIGHT.get(target, len(LAYERS)) >= HEIGHT[own]:
            wrong.append(name)
    return wrong


def eager(source: str) -> set[str]:
    """Top-level names of the libraries that a module imports as soon as it is imported itself."""
    lines = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {name.partition(".")[0] for line in lines for name in imported(line, ())}


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)
LIGHT = ("graphs", "transport", "losses", "spectra")
CORE = [path for path in FILES if path.relative_to(SOURCE).parts[0] in LIGHT]


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_there_are_sources_to_look_at():
    assert {"graphs/graph.py", "graphs/batch.py"} <= {name_of(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_package_has_a_place_in_the_order(path):
    assert path.relative_to(SOURCE).parts[0] in HEIGHT, "give the new package a row in LAYERS"


def test_every_row_of_the_order_is_there():
    there = {path.stem for path in SOURCE.glob("*.py")} | {path.relative_to(SOURCE).parts[0] for path in FILES}
    assert set(HEIGHT) == there - {"__init__"}


def test_the_picture_of_the_house_shows_the_same_order():
    picture = (SOURCE.parents[1] / "docs" / "design.md").read_text().split("```")[1]
    lines = [re.split(r" {2,}|, ", line.strip()) for line in picture.splitlines()]
    rows = [set(takewhile(HEIGHT.__contains__, line)) for line in lines]
    assert [row for row in rows if row] == list(reversed(LAYERS))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_package_imports_only_what_is_below_it(path):
    module = ("graphwright", *path.relative_to(SOURCE).parent.parts)
    assert forbidden(path.read_text(), module) == []


@pytest.mark.parametrize("path", [path for path in SOURCE.glob("*.py") if path.stem in HEIGHT], ids=name_of)
def test_a_file_of_its_own_imports_only_what_is_below_it(path):
    assert forbidden(path.read_text(), ("graphwright", path.stem)) == []


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_the_core_imports_optional_libraries_only_where_it_needs_them(path):
    assert not eager(path.read_text()) & OPTIONAL


@pytest.mark.parametrize("own", sorted(HEIGHT))
@pytest.mark.parametrize("ground", ["graphs", "transport"])
def test_the_ground_floor_may_import_nothing_but_itself_and_the_cellar(ground, own):
    expected = [] if own in (ground, "files", "parallel") else [f"graphwright.{own}.thing"]
    assert forbidden(f"from graphwright.{own} import thing", ("graphwright", ground)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import graphwright",
        "import graphwright as gw",
        "import numpy, graphwright.training",
        "from graphwright import training",
        "from graphwright import fit",
        "from graphwright.training import loop",
        "from graphwright.training.loop import train as losses",
        "from ..training import loop",
        "from .. import training",
        "from ...graphwright import training",
        "def f():\n    from graphwright.training import loop",
        "if TYPE_CHECKING:\n    from graphwright.training import loop",
        "try:\n    import graphwright.training\nexcept ImportError:\n    pass",
        "importlib.import_module('graphwright.training')",
        "__import__('graphwright.training')",
        "from graphwright.decoding import slots",
        "from graphwright.nowhere import thing",
    ],
)
def test_the_detector_sees_a_forbidden_import(source):
    assert forbidden(source, ("graphwright", "losses")) != []


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "from graphwright import __version__",
        "from graphwright import graphs, transport",
        "import graphwright.graphs.batch",
        "from graphwright.transport import sinkhorn",
        "from graphwright.losses.graph_loss import label_cost",
        "from . import costs",
        "from .costs import label_cost",
        "from ..graphs import Graph",
        "'import graphwright.training'",
        "import graphwrightish.training",
    ],
)
def test_the_detector_lets_other_imports_pass(source):
    assert forbidden(source, ("graphwright", "losses")) == []


def test_the_detector_resolves_relative_imports_in_nested_packages():
    module = ("graphwright", "tasks", "coloring")
    assert forbidden("from ..molecules import x\nfrom .config import y\nfrom ...graphs import z", module) == []
    assert forbidden("from ...training import x", module) == ["graphwright.training.x"]


def test_the_detector_tells_eager_imports_from_lazy_ones():
    assert eager("import networkx as nx") == {"networkx"}
    assert eager("from matplotlib.axes import Axes") == {"matplotlib"}
    assert eager("def f():\n    import networkx\nif TYPE_CHECKING:\n    import PIL") == set()
