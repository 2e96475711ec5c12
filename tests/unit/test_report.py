"""The page of a run: what it draws of a log."""

from graphwright.losses import LOSS_TERMS
from graphwright.report import learning_curves


def test_the_curves_show_every_term_of_the_loss_that_counted(monkeypatch):
    monkeypatch.setitem(LOSS_TERMS._entries, "edge_count", lambda *_: None)
    step = {"seconds": 60.0, "loss": 1.0, "presence": 0.5, "diffusion": 0.0, "edge_count": 0.2, "recognition": 0.1}
    panel = learning_curves([step, step | {"seconds": 120.0}]).axes[0]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [
        "presence",
        "edge count",
        "recognition",
    ]
