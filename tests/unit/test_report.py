"""The page of a run: what it draws of a log."""

from graphwright.losses import LOSS_TERMS
from graphwright.report import learning_curves


def test_the_curves_show_every_term_of_the_loss_that_counted(monkeypatch):
    monkeypatch.setitem(LOSS_TERMS._entries, "edge_count", lambda *_: None)
    step = {"seconds": 60.0, "loss": 1.0, "presence": 0.5, "diffusion": 0.0, "edge_count": 0.2, "recognition": 0.1}
    panel = learning_curves([step, step | {"seconds": 120.0}], "edit").axes[0]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [
        "presence",
        "edge count",
        "recognition",
    ]


def test_the_curves_show_the_headlines_and_what_the_best_model_is_chosen_by():
    checks = [{"seconds": 60.0 * at, "isomorphic": 10.0 * at, "edit": 3.0, "edge_recall": 50.0} for at in (1, 2)]
    figure = learning_curves(checks, "edge_recall")
    panel, others = figure.axes[1], figure.axes[3]
    shown = [text.get_text() for text in panel.get_legend().get_texts()]
    assert shown == ["isomorphic, %", "edit", "edge recall, %"]
    drawn = [
        [line.get_ydata().tolist() for line in axes.lines if len(line.get_ydata())] for axes in (panel, others)
    ]
    assert drawn == [[[10.0, 20.0], [50.0, 50.0]], [[3.0, 3.0]]]
