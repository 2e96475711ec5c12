"""The tables of docs/results.md are those of the records."""

import re

import pytest

from figures import results
from graphwright.experiments import Store, take_over


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs"))
    assert take_over(results.RESULTS, store) > 0
    return results.read_runs(store)


def test_every_number_in_a_table_is_that_of_its_record(every):
    page = results.PAGE.read_text()
    assert page == results.filled(page, every), "run `python -m figures.results`"


def test_every_number_of_the_paper_presets_is_that_of_their_record():
    page = results.GPU.read_text()
    assert page == results.with_block(page, "presets", results.paper_presets()), "run `python -m figures.results`"


def test_a_digit_that_is_not_of_a_record_is_found(every):
    page = results.PAGE.read_text()
    start = page.index("<!-- comparison -->")
    digit = re.compile(r"\d\.\d\d").search(page, start)
    other = "9.99" if digit.group() != "9.99" else "9.98"
    changed = page[: digit.start()] + other + page[digit.end() :]
    assert results.filled(changed, every) == page != changed


def test_every_link_to_a_record_leads_to_one():
    page = results.PAGE.read_text()
    links = re.findall(r"\]\((results/[^)]*/records/[^)]*)\)", page)
    assert len(links) > 20
    for link in links:
        assert (results.PAGE.parent / link).is_file(), link


def test_a_block_that_is_missing_is_named(every):
    with pytest.raises(ValueError, match="table2"):
        results.filled(results.PAGE.read_text().replace("<!-- end table2 -->", ""), every)


def test_the_curve_of_exact_points_is_theirs():
    curve = results.Curve.fitted([(samples, 30 * samples**-0.5) for samples in (100.0, 400.0, 900.0)])
    assert curve.power == pytest.approx(0.5)
    assert curve.at(1600) == pytest.approx(30 / 40)
