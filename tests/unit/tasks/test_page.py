"""A task that says nothing of pages is served all the same: its files are read, its inputs drawn."""

from types import SimpleNamespace

import pytest

from graphwright.graphs import Graph, Vocabulary
from graphwright.server.cases import card, case_of_example, case_of_file, case_of_text, shown_input
from graphwright.server.limits import RefusedError
from graphwright.server.schema import GivenExample, GivenText
from graphwright.tasks import BadInput, NamedInput, Task

WORDS = ["ab", "ba", "aab"]


class Spelling(Task):
    """From a word to the path of its letters; not registered, so that no other test meets it."""

    files = "words, one a line"
    vocabulary = Vocabulary(("a", "b"))
    capacity = 4
    name = "spelling"
    input_form = None

    def data(self, split, *, seed=None, limit=None):  # noqa: ARG002
        return [SimpleNamespace(text=word, graph=self.graph(word)) for word in WORDS]

    def graph(self, word):
        return Graph.build(list(word), [(at, at + 1) for at in range(len(word) - 1)], vocabulary=self.vocabulary)

    def inputs(self, given):
        return given

    def read(self, path):
        for number, word in enumerate(path.read_text().split(), 1):
            good = set(word) <= {"a", "b"}
            yield NamedInput(f"{path}:{number}", word, word) if good else BadInput(f"{path}:{number}: not a word")

    def input_of(self, sample):
        return sample.text


@pytest.fixture
def model():
    run = SimpleNamespace(task=SimpleNamespace(kind="spelling"))
    return SimpleNamespace(task=Spelling(None), run=run, standing="good")


def test_its_card_says_what_it_reads(model):
    shown = card("mine", "run", model)
    assert (shown.kind, shown.files, shown.sliders) == ("spelling", "words, one a line", None)
    assert shown.standing == "Good."
    assert "words, one a line" in shown.takes_text


def test_text_and_files_are_read_and_drawn(model):
    pasted = case_of_text(model, GivenText(model="mine", text="ab\nxy\nba", row=2))
    assert (pasted.given, pasted.row) == (["ba"], 2)
    assert list(pasted.rows) == ["the pasted text:1", "the pasted text:3"]
    assert list(pasted.notes) == ["the pasted text:2: not a word."]
    assert shown_input(pasted.shown).image.startswith("data:image/png")
    assert case_of_file(model, b"aab", "folder/mine.txt", 1).rows == ["mine.txt:1"]
    with pytest.raises(RefusedError, match=r"^mine\.txt: there is no input in it\.$"):
        case_of_file(model, b" ", "mine.txt", 1)
    with pytest.raises(RefusedError, match="There is no input 2: 1 could be read"):
        case_of_file(model, b"aab", "mine.txt", 2)


def test_an_example_is_an_unseen_sample_with_its_truth(model):
    example = case_of_example(model, GivenExample(model="mine", number=4))
    assert example.given == ["ba"]
    assert example.truth == model.task.graph("ba")
