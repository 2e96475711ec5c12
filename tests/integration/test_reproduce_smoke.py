"""Every table and figure of the paper at the smoke scale, end to end, through the command line."""

import csv
import re
from pathlib import Path

import pytest

from graphwright.cli import main as cli
from graphwright.experiments import read_grid, work

COUNTS = {
    "ablations": 17,
    "tokens": 4,
    "comparison": 15,
    "frontier": 14,
    "scaling": 26,
    "table1": 22,
    "table2": 15,
}


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """One folder for all: what tables share is done once."""
    return tmp_path_factory.mktemp("reproduced")


def reproduce(name: str, out: Path) -> int:
    return cli.main(["reproduce", name, "--scale", "smoke", "--jobs", "1", "--out", str(out)])


def links(page: Path) -> list[Path]:
    return [page.parent / link for link in re.findall(r"\]\(([^)]+)\)", page.read_text())]


@pytest.mark.parametrize("name", COUNTS)
def test_a_table_is_reproduced_and_not_done_twice(name, out, monkeypatch):
    assert reproduce(name, out) == cli.DONE
    folder = out / f"{name}-smoke"
    every = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    rows = [row for row in every if row["seeds"]]
    assert len(rows) == COUNTS[name]
    assert len(every) - len(rows) == sum(len(cells) for cells in read_grid(name).beside.values())
    for row in rows:
        assert float(row["edit"]) >= 0
        assert 0 <= float(row["isomorphic"]) <= 100
        assert row["missing"] == ""
        assert (folder / "records" / f"{row['records']}.json").exists()
    assert all(link.exists() for link in links(folder / "README.md"))
    assert len(links(folder / "README.md")) == COUNTS[name] + 1
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figure.svg").read_text().lstrip().startswith("<?xml")
    before = (folder / "README.md").read_text()
    monkeypatch.setattr(work, "perform", lambda *_: pytest.fail("everything was done before"))
    assert reproduce(name, out) == cli.DONE
    assert (folder / "README.md").read_text() == before


def test_examples_are_drawn_for_every_task(out):
    assert reproduce("examples", out) == cli.DONE
    page = out / "examples-smoke" / "README.md"
    assert {link.name for link in links(page) if link.suffix == ".png"} == {
        "coloring-10.png",
        "ms2scaffold.png",
        "fingerprint2mol.png",
    }
    assert all(link.exists() for link in links(page))
    assert "There is no model yet" not in page.read_text()


def test_propositions_hold_and_are_drawn(out):
    assert reproduce("propositions", out) == cli.DONE
    folder = out / "propositions-smoke"
    assert all(link.exists() for link in links(folder / "README.md"))
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert len(rows) > 15
    assert {row["holds"] for row in rows} == {"True"}
