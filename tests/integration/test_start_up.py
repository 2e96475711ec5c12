"""What starts at once: nothing that needs torch, which takes seconds."""

import subprocess
import sys

import pytest

import graphwright as gw


def modules_after(code: str) -> set[str]:
    """All modules that a fresh interpreter has imported at the end of some code."""
    asked = f"{code}\nimport sys\nprint('modules', *sys.modules)"
    printed = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    return set(printed.splitlines()[-1].split())


HELP = "import graphwright.cli.main as cli\ntry:\n    cli.main([{}])\nexcept SystemExit:\n    pass"


@pytest.mark.parametrize(
    "code", ["import graphwright", HELP.format("'--help'"), HELP.format("'--version'"), HELP.format("'nonsense'")]
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    heavy = {"torch", "numpy", "scipy", "pyarrow", "rdkit", "matplotlib", "lightning", "pydantic"}
    assert not heavy & modules_after(code)


def test_the_packages_are_there_when_they_are_asked_for():
    assert "torch" in modules_after("import graphwright as gw\ngw.graphs.Graph")
    assert set(gw.__all__) <= set(dir(gw))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = gw.nonsense
