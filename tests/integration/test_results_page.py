"""The pages of results are those of the records: tables, figures, and the numbers in sentences."""

import re
from dataclasses import replace

import pytest

from figures import results
from graphwright.experiments import Scale, Store, take_over


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs"))
    assert take_over(results.RESULTS, store) > 0
    return store


@pytest.fixture(scope="module")
def every(store):
    return results.read_runs(store)


@pytest.fixture(scope="module")
def written(every, store, tmp_path_factory):
    """What `python -m figures.results` would leave in docs/results."""
    folder = tmp_path_factory.mktemp("pages")
    results.write_pages(every, store, folder)
    return folder


def without_names(path):
    """A text without the names of what matplotlib clips by, which are of the last bits of a layout."""
    return re.sub(r"(?<=[\"#])p[0-9a-f]{10}(?=[\")])", "p", path.read_text())


@pytest.mark.parametrize("page", list(results.BLOCKS), ids=lambda page: page.stem)
def test_every_number_in_a_table_is_that_of_its_record(page, every):
    text = page.read_text()
    assert text == results.filled(text, results.BLOCKS[page], every), "run `python -m figures.results`"


def test_a_digit_that_is_not_of_a_record_is_found(every):
    page = results.PAGE.read_text()
    start = page.index("<!-- comparison -->")
    digit = re.compile(r"\d\.\d\d").search(page, start)
    other = "9.99" if digit.group() != "9.99" else "9.98"
    changed = page[: digit.start()] + other + page[digit.end() :]
    assert results.filled(changed, results.BLOCKS[results.PAGE], every) == page != changed


XEON = "Intel(R) Xeon(R) Processor, family 6, model 143"


def test_a_row_whose_seeds_ran_on_two_machines_names_both_and_what_each_came_to(every):
    runs = every["table1"]
    row = next(each for each in runs.measured if each.configuration.trained and len(each.keys) == 2)
    first, second = (runs.records[key] for key in row.keys)
    training = second["training"] | {"steps": 1000, "processor_seconds": 120.0}
    other = second | {"training": training, "hardware": {"processor": XEON, "threads": 1}}
    said = results.spent(row, replace(runs, records={row.keys[0]: first, row.keys[1]: other}))
    assert said.split("; ")[0] == results.spent(row, replace(runs, records=dict.fromkeys(row.keys, first)))
    assert said.split("; ")[1] == "2 min of 1 Intel Xeon 6/143 core, 64 thousand samples"


@pytest.mark.parametrize("name", [f"{name}-{Scale.CPU}" for name in results.GRIDS])
def test_the_page_of_a_grid_is_what_its_records_say_and_no_record_is_nobodys(name, written):
    for file in ("README.md", "table.csv", "figure.svg"):
        fresh, committed = (without_names(folder / name / file) for folder in (written, results.RESULTS))
        assert fresh == committed, f"{name}/{file}: run `python -m figures.results`"
    fresh, committed = (
        {path.name for path in (folder / name / "records").iterdir()} for folder in (written, results.RESULTS)
    )
    assert fresh == committed


@pytest.mark.parametrize("name", list(results.DRAWINGS))
def test_a_figure_of_no_grid_is_drawn_from_the_records(name, written):
    fresh, committed = (without_names(folder / f"{name}.svg") for folder in (written, results.RESULTS))
    assert fresh == committed, "run `python -m figures.results`"


def test_every_link_to_a_record_leads_to_one():
    page = results.PAGE.read_text()
    links = re.findall(r"\]\((results/[^)]*/records/[^)]*)\)", page)
    assert len(links) > 20
    for link in links:
        assert (results.PAGE.parent / link).is_file(), link


def test_a_block_that_is_missing_is_named(every):
    with pytest.raises(ValueError, match="table2"):
        results.filled(
            results.PAGE.read_text().replace("<!-- end table2 -->", ""), results.BLOCKS[results.PAGE], every
        )


def test_the_curve_of_exact_points_is_theirs():
    curve = results.Curve.fitted([(samples, 30 * samples**-0.5) for samples in (100.0, 400.0, 900.0)])
    assert curve.power == pytest.approx(0.5)
    assert curve.at(1600) == pytest.approx(30 / 40)


def test_the_range_of_a_projection_is_that_of_its_seeds():
    short, long = ((100.0, 8.0), (100.0, 4.0)), ((400.0, 2.0), (400.0, 1.0))
    projection = results.Projection((short, long), "")
    # The steepest seeds fall by eight in two doublings, the flattest by two.
    assert projection.range_at(1600) == pytest.approx((1 / 8, 1.0))
    assert projection.curve.at(400) == pytest.approx(2**0.5)


def test_the_projection_draws_the_runs_that_it_is_fitted_to(every):
    (panel,) = results.draw_projection(every).axes
    found = {line.get_label(): line for line in panel.lines}
    for name, projection in results.projections(every).items():
        if projection is not None:
            points = [point for length in projection.points for point in length]
            assert list(zip(*found[name].get_data(), strict=True)) == points
    dashed = [line for line in panel.lines if line.get_linestyle() == "--"]
    first = next(each for each in results.projections(every).values() if each is not None)
    assert dashed[0].get_ydata()[-1] == pytest.approx(first.curve.at(results.PAPER_SAMPLES))


def test_the_figure_of_the_penalty_has_the_frontiers_matchers(every):
    edits, exact = results.draw_penalty(every).axes
    for panel, metric in ((edits, "aligned_edit"), (exact, "isomorphic")):
        for series, name in results.PENALTY.items():
            own = [each for each in every["frontier"].measured if each.configuration.series == series]
            (drawn,) = [line for line in panel.lines if line.get_label() == name]
            assert list(drawn.get_xdata()) == [5, 10, 50, 100]
            assert list(drawn.get_ydata()) == [each.figures[metric].mean for each in own]


NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")
BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end \1 -->", re.DOTALL)
ELSEWHERE = {
    "50.2": ("views/coloring20-plain.json", "isomorphic"),
    "1.5": ("bench/time-to-published.json", 1, "minutes"),
    "2.2": ("bench/time-to-published.json", 0, "minutes"),
    "19.96": ("ablations/penalty-second-seed.json", "runs", 1, "aligned_edit"),
    "30.16": ("ablations/penalty-second-seed.json", "runs", 0, "aligned_edit"),
    "19.49": ("ablations/penalty-second-seed.json", "runs", 3, "aligned_edit"),
    "21.38": ("ablations/penalty-second-seed.json", "runs", 2, "aligned_edit"),
}
"""Numbers in sentences that are in none of the page's tables: the record that has them, and where."""
PRINTED = {
    "85.20": "Any2Graph's, in SPEC.md",
    "80.9": "million molecules of the paper's",
    "0.1": "the paper's tau",
}


def sections_of(page):
    """(sentences, the numbers of its tables) of every part under a heading: means and amounts, not what stands in
    brackets behind them; of a part without a table those of all."""
    parts = re.split(r"(?m)^#+ ", page)
    tables = [" ".join(block.group() for block in BLOCK.finditer(part)) for part in parts]
    for part, own in zip(parts, tables, strict=True):
        # Targets of links, code and commands are no sentences.
        sentences = re.sub(r"\]\([^)]*\)|```.*?```|`[^`]*`", " ", BLOCK.sub("", part), flags=re.DOTALL)
        yield sentences, re.sub(r"\([^)]*\)", " ", own or " ".join(tables))


def test_every_number_in_a_sentence_is_in_a_table_beside_it_or_in_a_record_named_here():
    page, elsewhere = results.PAGE.read_text(), []
    for path, *keys in ELSEWHERE.values():
        value = results.read_json(results.RESULTS / path)
        for key in keys:
            value = value[key]
        elsewhere.append(str(value))
    held = 0
    for sentences, tables in sections_of(page):
        known = [*NUMBER.findall(tables), *elsewhere]
        for number in set(NUMBER.findall(sentences)) - set(PRINTED):
            digits = len(number.partition(".")[2])
            assert any(f"{float(each):.{digits}f}" == number for each in known), f"{number} is in no table there"
            held += 1
        for thousand in re.findall(r"([\d,]+) thousand", sentences):
            assert f" {thousand} thousand" in tables, f"{thousand} thousand is in no table there"
    assert held > 30
