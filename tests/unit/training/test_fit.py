"""`graphwright.fit`: data in, a model out."""

import pytest

import graphwright as gw
from graphwright.settings import SettingsError
from tiny_molecules import tiny_file

SMALL = {
    "model__width": 16, "encoder_width": 16, "head_width": 16, "layers": 1, "heads": 2, "target_width": 16,
    "dimension": 8, "batch_size": 8, "train__steps": 3, "validation_samples": 4, "workers": 0, "devices": "1",
}  # fmt: skip


def test_a_file_becomes_a_model_and_nothing_else_is_left(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gw.fit(tiny_file(tmp_path), **SMALL)
    assert isinstance(model, gw.SavedModel)
    assert model.name == "few"
    assert model.run.model.width == 16
    assert model.run.train.steps == 3
    assert model.predict("CCO").text == "CCO"
    assert [path.name for path in tmp_path.iterdir()] == ["few.csv"]
    assert capsys.readouterr().out == ""
    model.save("kept")
    assert gw.load("kept").predict("CCO").text == "CCO"


def test_a_run_is_kept_where_one_asks_for_it(tmp_path, capsys):
    model = gw.fit("coloring10", out=tmp_path / "run", verbose=True, capacity=4, min_size=2, **SMALL)
    assert model.task.capacity == 4
    assert "step 3" in capsys.readouterr().out
    assert (tmp_path / "run" / "config.yaml").exists()
    with pytest.raises(SettingsError, match="is not empty: a new run needs a folder of its own"):
        gw.fit("coloring10", out=tmp_path / "run", **SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widht": 3}, "fit: widht.*did you mean"),
        ({"kind": "learned"}, "kind may be .* write .*matching__kind"),
        ({"model__width": -1}, "fit: model.width"),
        ({"minutes": -1}, "fit: train.minutes"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingsError, match=message):
        gw.fit("coloring10", **settings)


def test_what_is_neither_a_name_nor_a_file_is_told_how_to_become_one():
    for given in (None, [{"x": 1}], object()):
        with pytest.raises(
            TypeError, match=r"fit takes a preset's name or the path of a file, got \w+: write rows"
        ):
            gw.fit(given)


def test_no_setting_is_offered_that_is_not_alike():
    with pytest.raises(SettingsError, match=r"^fit: lr is no setting$"):
        gw.fit("coloring10", lr=0.1)
