"""Things chosen by name: built in, or of another package."""

import sys

import pytest

from graphwright.registry import Registry, UnknownNameError
from plugins import python_with, write_plugin


def shapes() -> Registry[type]:
    registry = Registry[type]("shape")

    @registry.register("square")
    class Square:
        pass

    @registry.register("circle")
    class Circle:
        pass

    return registry


def test_a_thing_is_known_by_its_name():
    registry = shapes()
    assert registry.names() == ("square", "circle")
    assert registry["circle"].__name__ == "Circle"
    assert "square" in registry
    assert "cube" not in registry
    assert list(registry) == ["square", "circle"]


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="there is no shape 'triangle', only square, circle"):
        shapes()["triangle"]


def test_a_name_nearly_right_gets_a_hint():
    with pytest.raises(UnknownNameError, match=r"did you mean circle\?"):
        shapes()["circel"]


def test_a_name_stands_for_one_thing():
    registry = shapes()

    class Other:
        pass

    with pytest.raises(ValueError, match=r"the shape 'square' is .*Square; .*Other needs another name"):
        registry.register("square")(Other)


def test_built_in_modules_are_imported_when_a_name_is_first_looked_up(tmp_path, monkeypatch):
    (tmp_path / "built_in_for_test.py").write_text(
        "import holder_for_test\nholder_for_test.registry.register('cube')(int)\n"
        "assert holder_for_test.registry.names() == ('cube',)\n"  # a look-up while it is being imported
    )
    (tmp_path / "holder_for_test.py").write_text(
        "from graphwright.registry import Registry\nregistry = Registry('solid', ('built_in_for_test',))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import holder_for_test

    assert "built_in_for_test" not in sys.modules
    assert holder_for_test.registry["cube"] is int
    for name in ("built_in_for_test", "holder_for_test"):
        del sys.modules[name]


HOLDER = (
    "from graphwright.registry import Registry\nregistry = Registry('shape')\nregistry.register('square')(int)\n"
)
LOOK = "import holder\nprint(holder.registry.names(), holder.registry['mine'].__name__)"


def test_other_packages_register_by_being_installed(tmp_path):
    (tmp_path / "holder.py").write_text(HOLDER)
    plugins = write_plugin(
        tmp_path,
        "mine",
        "print('imported')\nimport holder\n@holder.registry.register('mine')\nclass Mine: pass\n",
    )
    result = python_with(plugins, "-c", f"{LOOK}; holder.registry.names()")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "imported\n('square', 'mine') Mine\n"


def test_a_broken_plugin_is_named_at_every_look_up(tmp_path):
    (tmp_path / "holder.py").write_text(HOLDER)
    plugins = write_plugin(
        tmp_path, "broken", "import holder\n@holder.registry.register('x')\nclass X: pass\nimport no_such_thing\n"
    )
    tries = """
import holder
for _ in range(2):
    try:
        holder.registry.names()
    except ImportError as error:
        print(error)
"""
    result = python_with(plugins, "-c", tries)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert set(lines) == {
        "the plugin 'broken' of the package broken cannot be loaded: import of broken failed with "
        "ModuleNotFoundError: No module named 'no_such_thing'; mend or uninstall it"
    }
