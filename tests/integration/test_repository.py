"""What a newcomer tries first: README code, README commands, the demo, the docs."""

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from figures import gallery
from graphwright.cli.main import parser
from graphwright.cli.train import split
from graphwright.inference.model import load_model, shipped_names
from graphwright.settings import load_run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/api/models.md"])
def test_python_of_the_first_pages_runs(page, monkeypatch):
    monkeypatch.chdir(ROOT)  # where a newcomer stands
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_the_first_screen_prints_what_it_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    block = re.findall(r"```python\n(.*?)```", README, re.S)[0]
    exec(compile(block, "README.md", "exec"), {})
    expected = re.findall(r"^print.*?\)  # (.*)$", block, re.M)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(expected) == 2
    for line, words in zip(printed, expected, strict=True):
        assert line.startswith(words.removesuffix("..."))


def test_figures_of_the_first_screen_are_those_of_the_models():
    told = re.findall(r"^\| `([\w-]+)` \|.*\| ([0-9.]+) %", README, re.M)
    assert len(told) >= 5
    for name, share in told:
        assert share == f"{load_model(name).facts['test']['isomorphic']:.1f}", name


def test_the_gallery_shows_every_shipped_model():
    page = (ROOT / "docs/gallery.md").read_text()
    assert set(re.findall(r"images/gallery-([\w-]+)\.png", page)) == set(shipped_names())


def test_the_gallery_draws_itself_from_the_shipped_models(tmp_path):
    gallery.main(["spectrum-and-picture", "coloring-any2graph", "--out", str(tmp_path)])
    drawn = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(drawn) == {"spectrum-and-picture.png", "gallery-coloring-any2graph.png"}
    assert min(drawn.values()) > 10_000


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_commands_of_the_first_pages_parse(page):
    """Every `graphwright ...` line is one that the command line accepts, and every preset in it exists."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)
    blocks = [text for language, text in fences if not language]
    lines = re.findall(r"^graphwright (.*?)(?:\s+#.*)?$", "\n".join(blocks), re.M)
    assert len(lines) >= 4
    for line in lines:
        words, overrides = split(shlex.split(line))
        arguments = parser().parse_args(words)
        if arguments.command == "train":
            load_run(arguments.source, overrides)
        if arguments.command in ("evaluate", "predict") and not arguments.model.startswith("runs/"):
            assert arguments.model in shipped_names()


def test_readme_commands_exist():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.M)
    commands = re.findall(r"^make (\w[\w-]*)", README, re.M)
    assert {"demo", "test"} <= set(commands) <= set(targets)


def test_matching_example_draws_its_picture(tmp_path):
    result = subprocess.run(
        [sys.executable, ROOT / "examples/match_two_graphs.py", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "16 starts" in result.stdout
    assert (tmp_path / "match.png").stat().st_size > 10_000


def test_docs_build_without_warnings(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        check=True,
    )
    pages = {page.relative_to(tmp_path / "site").as_posix(): page.read_text() for page in tmp_path.rglob("*.html")}
    for package in ("graphs", "losses", "transport"):
        for name in import_module(f"graphwright.{package}").__all__:
            # A function that shares its module's name is found under both.
            anchor = rf'id="graphwright\.{package}\.({name}\.)?{name}"'
            assert re.search(anchor, pages[f"api/{package}.html"]), f"{name} has no entry"
    fetched = [tag for page in pages.values() for tag in re.findall(r"<(?:script|link|img)[^>]*//[^>]*>", page)]
    assert fetched == [], "pages load nothing from elsewhere"


def test_docs_name_only_functions_that_exist():
    import graphwright as gw

    for package, name in re.findall(r"`(graphs|transport|losses)\.(\w+)", (ROOT / "docs/method.md").read_text()):
        assert hasattr(getattr(gw, package), name), f"{package}.{name}"


def test_core_dependencies_are_the_promised_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=!]", requirement)[0] for requirement in project["dependencies"]}
    assert names == {"torch", "numpy", "scipy", "pydantic", "rich", "pyarrow", "safetensors", "filelock"}
    assert {"chem", "image", "serve", "ray", "dev"} <= set(project["optional-dependencies"])


def test_graphs_plans_losses_and_metrics_work_without_pydantic():
    """Settings are read with it; what is below them has checks of its own."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pydantic', 'pydantic_core']))\n"
        "import graphwright as gw\n"
        "from graphwright import decoding, graphs, losses, metrics, spectra, transport\n"
        "assert losses.LossSettings(presence=2).weight('presence') == 2\n"
        "try:\n"
        "    losses.LossSettings(presence=-1)\n"
        "except ValueError as error:\n"
        "    assert str(error) == 'presence must be a non-negative weight, got -1', error\n"
        "pair = [graphs.Graph.build(2, [(0, 1)])]\n"
        "assert metrics.evaluate_graphs(pair, pair).isomorphic.all()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_core_imports_without_any_extra():
    """The whole library but its command line's peers, with every optional package made unimportable."""
    blocked = ["matplotlib", "ot", "rdkit", "PIL", "ray", "fastapi", "transformers", "lightning"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "import graphwright, graphwright.cli.main\n"
        "from graphwright.graphs import Graph, GraphBatch\n"
        "assert GraphBatch.collate([Graph.build(2, [(0, 1)])]).capacity == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_on_the_method_names_what_is_there():
    page = (ROOT / "docs/method.md").read_text()
    packages = ["decoding", "graphs", "known", "losses", "matching", "models", "tasks", "training", "transport"]
    settings = {"matching.linear_costs", "matching.plan", "matching.probe_every", "matching.random_signs"}
    settings |= {"matching.temperature", "matching.kind"}
    named = set(re.findall(rf"`((?:{'|'.join(packages)})(?:\.\w+)+)[`(]", page)) - settings
    assert len(named) > 25
    for name in sorted(named):
        owner, _, last = f"graphwright.{name}".rpartition(".")
        try:
            there = hasattr(import_module(owner), last)
        except ModuleNotFoundError:
            there = False
        if not there:
            import_module(f"graphwright.{name}")
    for file in re.findall(r"`((?:\w+/)*\w+\.py)`", page):
        assert (ROOT / file).exists() or (ROOT / "src/graphwright" / file).exists(), file
