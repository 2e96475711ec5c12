"""The page as a person meets it, in headless Chromium; where there is none the tests are skipped and say so.

What it looked like is in `screenshots/` at the root afterwards, which git does not keep.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
SECONDS = 40_000
"""Milliseconds, on a busy machine."""


@pytest.fixture(scope="module")
def browser() -> Iterator:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser, address) -> Iterator:
    """A page whose every complaint is a failure."""
    complaints = []
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        opened = context.new_page()
        opened.set_default_timeout(SECONDS)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
        opened.on(
            "request",
            lambda asked: None if asked.url.startswith((address, "data:")) else complaints.append(asked.url),
        )
        yield opened
    assert complaints == []


def is_complaint(message) -> bool:
    # Chromium logs every answer of 4xx, which is how the server refuses.
    return message.type in ("error", "warning") and "Failed to load resource" not in message.text


def keep(page, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def ready(page) -> None:
    page.wait_for_selector("#candidates button")
    page.wait_for_function("() => !document.body.classList.contains('busy')")


def test_every_model_shows_a_prediction_beside_the_truth(page, address):
    page.goto(address)
    ready(page)
    models = page.eval_on_selector_all("#model option", "all => all.map(each => each.value)")
    assert {"coloring10", "coloring-any2graph", "points"} <= set(models)
    for model in models:
        page.select_option("#model", model)
        page.wait_for_function(
            "name => document.getElementById('timings').textContent.startsWith(name + ':')", arg=model
        )
        ready(page)
        assert page.locator(".panel").count() == 3
        assert page.locator(".panel svg[role=img]").count() >= 2
        assert page.locator("#plan td[tabindex='0']").count() == 1
        assert page.inner_text("#verdict")
        assert "%" in page.inner_text("#verdict-detail")
        assert "ms" in page.inner_text("#timings")
        assert page.inner_text("#standing")
        page.hover("#plan tbody tr:first-of-type td")
        assert page.inner_text("#plan-value").startswith("Slot ")
        keep(page, model)


def test_a_tables_nodes_are_told_by_their_labels_and_numbers(page, address):
    page.goto(f"{address}#points")
    ready(page)
    assert {"end", "inner"} <= set(page.inner_text("#legend").split())
    tables = page.locator("summary", has_text="The nodes as a table")
    assert tables.count() == 2
    tables.nth(1).click()
    heads, first = page.locator(".values:visible tr").all_inner_texts()[:2]
    assert heads.split() == ["node", "x", "y"]
    label, *numbers = first.split()
    assert label == "end"
    assert all(float(number) >= 0 for number in numbers)


def test_sliders_candidates_and_plan_by_keyboard_alone(page, address):
    page.goto(f"{address}#coloring10")
    ready(page)
    page.focus("#regions")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.panel figcaption').textContent.includes('8 regions')")
    ready(page)
    page.focus("#candidates li:nth-child(2) button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#candidates li:nth-child(2) button", "aria-pressed") == "true"
    assert page.locator(".panel h2", has_text="Candidate 2").count() == 1
    page.focus("#plan td[tabindex='0']")
    page.keyboard.press("ArrowRight")
    assert "of node 2" in page.inner_text("#plan-value")
    # Whatever can be reached has a name that a screen reader says.
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('input, select, textarea, button, svg[role=img], img')]
            .filter(each => each.checkVisibility())
            .filter(each => !(each.labels?.length || each.textContent.trim() || each.ariaLabel))
            .filter(each => !each.hasAttribute('alt'))
            .map(each => each.outerHTML)"""
    )
    assert nameless == []


def test_text_and_files_and_what_is_wrong_with_them(page, address):
    page.goto(f"{address}#qm9")
    ready(page)
    page.fill("#text", "CC(=O)N ethanamide")
    page.click("button[type=submit]")
    page.wait_for_function("() => document.querySelector('#candidates code').textContent === 'CC(N)=O'")
    assert page.inner_text("#verdict") == "Exactly right"
    page.fill("#text", "<b>nothing</b> at all")
    page.click("button[type=submit]")
    page.wait_for_selector("#error:visible")
    assert "'<b>nothing</b>' is not SMILES" in page.inner_text("#error")
    assert not page.is_visible("#answer")
    page.set_input_files("#file", {"name": "two.smi", "mimeType": "text/plain", "buffer": b"CCO\nCC=O\n"})
    page.wait_for_selector("#rows:visible")
    page.select_option("#row", "2")
    page.wait_for_function("() => document.querySelector('#candidates code').textContent === 'CC=O'")
    assert not page.is_visible("#error")
    page.select_option("#model", "points")
    page.wait_for_function("() => document.getElementById('timings').textContent.startsWith('points:')")
    page.fill("#text", "points = 3")
    page.click("button[type=submit]")
    page.wait_for_selector("#error:visible")
    assert page.inner_text("#error").startswith('A row is JSON, as {"points": ...}, and this begins with')
    page.select_option("#model", "coloring10")
    page.wait_for_selector("#error", state="hidden")
    page.set_input_files("#file", {"name": "../x.png", "mimeType": "image/png", "buffer": b"no picture"})
    page.wait_for_selector("#error:visible")
    assert "not a picture" in page.inner_text("#error")


def test_it_fits_a_phone(browser, address):
    with browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark") as context:
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        page.goto(f"{address}#ms2scaffold")
        ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(part) for part in background[4:-1].split(",")) < 60
        keep(page, "phone-dark")


BAD_FILES = {
    "coloring20": ("notes.png", b"no picture", "not a picture"),
    "fingerprint2molecule": ("picture.smi", b"\x89PNG\r\n\x1a\n\xff\xfe", "not text"),
    "ms2scaffold": ("empty.mgf", b"BEGIN IONS\nEND IONS\n", "empty.mgf"),
    "points": ("rows.jsonl", b'{"other": 1}\n', "rows.jsonl has no column"),
}


def test_files_that_cannot_be_used_are_sentences_on_the_page(page, address):
    page.goto(address)
    ready(page)
    for model, (name, content, words) in BAD_FILES.items():
        page.select_option("#model", model)
        page.wait_for_function(
            "name => document.getElementById('timings').textContent.startsWith(name + ':')", arg=model
        )
        ready(page)
        page.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": content})
        page.wait_for_selector("#error:visible")
        assert words in page.inner_text("#error")
        assert not page.is_visible("#answer")
        assert page.inner_text("#error").endswith(".")
    keep(page, "bad-file")
