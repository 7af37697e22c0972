# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a page shows of growth, in a real browser: the memory over the
iterations without JavaScript and with it, by mouse and by keyboard; tables,
panes and collections; quiet, bounded, and obeying nothing that a traced program
wrote.

Rows of RELIABILITY.md: O3, O4, O9.
"""

import json
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import growth_leaks  # noqa: E402
from growth_leaks import MIB  # noqa: E402
from test_page import (ATTRIBUTES, CHROMIUM, COUNT, HOSTILE, browser,  # noqa: E402,F401
                       run, shot, show, visible, write_page)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")

PLOT = ".over .plot"


def tell(page, plot=PLOT):
    """What the drawing reads: "iteration 7, 0.2 s: 1.9 GiB"."""
    return page.inner_text(
        f"figure:has({plot}) .reading" if plot != PLOT else ".over .reading")


def range_of(page):
    """The first and the last number under the drawing."""
    numbers = [int(text.text_content()) for text in
               page.query_selector_all(f"{PLOT} .marks text")]
    return numbers[0], numbers[-1]


def ready(page):
    page.wait_for_selector(f"{PLOT}.live")
    return page


# ----- reading ---------------------------------------------------------------

def test_seen_first_without_javascript(show, tmp_path):
    page = show(write_page(growth_leaks.job(), tmp_path),
                java_script_enabled=False)
    assert page.inner_text("h1") == \
        "cuda:0 grows by 4.0 MiB per iteration; full in about 54 min."
    assert page.title() == "cumem rank 3: growth"
    assert "over iterations 0 to 999, at most 5.8 GiB" \
        in page.inner_text(".over figcaption")
    assert "the optimizer\u2019s step" in page.inner_text(".over figcaption")
    assert [text.text_content() for text in
            page.query_selector_all(f"{PLOT} .y")] == ["0", "2 GiB", "4 GiB"]
    assert range_of(page) == (0, 800)
    assert len(page.query_selector_all(f"{PLOT} .layers path")) == 7
    assert page.inner_text(".over .legend li >> nth=4") \
        == "194 MiB optimizer state"
    assert page.text_content(f"{PLOT} text.slope") \
        == "#1 +4.0 MiB / iteration"
    assert tell(page) == "iteration 999, 32 s: 5.1 GiB"
    assert visible(page) == ["finding-1", "finding-2", "finding-3"]
    for selector in (PLOT, "#finding-1 h2", "#finding-1 .fix",
                     "#finding-1 .code .here", "#finding-1 .plot"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 768, selector
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    shot(page, "growth-without-javascript")


def test_layers_are_where_their_bytes_are(show, tmp_path):
    """The drawing is to scale: upper edges at the end, and over the whole."""
    page = show(write_page(growth_leaks.job(), tmp_path),
                java_script_enabled=False)
    point = growth_leaks.job().data["timeline"]["devices"][0]["points"]
    top = max(sum(row[2:]) for row in point)
    edges = []
    for path in page.query_selector_all(f"{PLOT} .layers path"):
        numbers = [int(n) for n in
                   re.findall(r"\d+", path.get_attribute("d"))]
        edges.append(numbers[-3])  # before "2000 1000Z"
    sums = [sum(point[-1][2:2 + n]) for n in range(7, 0, -1)]
    assert all(abs(edge - (1000 - 1000 * total / top)) <= 2
               for edge, total in zip(edges, sums))
    line = page.get_attribute(f"{PLOT} polyline.slope", "points").split()
    end = growth_leaks.job().data["growth"][0]["series"][-1]
    assert abs(int(line[-1]) - (1000 - 1000 * end[2] / top)) <= 1
    assert abs(int(line[-2]) - 2000 * end[0] / 999) <= 1


def test_pane_of_a_leak(show, tmp_path):
    page = show(write_page(growth_leaks.job(), tmp_path))
    text = page.inner_text("#finding-1")
    assert text.startswith("#1 Leak: activations")
    for part in ("+4.0 MiB per iteration", "3.9 GiB now in 997 blocks",
                 "since iteration 3", "99 % sure", "7d3a9e",
                 "full in about 1950 iterations (54 min)",
                 "Held at train.py:80 in main",
                 "17 autograd nodes behind it", "losses[0]"):
        assert part in text, part
    assert [step.inner_text() for step in page.query_selector_all(
        "#finding-1 .ladder li code")] == [
        "train.py:80 main local losses", "list, 997 items [0]", "loss",
        "grad_fn"]
    assert "they pile up here; 3.9 GiB go with it" \
        in page.inner_text("#finding-1 .ladder .suspect")
    assert page.inner_text("#finding-1 .code .here").split() \
        == ["80", "losses.append(loss)"]
    assert page.inner_text("#finding-1 .fix code") == "loss.item()"
    page.keyboard.press("ArrowDown")
    assert visible(page) == ["finding-2"]
    assert "In backward: another thread" in page.inner_text("#finding-2")
    page.select_option("#kind", label="lingering")
    assert page.inner_text("#matches") == "1 of 3"


def test_table_of_sites(show, tmp_path):
    page = show(write_page(growth_leaks.job(), tmp_path))
    rows = [row.inner_text().split("\t")
            for row in page.query_selector_all("#growth tbody tr")]
    assert rows[0][:3] == ["#1 leak", "+4.0 MiB", "3.9 GiB"]
    assert rows[0][4:] == [
        "activations", "train.py:41 step",
        "train.py:80 main: local losses (list, 997 items) \u203a loss"
        " \u203a grad_fn",
        "append loss.item() instead: a loss keeps its whole graph"]
    assert len(page.query_selector_all("#growth .spark")) == 5
    assert not page.is_visible("#growth tr.settled")
    page.click("text=2 that settled, or are well")
    assert page.is_visible("#growth tr.settled")
    page.click("#growth a >> text=#2")
    assert visible(page) == ["finding-2"]
    shot(page, "growth-table")


def test_collections_say_whether_to_keep_them(show, tmp_path):
    page = show(write_page(growth_leaks.job(), tmp_path))
    text = page.inner_text("footer")
    assert "4011 seen, 9.1 s in all, the longest 48.9 ms" in text
    assert "Looks: 3 scans, 41.0 ms, and 2 for growth, 500.0 ms: 0.4 %" in text
    assert "automatic collection may be switched off" in text
    assert page.query_selector(".gc .freed") is None
    page = show(write_page(growth_leaks.both(), tmp_path))
    assert "Leave automatic collection on until the cycles are cut: 4.7 GiB" \
        in page.inner_text("footer .advice")
    assert len(page.query_selector_all(".gc .freed")) > 10


def test_beside_cycles(show, tmp_path):
    """Both kinds by what they cost; a second device is folded."""
    page = ready(show(write_page(growth_leaks.both(), tmp_path)))
    assert page.inner_text("h1").startswith("Up to 5.1 of 71.4 GiB")
    assert page.inner_text(".also").startswith("cuda:0 grows by 4.0 MiB")
    assert [link.inner_text().split("\n")[0] for link in
            page.query_selector_all("nav a b")] == [
        "5.1 GiB", "3.9 GiB", "97 MiB", "40 MiB"]
    assert page.inner_text("#finding-1 h2").startswith("#1 Dead cycle")
    text = run(growth_leaks.both(), tmp_path, "--format=text").decode()
    assert text.index("#1 DEAD CYCLE") < text.index("#2 LEAK +4.0 MiB") \
        < text.index("#3 LINGERING 97 MiB of gradients")
    assert not page.is_visible("details figure .plot")
    page.click("text=cuda:1 over iterations")
    page.wait_for_selector("details .plot.live")
    shot(page, "growth-both")


def test_time_slices_say_so(show, tmp_path):
    page = ready(show(write_page(growth_leaks.slices(), tmp_path)))
    assert "no iteration was seen: slices of time" \
        in page.inner_text(".over figcaption")
    assert tell(page).startswith("time slice 299, ")


def test_slices_after_training_say_so(show, tmp_path):
    page = ready(show(write_page(growth_leaks.served(), tmp_path)))
    caption = page.inner_text(".over figcaption")
    assert "step; nothing stepped any more: from 41 on slices of time" in caption, caption
    leak, kept = page.locator("article").all()
    pace, = re.findall(r"\+(\S+ MiB) per second", leak.locator("ul.cost").inner_text())
    assert "since time slice 45 (at 1 s)" in leak.inner_text()
    assert f"#1 +{pace} / second" in page.locator(".over svg").first.text_content()
    assert f"+{pace}" in page.inner_text("#growth tr.leak") and "each second" in page.inner_text("#growth")
    assert "since iteration 1" in kept.inner_text() and "slice" not in kept.inner_text()
    facts = page.inner_text("footer dl")
    assert facts.split("iterations\n")[1].startswith("40\ntime slices\n260"), facts


def test_narrow_dark_and_print(show, tmp_path):
    path = write_page(growth_leaks.both(), tmp_path)
    narrow = ready(show(path, viewport={"width": 420, "height": 800}))
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 420
    shot(narrow, "growth-narrow")
    dark = ready(show(path, color_scheme="dark"))
    shot(dark, "growth-dark")
    dark.emulate_media(media="print")
    assert len(visible(dark)) == 4


# ----- using -----------------------------------------------------------------

def test_pointer_reads_every_category(show, tmp_path):
    page = ready(show(write_page(growth_leaks.job(), tmp_path)))
    box = page.locator(PLOT).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 450 / 999, box["y"] + 60)
    assert tell(page) == "iteration 450, 14.2 s: 2.9 GiB"
    row = growth_leaks.job().data["timeline"]["devices"][0]["points"][450]
    told = [key.inner_text() for key in
            page.query_selector_all(".over .legend b")]
    assert told[-1] == f"{row[2] // MIB} MiB"
    assert told[-2] == "0 B"  # no gradients while it evaluates
    assert told[0] == "512 MiB"
    assert page.get_attribute(f"{PLOT} .at", "visibility") == "visible"
    page.mouse.move(box["x"] + 50, box["y"] + 400)
    assert tell(page).startswith("iteration 999")


def test_drag_zooms(show, tmp_path):
    page = ready(show(write_page(growth_leaks.job(), tmp_path)))
    box = page.locator(PLOT).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60, steps=4)
    page.mouse.up()
    assert range_of(page) == (200, 400)
    # The scale is that of what is in sight.
    assert [text.text_content() for text in
            page.query_selector_all(f"{PLOT} .y")][-1] == "3 GiB"
    shot(page, "growth-zoomed")
    page.click(".over .all")
    assert range_of(page) == (0, 800)
    assert not page.is_visible(".over .all")
    page.mouse.move(box["x"] + 90, box["y"] + 60)
    page.mouse.down()
    page.mouse.up()
    assert range_of(page) == (0, 800)  # a click is no zoom


def test_keys_read_and_zoom(show, tmp_path):
    page = ready(show(write_page(growth_leaks.job(), tmp_path)))
    page.focus(PLOT)
    page.keyboard.press("Home")
    assert tell(page).startswith("iteration 0,")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    assert tell(page).startswith("iteration 7,")
    page.keyboard.press("Shift+ArrowRight")
    assert tell(page).startswith("iteration 107,")
    page.keyboard.press("+")
    assert range_of(page) == (0, 350)
    for _ in range(12):
        page.keyboard.press("+")
    first, last = range_of(page)
    assert first >= 105 and last <= 109
    for _ in range(5):
        page.keyboard.press("ArrowRight")  # out of sight: it moves along
    assert tell(page).startswith("iteration 112,")
    assert range_of(page)[1] >= 111
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert range_of(page) == (0, 800)
    page.keyboard.press("ArrowDown")  # still the findings'
    assert visible(page) == ["finding-2"]
    page.keyboard.press("?")
    assert "read, zoom, show all" in page.inner_text("#help")


def test_small_drawing_is_read_too(show, tmp_path):
    page = ready(show(write_page(growth_leaks.job(), tmp_path)))
    page.wait_for_selector("#finding-1 .plot.live")
    page.focus("#finding-1 .plot")
    page.keyboard.press("Home")
    assert page.inner_text("#finding-1 .reading") == "iteration 0: 0 B"
    page.keyboard.press("End")
    assert page.inner_text("#finding-1 .reading") == "iteration 996: 3.9 GiB"


# ----- safety ----------------------------------------------------------------

@pytest.mark.parametrize("text", HOSTILE)
def test_O3_hostile_growth_adds_no_element(show, tmp_path, text):
    """O3, in every place that the traced program chooses."""
    counts = []
    for chosen in ("benign", text):
        page = show(write_page(growth_leaks.hostile(chosen), tmp_path,
                               "--all"))
        page.wait_for_selector(f"{PLOT}.live")
        count = page.evaluate(COUNT)
        counts.append((count, page.evaluate(ATTRIBUTES), page.title()))
    assert counts[0] == counts[1]


def test_O4_policy_names_both_scripts(show, browser, tmp_path):
    """O4: nothing inline but what is named by its hash."""
    path = write_page(growth_leaks.both(), tmp_path)
    page = path.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert re.fullmatch(
        r"default-src 'none'; base-uri 'none'; form-action 'none'; "
        r"style-src 'sha256-[\w+/=]{44}'; "
        r"script-src 'sha256-[\w+/=]{44}' 'sha256-[\w+/=]{44}'", policy)
    assert "https:" not in page
    assert page.count("http:") == page.count('"http://www.w3.org/2000/svg"')
    assert not re.search(r'\b(src|srcset|style|on\w+)="', page)
    assert not re.search(r'href="[^#]', page)
    assert "localStorage" not in page and "eval(" not in page


# ----- sizes -----------------------------------------------------------------

def test_O9_ten_thousand_iterations_and_five_thousand_sites(show, tmp_path):
    """O9: bounded, opens at once, and is used as any other."""
    path = write_page(growth_leaks.many(), tmp_path)
    assert path.stat().st_size <= 600 * 1024
    page = show(path)
    took = page.evaluate(
        "performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < took < 3000, took
    ready(page)
    assert "at most" in page.inner_text(".over figcaption")
    assert range_of(page) == (0, 8000)
    box = page.locator(PLOT).bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    assert tell(page).startswith("iteration 23")
    assert "943 more in the report" in page.inner_text("nav")
    assert "903 more in the report" in page.inner_text("#growth")
    assert "4002 that settled, or are well" in page.inner_text("#growth")
    page.keyboard.press("ArrowDown")
    assert visible(page) == ["finding-2"]
    shot(page, "growth-many")


def test_numbers_at_the_edge(show, tmp_path):
    """The largest that a file can hold, one point, nothing but zeros."""
    leak = growth_leaks.job()
    most = 2**53
    device = leak.data["timeline"]["devices"][0]
    device["points"] = [[most - 2, 1e9] + [most] * 7,
                        [most, 2e9] + [most] * 7]
    leak.data["growth"][0]["series"] = [[0, 0, 0], [most, most, most]]
    ready(show(write_page(leak, tmp_path)))
    device["points"] = [[5, 1] + [MIB] * 7]
    ready(show(write_page(leak, tmp_path)))
    device["points"] = [[0, 0] + [0] * 7, [9, 9] + [0] * 7]
    page = show(write_page(leak, tmp_path))
    assert page.query_selector(".over") is None


def test_same_input_same_bytes(tmp_path):
    leak = growth_leaks.both()
    assert run(leak, tmp_path, "--format", "html") \
        == run(leak, tmp_path, "--format", "html")


def test_a_server_on_a_phone(show, tmp_path):
    """No iteration was seen, and no device but the host: the page speaks of slices, calls the
    device by its name, and is as wide as the screen."""
    leak = growth_leaks.slices()
    text = json.dumps(leak.data).replace("cuda:0", "cpu")
    leak.data = json.loads(text)
    leak.data["cycles"] = []
    leak.data["held"] = [{"device": "cpu", "framework": "torch", "site": None,
                          "bytes": MIB, "count": 3}]
    page = show(write_page(leak, tmp_path), viewport={"width": 390, "height": 844})
    assert page.inner_text("h1").startswith("cpu grows by ")
    assert page.inner_text("article.on figure >> xpath=../h3") == "Over the time slices"
    assert page.inner_text("#growth h2") == "What stays from time slice to time slice"
    assert "time slices" in page.inner_text("footer dl")
    assert page.query_selector(".memory .where") is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
