"""A record says whether the code was changed since its commit, and on what it ran."""

import shutil
import subprocess

from graphwright.inference import export


def test_a_change_anywhere_under_src_marks_the_commit(tmp_path, monkeypatch):
    module = tmp_path / "src" / "graphwright" / "inference" / "export.py"
    module.parent.mkdir(parents=True)
    shutil.copy(export.__file__, module)
    other = tmp_path / "src" / "graphwright" / "other.py"
    other.write_text("ONE = 1\n")

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=tmp_path, check=True)

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "first")
    monkeypatch.setattr(export, "__file__", str(module))
    clean = export.commit()
    assert clean is not None
    assert not clean.endswith("+")
    other.write_text("ONE = 2\n")
    assert export.commit() == clean + "+"


def test_a_processor_is_told_from_others_of_its_name():
    first = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\n"
    second = "processor\t: 1\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n"
    assert export.processor_name(first + second) == "AMD EPYC, family 25, model 17"
    assert export.processor_name("processor\t: 0\nmodel name\t: Neoverse\n") == "Neoverse"
    assert export.processor_name("processor\t: 0\n") == ""
