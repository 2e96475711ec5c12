"""The tables of docs/results/speed.md are those of the records."""

import re

import pytest

from figures import speed


def test_every_number_in_a_table_is_that_of_its_record():
    page = speed.PAGE.read_text()
    assert page == speed.filled(page), "run `python -m figures.speed`"


@pytest.mark.parametrize("name", speed.BLOCKS)
def test_a_digit_that_is_not_of_a_record_is_found(name):
    page = speed.PAGE.read_text()
    end = page.index(f"<!-- end {name} -->")
    # In the last line: a heading may have a digit that is no figure.
    last = page.rindex("\n", 0, end - 2)
    *_, digit = re.compile(r"\d").finditer(page, last, end)
    changed = page[: digit.start()] + str((int(digit.group()) + 1) % 10) + page[digit.end() :]
    assert speed.filled(changed) == page != changed
