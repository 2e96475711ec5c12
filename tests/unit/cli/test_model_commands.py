"""evaluate, predict, data inspect and report, as a person types them."""

import json

import numpy as np
import pytest
from PIL import Image

from graphwright.cli import main as cli
from graphwright.graphs import from_json
from graphwright.tasks.coloring import VOCABULARY, ColoringConfig, generate

CONTRACT = {
    "task", "samples", "isomorphic", "isomorphic_interval", "edit", "edit_interval", "edit_proved_optimal",
    "aligned_exact", "aligned_edit", "size_accuracy", "node_accuracy", "edge_precision", "edge_recall", "seconds",
}  # fmt: skip


def save_picture(path, index=0, mode="RGB", size=None):
    sample = generate(ColoringConfig(4, min_size=2), 0, "test", index)
    picture = Image.fromarray((255 * sample.image.transpose(1, 2, 0)).round().astype(np.uint8))
    picture = picture.quantize(256) if mode == "P" else picture.convert(mode)
    (picture if size is None else picture.resize(size, Image.Resampling.NEAREST)).save(path)
    return path


def test_evaluate_prints_and_writes_the_contract(tiny_run, tmp_path, capsys):
    out = tmp_path / "deep" / "figures.json"
    arguments = ["evaluate", str(tiny_run), "--samples", "20", "--json", str(out), "--draw", str(tmp_path)]
    assert cli.main(arguments) == cli.DONE
    facts = json.loads(out.read_text())
    assert set(facts) >= CONTRACT
    assert facts["task"] == "coloring4"
    assert facts["samples"] == 20
    assert 0 <= facts["isomorphic"] <= 100
    assert "isomorphic" in capsys.readouterr().out
    assert (tmp_path / "examples.png").stat().st_size > 1000


def test_another_seed_draws_other_samples(tiny_run, tmp_path):
    figures = []
    for seed in ("1", "1", "2"):
        out = tmp_path / "figures.json"
        cli.main(["evaluate", str(tiny_run), "--samples", "30", "--seed", seed, "--json", str(out)])
        figures.append({k: v for k, v in json.loads(out.read_text()).items() if k != "seconds"})
    assert figures[0] == figures[1]
    assert figures[0] != figures[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "nothing"], "no model 'nothing'"),
        (["evaluate", "RUN", "--samples", "0"], "--samples must be at least 1"),
        (["evaluate", "RUN", "--samples", "99999"], "the test split has 40 samples"),
        (["report", "RUN", "--samples", "-1"], "--samples must be at least 1"),
        (["report", "/nowhere"], "no model '/nowhere'"),
        (["data", "inspect", "coloring10", "--samples", "0"], "--samples must be at least 1"),
    ],
)
def test_wrong_arguments_are_one_line_with_code_2(tiny_run, capsys, arguments, message):
    assert cli.main([str(tiny_run) if a == "RUN" else a for a in arguments]) == cli.USAGE
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_predict_writes_graphs_and_drawings(tiny_run, tmp_path):
    pictures = [save_picture(tmp_path / name, index) for index, name in enumerate(("one.png", "two.png"))]
    out, drawn = tmp_path / "graphs.json", tmp_path / "drawn"
    arguments = ["predict", str(tiny_run), *map(str, pictures), "--json", str(out), "--draw", str(drawn)]
    assert cli.main(arguments) == cli.DONE
    rows = json.loads(out.read_text())
    assert [row["file"] for row in rows] == [str(path) for path in pictures]
    for row in rows:
        assert 0 <= row["confidence"] <= 1
        from_json(row["graph"], VOCABULARY)
    assert {path.name for path in drawn.iterdir()} == {"one.svg", "one.png", "two.svg", "two.png"}


@pytest.mark.parametrize(("mode", "size"), [("RGBA", None), ("P", None), ("RGB", (32, 32)), ("RGB", (64, 64))])
def test_pictures_are_converted_where_that_keeps_their_meaning(tiny_run, tmp_path, mode, size):
    plain, other = save_picture(tmp_path / "plain.png"), save_picture(tmp_path / "other.png", mode=mode, size=size)
    out = tmp_path / "graphs.json"
    assert cli.main(["predict", str(tiny_run), str(plain), str(other), "--json", str(out)]) == cli.DONE
    first, second = json.loads(out.read_text())
    assert first["graph"] == second["graph"]
    assert first["confidence"] == pytest.approx(second["confidence"], rel=0.05)


def test_a_bad_file_is_named_and_the_rest_is_predicted(tiny_run, tmp_path, capsys):
    good = save_picture(tmp_path / "good.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:60])
    Image.new("RGB", (16, 20)).save(tmp_path / "oblong.png")
    Image.new("L", (16, 16)).save(tmp_path / "grey.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "small.png")
    bad = {
        "empty.png": "the file is empty",
        "text.png": "not a picture",
        "cut.png": "damaged picture",
        "oblong.png": "16 x 20 pixels is not square",
        "grey.png": "mode L has no colours",
        "small.png": "too small",
        "missing.png": "no such file",
    }
    out = tmp_path / "graphs.json"
    files = [str(tmp_path / name) for name in (*bad, "good.png")]
    assert cli.main(["predict", str(tiny_run), *files, "--json", str(out)]) == cli.SOME_FAILED
    error = capsys.readouterr().err
    for name, message in bad.items():
        line = next(line for line in error.splitlines() if name in line)
        assert message in line
        assert name == "missing.png" or "expected a colour picture of 16 x 16" in line
    assert [row["file"] for row in json.loads(out.read_text())] == [str(good)]


def test_inspect_prints_statistics_and_draws_a_sheet(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert cli.main(["data", "inspect", "coloring10", "--samples", "60", "--out", str(out)]) == cli.DONE
    printed = capsys.readouterr().out
    assert "5 to 10" in printed
    assert "samples/s" in printed
    assert out.stat().st_size > 10_000


def test_report_is_one_page_with_everything_in_it(tiny_run, tmp_path, capsys):
    out = tmp_path / "page" / "report.html"
    assert (
        cli.main(["report", str(tiny_run), "--out", str(out), "--samples", "20", "--title", "A & B"]) == cli.DONE
    )
    page = out.read_text()
    for text in (
        "A &amp; B",
        "% of unseen graphs exactly right",
        "95 % interval",
        "learning curves",
        "proved minimal",
        "decided slot by slot (`evaluate` decodes views)",
    ):
        assert text in page
    assert page.count("data:image/png;base64,") == 3
    assert "http" not in page.split("</style>")[1]
    assert str(out) in capsys.readouterr().out


def test_export_writes_a_model_that_the_other_commands_take(tiny_run, tmp_path):
    out = tmp_path / "handed"
    assert cli.main(["export", str(tiny_run), str(out), "--samples", "20"]) == cli.DONE
    record = json.loads((out / "record.json").read_text())
    assert set(record) >= {"settings", "progress", "data_sha256", "commit", "hardware", "torch", "test"}
    assert record["test"]["samples"] == 20
    assert f"| {record['test']['edit']:.2f} |" in (out / "README.md").read_text()
    assert cli.main(["evaluate", str(out), "--samples", "5"]) == cli.DONE


def test_a_picture_is_never_drawn_over(tiny_run, tmp_path):
    picture = save_picture(tmp_path / "one.png")
    before = picture.read_bytes()
    assert cli.main(["predict", str(tiny_run), str(picture), "--draw", str(tmp_path)]) == cli.DONE
    assert picture.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"one.png", "one-graph.svg", "one-graph.png"}


def test_a_report_of_a_shipped_model_makes_no_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "coloring10", "--samples", "5"]) == cli.DONE
    assert [path.name for path in tmp_path.iterdir()] == ["coloring10-report.html"]
