"""Logs: what is written can be read, and a resumed run logs nothing twice."""

import csv
import json
import os
import sys
from types import SimpleNamespace

import pytest

from graphwright.losses import LOSS_TERMS
from graphwright.training.log import RunLog, Window, columns, read_log


def record(step: int, **more: float) -> dict[str, float]:
    return {"step": step, "seconds": step / 2, "loss": 1 / step} | more


def validation(step: int) -> dict[str, float]:
    return {"step": step, "seconds": step / 2, "isomorphic": 50.0, "edit": 1.5}


def filled(folder, *records):
    log = RunLog(folder, 0, 0)
    for one in records:
        log.write(one)
    log.close()


def test_records_are_read_as_they_were_written(tmp_path):
    records = [record(1), record(2, gap=0.25), validation(2)]
    filled(tmp_path / "run", *records)
    assert read_log(tmp_path / "run" / "log.jsonl") == records


def test_the_table_has_a_fixed_heading_and_a_row_per_record(tmp_path):
    filled(tmp_path, record(1, gap=0.25, unknown=3.0), validation(2))
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == columns()
    assert [row["step"] for row in rows] == ["1", "2"]
    assert (rows[0]["loss"], rows[0]["gap"], rows[0]["isomorphic"]) == ("1.0", "0.25", "")
    assert (rows[1]["loss"], rows[1]["isomorphic"]) == ("", "50.0")


def test_the_table_has_a_column_for_every_term_of_the_loss(tmp_path, monkeypatch):
    monkeypatch.setitem(LOSS_TERMS._entries, "edge_count", lambda *_: None)
    filled(tmp_path, {"step": 1, "presence": 0.5, "edge_count": 0.25})
    with (tmp_path / "log.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["presence"], row["edge_count"]) == ("0.5", "0.25")
    monkeypatch.setitem(LOSS_TERMS._entries, "samples", lambda *_: None)
    with pytest.raises(ValueError, match="the loss term 'samples' needs another name"):
        columns()


def test_a_resumed_run_drops_what_was_logged_beyond_its_checkpoint(tmp_path):
    filled(tmp_path, record(1), record(2), validation(2), record(3), record(4), validation(4))
    log = RunLog(tmp_path, 3, 2)
    kept = [record(1), record(2), validation(2), record(3)]
    assert read_log(log.jsonl) == kept
    log.write(record(4))
    assert read_log(log.jsonl) == [*kept, record(4)]
    assert [line.split(",")[0] for line in log.csv.read_text().splitlines()] == ["step", "1", "2", "2", "3", "4"]


def test_a_resumed_run_writes_a_table_of_other_columns_anew(tmp_path):
    """An older version's had others, or had them in another order."""
    filled(tmp_path, record(1), validation(1))
    (tmp_path / "log.csv").write_text("step,edit,isomorphic,loss\n1,,,1.0\n1,1.5,50.0,\n")
    log = RunLog(tmp_path, 1, 1)
    log.write(record(2))
    log.close()
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == columns()
    assert [(row["step"], row["loss"], row["edit"]) for row in rows] == [
        ("1", "1.0", ""),
        ("1", "", "1.5"),
        ("2", "0.5", ""),
    ]


def test_a_validation_that_the_checkpoint_does_not_know_will_be_logged_again(tmp_path):
    filled(tmp_path, record(2), validation(2), record(4), validation(4))
    assert read_log(RunLog(tmp_path, 4, 2).jsonl) == [record(2), validation(2), record(4)]


def test_a_fresh_run_starts_with_an_empty_log(tmp_path):
    filled(tmp_path, record(1))
    assert read_log(RunLog(tmp_path, 0, 0).jsonl) == []


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_last_line_that_a_kill_cut_short_is_ignored(tmp_path, cut):
    filled(tmp_path, record(1), record(2), record(3))
    file = tmp_path / "log.jsonl"
    file.write_text(file.read_text()[: -1 - cut])
    assert read_log(file) == [record(1), record(2)]
    log = RunLog(tmp_path, 3, 0)
    log.write(record(3))
    assert read_log(file) == [record(1), record(2), record(3)]


def test_no_log_reads_as_empty(tmp_path):
    assert read_log(tmp_path / "log.jsonl") == []


def test_a_kill_while_a_log_is_shortened_leaves_the_old_one(tmp_path, monkeypatch):
    filled(tmp_path, record(1), record(2))

    def killed(*_):
        raise RuntimeError("killed")

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(RuntimeError, match="killed"):
        RunLog(tmp_path, 1, 0)
    assert read_log(tmp_path / "log.jsonl") == [record(1), record(2)]


class Board:
    """What stands for tensorboard's writer."""

    made: list["Board"]

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step, self.scalars, self.closed = folder, purge_step, [], False
        self.made.append(self)

    def add_scalar(self, tag, scalar_value, global_step):
        self.scalars.append((tag, scalar_value, global_step))

    def close(self):
        self.closed = True


def test_tensorboard_gets_every_number_and_forgets_steps_to_be_taken_again(tmp_path, monkeypatch):
    Board.made = []
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Board))
    log = RunLog(tmp_path, 4, 0)
    log.write({"step": 5, "loss": 0.5, "name": "text"})
    log.close()
    (board,) = Board.made
    assert board.purge_step == 5
    assert board.scalars == [("loss", 0.5, 5)]
    assert board.closed
    assert board.folder == tmp_path / "tensorboard"


def test_without_tensorboard_the_log_works(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    filled(tmp_path, record(1))
    assert not (tmp_path / "tensorboard").exists()
    assert read_log(tmp_path / "log.jsonl") == [record(1)]


def test_a_window_gives_means_and_the_last_health():
    window = Window()
    window.add({"loss": 1.0, "edges": 0.5}, {"gap": 0.3, "plan_entropy": 1.0}, 8)
    window.add({"loss": 2.0, "edges": 0.0}, {"plan_entropy": 0.5}, 8)
    found = window.record()
    assert found.pop("samples_per_second") > 0
    assert found == {"loss": 1.5, "edges": 0.25, "gap": 0.3, "plan_entropy": 0.5, "skipped": 0}


def test_skipped_steps_are_counted_and_in_no_mean():
    window = Window()
    window.skip(8)
    assert set(window.record()) == {"skipped", "samples_per_second"}
    window.add({"loss": 1.0}, {}, 8)
    window.skip(8)
    assert window.record()["loss"] == 1.0
    assert window.record()["skipped"] == 2


def test_a_window_survives_json_to_the_last_bit():
    whole, first = Window(), Window()
    values = [{"loss": 1 / 3}, {"loss": 1e-17}, {"loss": 0.1}]
    for one in values:
        whole.add(one, {"gap": 1 / 7}, 8)
    first.add(values[0], {"gap": 1 / 7}, 8)
    second = Window.from_json(json.loads(json.dumps(first.to_json())))
    for one in values[1:]:
        second.add(one, {}, 8)
    assert second.to_json() == whole.to_json()
    assert Window.from_json(None).to_json() == Window().to_json()
