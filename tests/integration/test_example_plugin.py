"""The example of another package: its own tests pass, and the command line knows what it adds."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from plugins import graphwright_with, python_with

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What installing the example puts onto the path, by its own pyproject.toml."""
    folder = tmp_path_factory.mktemp("site-packages")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    for module in project["tool"]["setuptools"]["py-modules"]:
        shutil.copy(EXAMPLE / f"{module}.py", folder)
    name, version = project["project"]["name"], project["project"]["version"]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    added = project["project"]["entry-points"]["graphwright"]
    points = "\n".join(f"{key} = {value}" for key, value in added.items())
    (info / "entry_points.txt").write_text(f"[graphwright]\n{points}\n")
    return folder


def test_its_own_tests_pass(installed):
    pytest_here = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    result = python_with(installed, *pytest_here, str(EXAMPLE))
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"\d+ passed", result.stdout)


def test_the_commands_of_its_readme(installed, tmp_path):
    def done(*words: str) -> str:
        result = graphwright_with(installed, *words)
        assert result.returncode == 0, result.stderr
        return result.stdout

    words = re.findall(r"^    graphwright (\w+) ", (EXAMPLE / "README.md").read_text(), re.M)
    assert words == ["train", "evaluate"]
    few = {"steps": 3, "batch_size": 4, "validation_samples": 4, "validate_every": 3, "workers": 0, "threads": 1}
    budget = [f"--train.{key}={value}" for key, value in few.items()]
    run = str(tmp_path / "run")
    done("train", "brackets", f"--out={run}", "--task.capacity=5", "--train.devices=1", *budget)
    assert 'encoder: "recurrent"' in Path(run, "config.yaml").read_text()
    done("evaluate", run, "--samples=5")
    some, answers = tmp_path / "some.txt", tmp_path / "answers.json"
    some.write_text("([]{()})\n")
    done("predict", run, str(some), f"--json={answers}")
    assert json.loads(answers.read_text())[0]["input"] == {"text": "([]{()})"}
