"""Pictures of graphs, looked at pixel by pixel."""

import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from graphwright.graphs import Attribute, Graph, Vocabulary, draw, layout
from graphwright.graphs.drawing import PALETTE

GRAPHS = {
    "zero nodes": Graph.build(0),
    "one node": Graph.build(1),
    "two nodes": Graph.build(2, [(0, 1)]),
    "isolated": Graph.build(5),
    "two parts": Graph.build(5, [(0, 1), (2, 3), (3, 4)]),
    "long path": Graph.build(30, [(i, i + 1) for i in range(29)]),
    "complete": Graph.build(6, [(i, j) for i in range(6) for j in range(i)]),
}
with_nodes = pytest.mark.parametrize(
    "graph",
    [graph for graph in GRAPHS.values() if graph.size],
    ids=[name for name in GRAPHS if name[0] != "z"],
)
SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)


@pytest.fixture
def ax() -> Iterator[Axes]:
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "Agg"}):
        figure = plt.figure(figsize=(3, 3))
        yield figure.add_subplot()
        plt.close("all")


def pixels(ax: Axes) -> np.ndarray:
    """(height, width, 3) the picture, 0..255."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].astype(int)


def painted(ax: Axes, color: str) -> int:
    """Number of pixels of a color."""
    return int((abs(pixels(ax) - np.array(to_rgb(color)) * 255) <= 1).all(-1).sum())


@with_nodes
def test_every_node_shows_as_its_own_disc(ax, graph):
    draw(graph, ax)
    discs = ax.collections[0].get_offsets()
    assert len(discs) == graph.size
    assert len(np.unique(np.round(discs, 3), axis=0)) == graph.size
    assert painted(ax, PALETTE[0]) > 50
    assert [text.get_text() for text in ax.texts] == [str(node) for node in range(graph.size)]


def test_the_picture_of_no_nodes_is_blank(ax):
    assert (pixels(draw(Graph.build(0), ax)) == 255).all()


def test_edges_show_as_lines_between_their_ends(ax):
    draw(Graph.build(4, [(0, 1), (1, 2)]), ax, SQUARE)
    lines = [line.get_xydata().tolist() for line in ax.lines]
    assert lines == [[[0, 0], [1, 0]], [[1, 0], [1, 1]]]
    assert painted(ax, "#555555") > 50


def test_a_graph_in_one_line_is_not_cut_away(ax):
    draw(Graph.build(2, [(0, 1)]), ax, [[0, 0], [1, 1e-9]])
    assert painted(ax, PALETTE[0]) > 300
    assert not any(artist.get_clip_on() for artist in (*ax.lines, *ax.collections))


def test_edge_labels_show_as_line_styles(ax):
    graph = Graph.build(4, [(0, 1), (1, 2), (2, 3)], ["a", "b", "a"])
    styles = [line.get_linestyle() for line in draw(graph, ax, SQUARE).lines]
    assert styles == ["-", "--", "-"]


def test_more_edge_labels_than_line_styles_start_over(ax):
    vocabulary = Vocabulary(edges=("none", *"abcde"))
    draw(Graph.build(2, [(0, 1)], "e", vocabulary), ax)
    assert ax.lines[0].get_linestyle() == "-"


def test_node_labels_show_as_colors(ax):
    draw(Graph.build("CCNO", vocabulary=Vocabulary(("C", "N", "O"))), ax, SQUARE)
    carbon, nitrogen, oxygen = (painted(ax, color) for color in PALETTE[:3])
    assert carbon > 1.5 * nitrogen > 50
    assert oxygen > 50


def test_given_colors_replace_the_palette_where_they_are_given(ax):
    draw(Graph.build("CN"), ax, SQUARE[:2], {"C": "#ff00ff", "absent": "#00ff00"})
    assert painted(ax, "#ff00ff") > 50
    assert painted(ax, PALETTE[1]) > 50
    assert painted(ax, PALETTE[0]) == painted(ax, "#00ff00") == 0


def test_more_labels_than_palette_colors_start_over(ax):
    names = [f"label {at}" for at in range(len(PALETTE) + 1)]
    draw(Graph.build(names[-1:], vocabulary=Vocabulary(tuple(names))), ax)
    assert painted(ax, PALETTE[0]) > 50


@pytest.mark.usefixtures("ax")
def test_without_axes_a_new_figure_is_drawn():
    first, second = draw(Graph.build(1)), draw(Graph.build(1))
    assert first.figure is not second.figure
    assert (pixels(first) != 255).any()


def test_discs_lie_over_lines_and_lengths_are_true(ax):
    draw(Graph.build(4, [(0, 1)]), ax, SQUARE)
    assert ax.lines[0].get_zorder() < ax.collections[0].get_zorder() < ax.texts[0].get_zorder()
    assert ax.get_aspect() == 1
    assert min(*ax.get_xlim(), *ax.get_ylim()) < -0.1


def test_positions_may_be_a_plain_list(ax):
    draw(Graph.build(2), ax, [[0, 0], [3, 1]])
    assert ax.collections[0].get_offsets().tolist() == [[0, 0], [3, 1]]


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([[0, 0]], r"positions must have shape \(2, 2\), got \(1, 2\)"),
        ([[0, 0, 0], [1, 1, 1]], r"positions must have shape \(2, 2\), got \(2, 3\)"),
        ([[0, 0], [0, float("nan")]], r"positions\[1\] is not finite"),
        ([[0, float("inf")], [0, 0]], r"positions\[0\] is not finite"),
    ],
)
def test_malformed_positions_are_refused(ax, positions, message):
    with pytest.raises(ValueError, match=message):
        draw(Graph.build(2), ax, positions)
    assert not ax.has_data()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_layout_is_finite_and_inside_the_square(graph):
    places = layout(graph)
    assert places.shape == (graph.size, 2)
    assert (abs(places) <= 1 + 1e-6).all()


def test_a_layout_puts_neighbours_closer_than_strangers():
    first, *_, last = layout(Graph.build(5, [(i, i + 1) for i in range(4)]))
    places = layout(Graph.build(4, [(0, 1), (2, 3)]))
    assert np.linalg.norm(places[0] - places[1]) < np.linalg.norm(places[0] - places[2])
    assert np.linalg.norm(first - last) > 1.9


def test_a_layout_is_the_same_each_time():
    assert np.array_equal(layout(GRAPHS["two parts"]), layout(GRAPHS["two parts"]))


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"drawing needs matplotlib: pip install 'graphwright\[image\]'"):
        draw(Graph.build(1))


@pytest.mark.parametrize("names", [("x", "y"), ("position[0]", "position[1]"), ("size", "y", "x")])
def test_nodes_that_say_where_they_are_are_drawn_there(names):
    vocabulary = Vocabulary(attributes=tuple(map(Attribute, names)))
    numbers = {
        "x": [0, 4, 0],
        "y": [0, 0, 2],
        "position[0]": [0, 4, 0],
        "position[1]": [0, 0, 2],
        "size": [1, 2, 3],
    }
    graph = Graph.build(3, [(0, 1)], None, vocabulary, np.array([numbers[name] for name in names]).T)
    assert layout(graph).tolist() == [[-1, -0.5], [1, -0.5], [-1, 0.5]]


@pytest.mark.parametrize("names", [("x", "size"), ("position[0]", "position[1]", "position[2]")])
def test_other_numbers_are_no_positions(names):
    vocabulary = Vocabulary(attributes=tuple(map(Attribute, names)))
    plain = Graph.build(3, [(0, 1)])
    graph = Graph.build(3, [(0, 1)], None, vocabulary, np.ones((3, len(names))))
    assert np.allclose(layout(graph), layout(plain))
