"""How cost grows: the points that are measured, and what is drawn of them."""

import pytest

from benchmarks import Row, measure_scaling, scaling_figure
from benchmarks.scaling import BATCH, SIZE, curves

EAGER, LOOP = "eager autograd", "ot.gromov.fused_gromov_wasserstein, loop"


def test_every_point_is_measured_once_beside_both_peers(monkeypatch):
    monkeypatch.setattr("benchmarks.scaling.BATCH", 2)
    monkeypatch.setattr("benchmarks.scaling.SIZE", 4)
    rows = list(measure_scaling(sizes=(3, 4), batches=(1, 2), repeats=1))
    assert [(row.n, row.batch, row.peer) for row in rows] == [
        (n, batch, peer) for n, batch in ((3, 2), (4, 2), (4, 1)) for peer in (EAGER, LOOP)
    ]


def rows():
    points = [(10, BATCH), (SIZE, BATCH), (SIZE, 1)]
    return [
        Row("plan", n, batch, 1, n / 10, peer, factor * n / 10)
        for n, batch in points
        for peer, factor in ((EAGER, 5), (LOOP, 20))
    ]


def test_curves_are_milliseconds_per_batch_in_order():
    ours, eager, loop = curves([row for row in rows() if row.n == SIZE])
    assert (ours.name, eager.name, loop.name) == ("ours", EAGER, LOOP)
    assert ours.at == eager.at == loop.at == [1, BATCH]
    assert ours.milliseconds == pytest.approx([SIZE / 10, BATCH * SIZE / 10])
    assert loop.milliseconds == pytest.approx([20 * each for each in ours.milliseconds])
    by_n = curves([row for row in rows() if row.batch == BATCH])[1]
    assert by_n.at == [10, SIZE]
    assert by_n.milliseconds == pytest.approx([5 * BATCH, 5 * BATCH * SIZE / 10])


def test_the_figure_is_log_log_with_a_line_for_each_side():
    left, right = scaling_figure(rows()).axes
    for panel, axis in ((left, "n"), (right, "batch")):
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        assert panel.get_xlabel() == axis
        assert len(panel.get_lines()) == 3
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["graphwright", EAGER, LOOP]
    assert list(left.get_lines()[0].get_xdata()) == [10, SIZE]
    assert list(right.get_lines()[2].get_xdata()) == [1, BATCH]
