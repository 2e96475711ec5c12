"""What graphwright asks of a task and of an encoder, and what only this task knows."""

import pytest
from graphwright_brackets import BracketsTask, tree

from graphwright.tasks import task_of
from graphwright.testing import check_encoder, check_task

TASK = task_of(BracketsTask(capacity=6, samples=200))


def test_the_task_keeps_its_promises(tmp_path):
    file = tmp_path / "some.txt"
    file.write_text("([]{()})\n([)]\n{}\n")
    check_task(TASK, file)


@pytest.mark.parametrize("encoder", ["recurrent", "tokens"])
def test_encoders_of_brackets_keep_theirs(encoder):
    check_encoder(encoder, TASK)


def test_a_text_is_read_as_its_tree_and_written_back():
    graph = tree("([]{()})")
    assert graph.node_names == ["round", "square", "curly", "round"]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [2, 3]]
    assert all(TASK.text(sample.graph) == sample.text for sample in map(TASK.data("test").__getitem__, range(20)))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no brackets"), ("(", "not closed"), ("(]", "character 2, ']', closes nothing"), ("()[]", "outside")],
)
def test_what_is_not_nested_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        tree(text)
