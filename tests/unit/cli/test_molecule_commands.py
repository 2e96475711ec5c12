"""evaluate, predict, data inspect, report and export on molecules, as a person types them."""

import csv
import json

import numpy as np
import pytest
import torch
from rdkit import Chem

from graphwright.cli import main as cli
from graphwright.graphs import from_json, is_isomorphic
from graphwright.graphs.molecules import molecule_vocabulary
from graphwright.inference.model import load_model
from tiny_molecules import BAD, SMILES, tiny_file, write_molecules

EXTRAS = {"validity", "tanimoto", "same_fingerprint", "isomorphic_skeleton", "top5", "top10"}


def figures(*arguments, out):
    assert cli.main(["evaluate", *map(str, arguments), "--json", str(out)]) == cli.DONE
    return json.loads(out.read_text())


def test_evaluate_adds_what_chemists_ask_for(tiny_molecule_run, tmp_path, capsys):
    options = ["--samples", 10, "--draw", tmp_path, "--decode", "plain"]
    facts = figures(tiny_molecule_run, *options, out=tmp_path / "a.json")
    assert set(facts) >= EXTRAS | {"task", "samples", "isomorphic", "edit", "aligned_exact", "seconds"}
    assert (facts["task"], facts["samples"], facts["decode"]) == ("few", 10, "plain")
    assert facts["top10"] >= facts["top5"] >= facts["isomorphic"]
    assert 0 <= facts["tanimoto"] <= 1
    printed = capsys.readouterr().out
    assert "same fingerprint, %" in printed
    assert "exactly right (isomorphic), %" in printed
    assert "same_fingerprint" not in printed
    assert (tmp_path / "examples.png").stat().st_size > 1000


def test_evaluate_decodes_to_valid_molecules(tiny_molecule_run, tmp_path):
    facts = figures(tiny_molecule_run, "--samples", 4, "--decode", "valid", out=tmp_path / "a.json")
    assert facts["validity"] == 100
    assert facts["decode"] == "valid"
    assert 0 <= facts["decode_proved"] <= 100


def test_answers_are_checked_where_nothing_else_is_asked_for(tiny_molecule_run, tmp_path, capsys):
    """A model that has learned nothing answers rightly: the bits say what the molecule is."""
    facts = figures(tiny_molecule_run, "--samples", 30, out=tmp_path / "a.json")
    assert facts["decode"] == "fingerprint"
    assert facts["same_fingerprint"] >= facts["reproduced"] > 90
    assert facts["same_fingerprint"] >= facts["isomorphic"]
    assert facts["isomorphic"] > 80
    assert facts["alternatives"] >= 1
    assert facts["decode_seconds_p99"] >= facts["decode_seconds_median"] > 0
    plain = figures(tiny_molecule_run, "--samples", 30, "--decode", "plain", out=tmp_path / "b.json")
    assert plain["isomorphic"] < facts["isomorphic"]
    assert not {"reproduced", "alternatives"} & set(plain)
    assert "decoded fingerprint" in capsys.readouterr().out


def test_predict_says_that_a_fingerprint_needs_more_atoms_than_the_model_has(tiny_molecule_run, tmp_path, capsys):
    path, out = tmp_path / "aspirin.smi", tmp_path / "a.json"
    path.write_text("CC(=O)Oc1ccccc1C(=O)O\n")
    assert (
        cli.main(["predict", str(tiny_molecule_run), str(path), "--json", str(out), "--seconds", "8"]) == cli.DONE
    )
    (row,) = json.loads(out.read_text())
    assert row["why_not"].startswith("needs more than ")
    assert row["candidates"][0]["why_not"] == row["why_not"]
    assert f"no: {row['why_not']}" in capsys.readouterr().out


def test_predict_says_whether_an_answer_has_the_fingerprint(tiny_molecule_run, tmp_path, capsys):
    path = tmp_path / "few.smi"
    path.write_text("CCO\nCc1ccn[nH]1\nCC[Se]C\n")
    out = tmp_path / "a.json"
    command = ["predict", str(tiny_molecule_run), str(path), "--json", str(out), "--seconds", "4"]
    assert cli.main(command) == cli.DONE
    rows = json.loads(out.read_text())
    assert [row["same_fingerprint"] for row in rows] == [True, True, False]
    # Which nitrogen has the hydrogen is not in the graph, but it is in the fingerprint.
    assert [row["smiles"] for row in rows[:2]] == ["CCO", "Cc1ccn[nH]1"]
    assert all(each["same_fingerprint"] for row in rows[:2] for each in row["candidates"])
    table = capsys.readouterr().out
    assert "same fingerprint" in table
    assert " yes " in table
    assert " no " in table
    assert cli.main([*command[:3], "--seconds", "0"]) == cli.USAGE
    assert "must be more than 0" in capsys.readouterr().err
    assert cli.main([*command[:3], "--formula", "C2H6O"]) == cli.USAGE
    assert "fingerprint decoding knows nothing of it" in capsys.readouterr().err


def test_the_tautomer_that_is_drawn_is_the_one_that_is_answered(tiny_molecule_run, tmp_path):
    from graphwright.tasks.molecules.targets import structure_svg

    path = tmp_path / "few.smi"
    path.write_text("Cc1ccn[nH]1\nCc1cc[nH]n1\n")
    assert cli.main(["predict", str(tiny_molecule_run), str(path), "--draw", str(tmp_path)]) == cli.DONE
    graph = load_model(str(tiny_molecule_run)).predict(["Cc1ccn[nH]1"])[0].graph
    for number, smiles in enumerate(["Cc1ccn[nH]1", "Cc1cc[nH]n1"], 1):
        drawn = (tmp_path / f"few-{number}.svg").read_text()
        assert drawn == structure_svg(graph, smiles, "confidence 100 %")


def test_decoding_by_fingerprint_needs_one(tiny_run, capsys):
    assert cli.main(["evaluate", str(tiny_run), "--samples", "2", "--decode", "fingerprint"]) == cli.USAGE
    assert "models whose input is a fingerprint" in capsys.readouterr().err


def test_known_graphs_are_those_of_the_training_data(tiny_molecule_run, tmp_path):
    facts = figures(tiny_molecule_run, "--samples", 4, "--decode", "known", out=tmp_path / "a.json")
    assert facts["validity"] == 100
    assert facts["decode"] == "known"
    assert "decode_proved" not in facts
    model = load_model(str(tiny_molecule_run))
    data = model.task.data("train")
    trained = [data[index].graph for index in range(len(data))]
    for predicted in model.predict(["CCO", "CCN"], top=3, decode="known"):
        assert len(predicted.candidates) == 3
        assert all(any(is_isomorphic(each.graph, graph) for graph in trained) for each in predicted.candidates)
        assert predicted.candidates[0].proved is False


def test_evaluate_takes_all_usable_rows_of_a_file_whatever_its_splits(tiny_molecule_run, tmp_path, capsys):
    path = write_molecules(tmp_path / "own.csv", ["CCO", *BAD, "CCN"], ["train", *["val"] * len(BAD), "test"])
    facts = figures(tiny_molecule_run, "--data", path, out=tmp_path / "a.json")
    assert facts["samples"] == 2
    assert facts["unusable_rows"] == dict.fromkeys(BAD.values(), 1)
    assert "4 unusable rows were left out: 1 " in " ".join(capsys.readouterr().out.split())
    assert cli.main(["evaluate", str(tiny_molecule_run), "--data", str(path), "--seed", "3"]) == cli.USAGE
    assert "give one of the two" in capsys.readouterr().err


def test_the_baseline_stands_beside_the_model(tiny_molecule_run, tmp_path):
    facts = figures(tiny_molecule_run, "--samples", 6, "--baseline", out=tmp_path / "a.json")
    # Every test molecule of this file is in its training split as well.
    assert facts["baseline"]["isomorphic"] == 100
    assert facts["baseline"]["tanimoto"] == 1
    assert facts["baseline"]["samples"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "RUN", "--seed", "3"], "are read, not generated"),
        (["evaluate", "RUN", "--data", "nowhere.csv"], "no data 'nowhere.csv'"),
        (["evaluate", "RUN", "--samples", "999"], "the test split has 30 samples, not 999"),
        (["predict", "RUN", "x.smi", "--top", "0"], "--top must be at least 1"),
        (["evaluate", "COLORING", "--samples", "3", "--decode", "valid"], "is for molecules"),
        (["evaluate", "COLORING", "--data", "x.csv"], "samples are generated, not read"),
    ],
)
def test_wrong_arguments_are_one_line_with_code_2(tiny_molecule_run, tiny_run, capsys, arguments, message):
    places = {"RUN": str(tiny_molecule_run), "COLORING": str(tiny_run)}
    assert cli.main([places.get(word, word) for word in arguments]) == cli.USAGE
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def vectors():
    found = np.zeros((3, 2048), np.uint8)
    found[:, [1, 5, 80]] = 1
    return found


def test_predict_reads_every_kind_of_file(tiny_molecule_run, tmp_path, capsys):
    (tmp_path / "a.smi").write_text("CCO ethanol\n\nnot_smiles\nCCN\n")
    write_molecules(tmp_path / "b.csv", ["CCO", "CC"])
    (tmp_path / "c.txt").write_text("".join(map(str, vectors()[0])) + "\n")
    np.save(tmp_path / "d.npy", vectors())
    np.save(tmp_path / "e.npy", np.zeros((2, 9)))
    (tmp_path / "f.npy").write_bytes(b"rubbish")
    out = tmp_path / "out.json"
    names = ["a.smi", "b.csv", "c.txt", "d.npy", "e.npy", "f.npy", "g.smi"]
    files = [str(tmp_path / name) for name in names]
    assert cli.main(["predict", str(tiny_molecule_run), *files, "--json", str(out)]) == cli.SOME_FAILED
    errors = capsys.readouterr().err
    for part in (
        "a.smi:3: unparsable",
        "e.npy: expected fingerprints of shape (m, 2048)",
        "f.npy cannot be read",
        "g.smi: no such file",
    ):
        assert part in errors
    rows = json.loads(out.read_text())
    assert [row["file"].rsplit("/")[-1] for row in rows] == [
        "a.smi:1", "a.smi:4", "b.csv:1", "b.csv:2", "c.txt:1", "d.npy:1", "d.npy:2", "d.npy:3",
    ]  # fmt: skip
    assert rows[0]["graph"] == rows[2]["graph"]
    assert rows[4]["graph"] == rows[5]["graph"] == rows[7]["graph"]
    for row in rows:
        graph = from_json(row["graph"], molecule_vocabulary("CONF"))
        assert (row["smiles"] is None) or Chem.MolFromSmiles(row["smiles"]).GetNumAtoms() == graph.size


def test_predict_gives_candidates_and_drawings(tiny_molecule_run, tmp_path, capsys):
    (tmp_path / "a.smi").write_text("CCO\nCCN\n")
    out, drawn = tmp_path / "out.json", tmp_path / "drawn"
    arguments = ["predict", str(tiny_molecule_run), str(tmp_path / "a.smi"), "--top", "2", "--decode", "valid"]
    assert cli.main([*arguments, "--json", str(out), "--draw", str(drawn)]) == cli.DONE
    for row in json.loads(out.read_text()):
        assert 1 <= len(row["candidates"]) <= 2
        assert row["candidates"][0]["smiles"] == row["smiles"]
        assert all(Chem.MolFromSmiles(each["smiles"]) is not None for each in row["candidates"])
        assert sum(each["share"] for each in row["candidates"]) == pytest.approx(1)
    assert all("<svg" in path.read_text() for path in drawn.iterdir())
    assert {path.name.split("-")[1].removesuffix(".svg") for path in drawn.iterdir()} == {"1", "2"}
    assert "SMILES" in capsys.readouterr().out


def test_predict_obeys_a_formula(tiny_molecule_run, tmp_path):
    (tmp_path / "one.smi").write_text("CCO\n")
    out = tmp_path / "graphs.json"
    command = [
        "predict",
        str(tiny_molecule_run),
        str(tmp_path / "one.smi"),
        "--decode",
        "valid",
        "--json",
        str(out),
    ]
    assert cli.main([*command, "--formula", "C2H6O"]) == 0
    (row,) = json.loads(out.read_text())
    assert sorted(node["label"] for node in row["graph"]["nodes"]) == ["C", "C", "O"]


def test_a_formula_needs_the_valid_decoder_and_must_be_one(tiny_molecule_run, tmp_path, capsys):
    (tmp_path / "one.smi").write_text("CCO\n")
    command = ["predict", str(tiny_molecule_run), str(tmp_path / "one.smi")]
    assert cli.main([*command, "--formula", "C2H6O"]) == 2
    assert "--formula needs --decode valid" in capsys.readouterr().err
    assert cli.main([*command, "--decode", "valid", "--formula", "C2H6?"]) == 2
    assert "not a molecular formula" in capsys.readouterr().err


def test_inspect_counts_and_lists_what_is_unusable(tmp_path, capsys):
    path, listed = tiny_file(tmp_path), tmp_path / "rejected.csv"
    out = tmp_path / "sheet.png"
    arguments = ["data", "inspect", str(path), "--out", str(out), "--rejected", str(listed)]
    assert cli.main(arguments) == cli.DONE
    printed = capsys.readouterr().out
    assert "unusable: unparsable" in printed
    assert "heavy atoms" in printed
    rows = list(csv.DictReader(listed.read_text().splitlines()))
    reasons = ["unparsable", "several fragments"]  # the file's own elements and 32 atoms take the others
    assert [(row["row"], row["text"], row["reason"]) for row in rows] == [
        ("6", "not_smiles", reasons[0]), ("9", "C.C", reasons[1]),
    ]  # fmt: skip
    assert out.stat().st_size > 10_000


def test_inspect_knows_the_shipped_data(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert cli.main(["data", "inspect", "qm9", "--samples", "40", "--out", str(out)]) == cli.DONE
    assert "128,450" in capsys.readouterr().out


SMALL = ["--model.width", "16", "--model.encoder_width", "16", "--model.head_width", "16", "--model.layers", "1",
         "--matching.target_width", "16", "--matching.dimension", "8", "--train.batch_size", "8",
         "--train.steps", "6", "--train.validation_samples", "4"]  # fmt: skip


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_file_of_molecules_is_all_that_training_needs(tmp_path, monkeypatch, capsys, workers):
    monkeypatch.chdir(tmp_path)
    tiny_file(tmp_path)
    assert cli.main(["train", "few.csv", *SMALL, "--train.workers", workers]) == cli.DONE
    assert "2 unusable rows were left out: 1 unparsable, 1 several fragments" in capsys.readouterr().out
    found = json.loads((tmp_path / "runs" / "few" / "metrics.json").read_text())
    assert found["unusable_rows"] == {"unparsable": 1, "several fragments": 1}
    settings = (tmp_path / "runs" / "few" / "config.yaml").read_text()
    assert 'elements: "C O N F Si"' in settings
    assert cli.main(["train", "few.csv", *SMALL]) == cli.USAGE
    assert "runs/few already holds a run" in capsys.readouterr().err


def test_prepared_molecules_are_inspected_and_trained_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "CID-SMILES").write_text(
        "".join(f"{at}\t{'C' * (1 + at % 15)}O{'C' * (at // 15)}\n" for at in range(210))
    )
    assert cli.main(["data", "prepare", "molecules", "CID-SMILES", "--out", "own", "--processes", "1"]) == cli.DONE
    assert cli.main(["data", "inspect", "own", "--split", "test", "--out", "a.png"]) == cli.DONE
    assert "heavy atoms" in capsys.readouterr().out
    assert cli.main(["train", "own", *SMALL, "--out", "run"]) == cli.DONE
    assert cli.main(["train", "nowhere.csv"]) == cli.USAGE
    assert "no data 'nowhere.csv'" in capsys.readouterr().err


def test_report_and_export_speak_of_molecules(tiny_molecule_run, tmp_path):
    page = tmp_path / "report.html"
    assert cli.main(["report", str(tiny_molecule_run), "--out", str(page), "--samples", "12"]) == cli.DONE
    assert "ECFP4 fingerprint" in page.read_text()
    assert "valid molecules" in page.read_text()
    out = tmp_path / "handed"
    assert cli.main(["export", str(tiny_molecule_run), str(out), "--samples", "10"]) == cli.DONE
    card = (out / "README.md").read_text()
    assert "molecules.smi" in card
    assert "coloured" not in card
    assert json.loads((out / "record.json").read_text())["test"]["samples"] == 10
    assert cli.main(["evaluate", str(out), "--samples", "5"]) == cli.DONE


def test_all_molecules_are_in_the_shared_list():
    assert len(SMILES) == 30  # what the messages above count on


def test_a_model_is_decoded_as_it_was_handed_on(tiny_molecule_run, tmp_path):
    out = tmp_path / "model"
    assert (
        cli.main(["export", str(tiny_molecule_run), str(out), "--samples", "4", "--decode", "known"]) == cli.DONE
    )
    assert "decoded\n`known`" in (out / "README.md").read_text()
    assert json.loads((out / "record.json").read_text())["decoder"] == "known"
    assert figures(out, "--samples", 4, out=tmp_path / "a.json")["decode"] == "known"
    assert figures(out, "--samples", 4, "--decode", "plain", out=tmp_path / "b.json")["decode"] == "plain"
    model, run = load_model(str(out)), load_model(str(tiny_molecule_run))
    assert (model.decode, run.decode) == ("known", "fingerprint")
    (own,), (known,) = model.predict(["CCO"]), model.predict(["CCO"], decode="known")
    assert is_isomorphic(own.graph, known.graph)
    assert own.candidates
    # The graphs came with it: it needs no data.
    assert [graph.size for graph in model.library.graphs] == [graph.size for graph in run.known.library.graphs]
    assert run.library is None


def test_a_model_that_was_handed_on_can_be_handed_on_again(tiny_molecule_run, tmp_path):
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert cli.main(["export", str(tiny_molecule_run), str(once), "--samples", "4"]) == cli.DONE
    assert cli.main(["export", str(once), str(twice), "--samples", "4"]) == cli.DONE
    first, second = (load_model(str(folder)).predictor.state_dict() for folder in (once, twice))
    assert all(torch.allclose(first[name], second[name], atol=1e-6) for name in first)


def predicted(*words, out):
    assert cli.main(["predict", *map(str, words), "--json", str(out)]) == cli.DONE
    return json.loads(out.read_text())


def test_a_smiles_may_be_given_as_it_is(tiny_molecule_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = predicted(tiny_molecule_run, "CCO", "CC(=O)N", "--draw", "drawn", out=tmp_path / "a.json")
    assert [(row["file"], row["given"], row["smiles"]) for row in rows] == [
        ("CCO", "CCO", "CCO"), ("CC(=O)N", "CC(=O)N", "CC(N)=O"),
    ]  # fmt: skip
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"CCO.svg", "CC_O_N.svg"}
    assert cli.main(["predict", str(tiny_molecule_run), "nonsense"]) == cli.SOME_FAILED
    assert "nonsense: unparsable" in capsys.readouterr().err


def test_rows_show_name_and_input_and_what_is_out_of_scope(tiny_molecule_run, tmp_path, capsys):
    path = tmp_path / "few.smi"
    long, salt = "C" * 40, "CC.O"
    path.write_text(f"CCO ethanol\n{long}\n{salt}\nC[Na]\nCCCCC(C)O\n")
    words = [tiny_molecule_run, path, "--decode", "plain", "--draw", tmp_path]
    rows = predicted(*words, out=tmp_path / "a.json")
    assert (rows[0]["name"], rows[0]["given"], rows[0]["note"]) == ("ethanol", "CCO", "in the training set")
    assert rows[1]["note"].startswith("out of scope: 40 heavy atoms, at most ")
    assert rows[2]["note"].startswith("out of scope: the molecule is in several parts")
    assert rows[3]["note"].startswith("out of scope: Na is not one of ")
    assert "note" not in rows[4]
    table = capsys.readouterr().out
    for part in ("few.smi:1 ethanol", "CCCCC(C)O", "in the training set", "out of scope: 40 heavy"):
        assert part in table
    assert (tmp_path / "ethanol.svg").exists()
    assert (tmp_path / "few-2.svg").exists()


def test_few_candidates_are_explained(tiny_molecule_run, capsys):
    assert cli.main(["predict", str(tiny_molecule_run), "CCO", "--top", "5"]) == cli.DONE
    assert "1 of 1 have fewer than 5: no other molecule that has the fingerprint" in capsys.readouterr().out
    assert cli.main(["predict", str(tiny_molecule_run), "CCO"]) == cli.DONE
    assert "fewer" not in capsys.readouterr().out


def test_an_input_is_never_written_over(tiny_molecule_run, tmp_path, capsys):
    path = tmp_path / "few.smi"
    path.write_text("CCO\n")
    assert cli.main(["predict", str(tiny_molecule_run), str(path), "--json", str(path)]) == cli.USAGE
    assert "is an input: write to another file" in capsys.readouterr().err
    assert path.read_text() == "CCO\n"
