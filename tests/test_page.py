# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The page in a real browser: complete without JavaScript, quiet (no console
message, no request), obeying nothing that a traced program wrote, and usable
by keyboard.  Screenshots stay beside the build (or in $CUMEM_ARTIFACTS).

Rows of RELIABILITY.md: O3, O4, O5, O7, O8, O9.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import leak_file  # noqa: E402
import memory_leaks  # noqa: E402
import page_leaks  # noqa: E402

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<!-- x", "]]>", "--></article></main>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "' autofocus onfocus='document.title=1", "</style><style>*{display:none}",
    "</pre></code></details>", "</title><h1>", "<svg onload=alert(1)>",
    "&#60;b&#62; &lt;i&gt; &amp;", "\u2028line\u2029", "`backtick", "${x}",
    "$LISTENERS", "%s %n %", "\u202egnp.exe", "\u2066iso\u2069",
    "\x1b]0;title\x07", "\x01\x02\x7f\x85", "\ufffe \uffff \ufdd0",
    "javascript:alert(1)", "https://example.org/x.js", "\\N \\G \\",
    "\u0441\u043b\u043e\u0432\u043e \u4e2d\u6587 \U0001f642",
]


def run(leak, tmp_path, *options, name="leak.json"):
    """The bytes that cyclereport writes for a document."""
    path = tmp_path / name
    path.write_text(leak.json())
    done = subprocess.run([leak_file.program(), str(path), *options],
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def write_page(leak, tmp_path, *options):
    page = run(leak, tmp_path, "--format", "html", *options)
    path = tmp_path / "cycle.html"
    path.write_bytes(page)
    return path


def artefacts():
    named = os.environ.get("CUMEM_ARTIFACTS")
    build = pathlib.Path(leak_file.program()).resolve().parents[3]
    if not named and not (build / "CMakeCache.txt").exists():
        return None
    folder = pathlib.Path(named or build / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as player:
        chromium = player.chromium.launch(executable_path=CHROMIUM,
                                          args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser):
    """show(path, ...): the page, opened; at the end it must have been quiet:
    no console message, no error, no request but for itself."""
    contexts, noise = [], []

    def open_page(path, **options):
        options = {"viewport": {"width": 1366, "height": 768}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda request: noise.append(request.url)
                if request.url.split("#")[0] != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert noise == []


def shot(page, name):
    folder = artefacts()
    if folder:
        page.screenshot(path=folder / f"{name}.png")


def visible(page, selector="article"):
    return [element.get_attribute("id")
            for element in page.query_selector_all(selector)
            if element.is_visible()]


# ----- reading ---------------------------------------------------------------

def test_complete_without_javascript(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path),
                java_script_enabled=False)
    assert page.inner_text("h1") == \
        "At least 5.1 of 71.4 GiB at cuda:0's peak (iteration 412) was dead."
    assert visible(page) == [f"finding-{i}" for i in range(1, 6)]
    assert len(page.query_selector_all("article")) == 5 + 2 + 14
    assert len(page.query_selector_all("article figure svg")) >= 5
    assert not page.is_visible("#search")
    assert not page.is_visible(".copy >> nth=0")
    page.click("text=2 in libraries >> nth=1")
    assert len(visible(page)) == 7
    shot(page, "page-without-javascript")


def test_what_is_seen_first(show, tmp_path):
    """Without scrolling: how much, which line, what to change."""
    page = show(write_page(page_leaks.real(), tmp_path))
    assert visible(page) == ["finding-1"]
    for selector in ("h1", "#finding-1 h2", "#finding-1 .cut h3",
                     "#finding-1 .fix", "#finding-1 .code .del",
                     "#finding-1 .code .add", "#finding-1 .ladder .suspect",
                     "#finding-1 figure svg"):
        box = page.query_selector(selector).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 768, selector
    assert "train.py:57" in page.inner_text("#finding-1 .cut h3")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    shot(page, "page")
    shot(show(write_page(page_leaks.real(), tmp_path), color_scheme="dark"),
         "page-dark")


def test_excerpt_is_a_diff(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    lines = page.inner_text("#finding-1 .code").splitlines()
    assert [int(line[:2]) for line in lines if line[:1].isdigit()] \
        == [55, 56, 57, 58, 59]
    text = page.inner_text("#finding-1 .code")
    assert "- self.cb = lambda o: self.store(o)" in text
    assert "+ self_ref = weakref.ref(self)" in text
    assert "+ self.cb = lambda o: self_ref().store(o)" in text


def test_path_is_a_ladder(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    steps = [step.inner_text() for step in
             page.query_selector_all("#finding-1 .ladder li code")]
    assert steps == ["Trainer .cb", "<lambda>", "cell self",
                     "Trainer .acts[0]", "Tensor [64, 65536] float32"]
    assert page.inner_text("#finding-1 .ladder u") == "cell self"
    style = page.evaluate("getComputedStyle(document.querySelector("
                          "'#finding-1 .ladder u')).textDecorationStyle")
    assert style == "wavy"


def test_unknown_line_says_why(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    page.click("text=place not known")
    text = page.inner_text("article.on")
    assert "not known" in text and "C fields of ext.Handle" in text
    assert "Handle" in page.inner_text("nav a[aria-current]")  # of many such each has a name


def test_narrow_and_cpu_and_empty(show, tmp_path):
    narrow = show(write_page(page_leaks.real(), tmp_path),
                  viewport={"width": 420, "height": 800})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 420
    shot(narrow, "page-narrow")
    page = show(write_page(page_leaks.cpu(), tmp_path))
    assert page.inner_text("h1").startswith("Up to 8.0 MiB of cpu tensors")
    assert page.query_selector(".bar") is None
    page = show(write_page(page_leaks.nothing(), tmp_path))
    assert page.inner_text("h1") == "No dead cycle holds device memory."
    shot(page, "page-empty")


def test_long_names_do_not_widen_the_page(show, tmp_path):
    page = show(write_page(page_leaks.hostile("x" * 400), tmp_path, "--all"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    shot(page, "page-long-names")


def test_print(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    page.emulate_media(media="print")
    assert len(visible(page)) >= 5
    assert not page.is_visible("nav")


def test_contrast(show, tmp_path):
    """Text against its background, WCAG AA, in both schemes."""
    for scheme in ("light", "dark"):
        page = show(write_page(page_leaks.real(), tmp_path),
                    color_scheme=scheme)
        worst = page.evaluate("""() => {
          const parse = text => text.match(/[0-9.]+/g).map(Number);
          const light = c => { const [r, g, b] = c.slice(0, 3).map(v => {
            v /= 255;
            return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
          }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          let worst = [99, ""];
          for (const element of document.querySelectorAll("article.on *, nav *")) {
            if (![...element.childNodes].some(n => n.nodeType === 3 &&
                n.data.trim()) || element.closest("svg") ||
                !element.offsetParent) continue;
            let at = element, back = [0, 0, 0, 0];
            while (at && !(back[3] > 0)) {
              back = parse(getComputedStyle(at).backgroundColor);
              if (back.length === 3) back.push(1);
              at = at.parentElement;
            }
            const a = light(parse(getComputedStyle(element).color));
            const b = light(back);
            const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
            if (ratio < worst[0]) worst = [ratio, element.outerHTML];
          }
          return worst;
        }""")
        assert worst[0] >= 4.5, (scheme, worst)


# ----- memory ----------------------------------------------------------------

def test_memory_without_javascript(show, tmp_path):
    """Why, the way out, who holds what: all of it in the first screen."""
    page = show(write_page(memory_leaks.oom_only(), tmp_path),
                java_script_enabled=False)
    assert "in pieces of at most 384 MiB: fragmented" \
        in page.inner_text(".top .why")
    assert "expandable_segments:True" in page.inner_text(".top .way")
    assert [row.split("\t") for row in page.inner_text(
        "#memory table >> nth=0").splitlines()][2:] == [
        ["torch", "125 GiB", "9.0 GiB", "96 MiB", "134 GiB"],
        ["cupy", "1.0 GiB", "200 MiB", "", "1.2 GiB"],
        ["outside the frameworks", "", "", "", "2.3 GiB"],
        ["other processes", "", "", "", "612 MiB"],
        ["free", "", "", "", "1.7 GiB"],
        ["the device", "", "", "", "140 GiB"]]
    assert "common in pieces" in page.inner_text("#memory .bad")
    held = page.inner_text("#memory .where >> nth=0")
    assert "8.4 GiB\t192\ttorch\tmodel.py:88 Block.forward" in held
    assert "in backward, waiting thread" in held
    assert "libnccl.so.2" in page.inner_text("#memory .where >> nth=1")
    for selector in (".top .why", "#memory table >> nth=0", ".chart"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] <= 768, selector
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    shot(page, "page-memory")
    shot(show(write_page(memory_leaks.oom_only(), tmp_path),
              color_scheme="dark"), "page-memory-dark")


def test_pools_that_nobody_asked_for(show, tmp_path):
    page = show(write_page(memory_leaks.oom_only(unasked=True, pools=[]),
                           tmp_path))
    assert "the program's own recorder of torch is on" \
        in page.inner_text("#memory")


def test_bar_when_memory_ran_out(show, tmp_path):
    page = show(write_page(memory_leaks.oom(), tmp_path))
    assert [item.inner_text() for item in
            page.query_selector_all(".legend li")] == [
        "5.1 GiB dead", "121 GiB live", "9.0 GiB cached by the allocator",
        "96 MiB freed, but a stream still uses it",
        "2.3 GiB outside the frameworks", "612 MiB other processes",
        "1.7 GiB free"]
    assert page.inner_text(".device .name") == "cuda:0 when memory ran out"
    stack = page.inner_text("#finding-1 .alloc")
    assert "16 MiB in a block of 18 MiB, stream 0x55d0c7a1b2f0, " \
        "thread 4742, pool (0, 1)" in stack
    assert "another thread allocated it" in stack
    assert stack.index("loss.backward()") < stack.index("The object was made")
    shot(page, "page-out-of-memory")


def test_memory_when_all_is_well(show, tmp_path):
    page = show(write_page(memory_leaks.well(), tmp_path))
    assert page.query_selector(".why") is None
    assert page.inner_text(".device .name >> nth=0") == "cuda:0 at its peak"
    assert len(page.query_selector_all("#memory h3")) == 2
    narrow = show(write_page(memory_leaks.oom(), tmp_path),
                  viewport={"width": 420, "height": 800})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 420


# ----- using -----------------------------------------------------------------

def test_keyboard(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    page.keyboard.press("ArrowDown")
    assert visible(page) == ["finding-2"]
    assert page.url.endswith("#finding-2")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert visible(page) == ["finding-1"]
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    assert visible(page) == ["finding-21"]
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")


def test_search(show, tmp_path):
    page = show(write_page(page_leaks.real(), tmp_path))
    page.keyboard.press("/")
    page.keyboard.type("valueerror")
    assert page.inner_text("#matches") == "1 of 21"
    assert visible(page) == ["finding-4"]
    page.keyboard.press("Escape")
    assert page.inner_text("#matches") == ""
    page.keyboard.press("/")
    page.keyboard.type("graphmodule")
    assert len(visible(page, "nav li")) == 2
    page.fill("#search", "nowhere to be found")
    assert page.inner_text("#matches") == "0 of 21"
    page.fill("#search", "")
    page.select_option("#kind", label="back link")
    assert page.inner_text("#matches") == "3 of 21"
    shot(page, "page-filtered")


def test_link_to_a_finding(show, tmp_path):
    path = write_page(page_leaks.real(), tmp_path)
    page = show(path)
    page.goto(path.as_uri() + "#finding-3")
    assert visible(page) == ["finding-3"]
    page.click("nav a >> nth=1")
    assert visible(page) == ["finding-2"]


def test_copy_as_text(show, tmp_path):
    path = write_page(page_leaks.real(), tmp_path)
    page = show(path, permissions=["clipboard-read", "clipboard-write"])
    page.click("article.on .copy")
    page.wait_for_function(
        "document.querySelector('article.on .copy').textContent == 'Copied'")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("#1 DEAD CYCLE x412, 16 MiB each, at least 5.1 GiB")
    assert "   cut   train.py:57  self.cb = lambda o: self.store(o)" in text
    summary = run(page_leaks.real(), tmp_path, "--format", "text").decode()
    assert text.strip() in summary


def test_copy_without_permission(show, tmp_path):
    """The way that file:// pages of other browsers take."""
    page = show(write_page(page_leaks.real(), tmp_path))
    page.evaluate("Object.defineProperty(navigator, 'clipboard', "
                  "{value: undefined})")
    page.click("article.on .copy")
    page.wait_for_function(
        "document.querySelector('article.on .copy').textContent == 'Copied'")


# ----- what a traced program may write ----------------------------------------

COUNT = """() => { const count = {};
  for (const e of document.querySelectorAll('*'))
    count[e.tagName] = (count[e.tagName] || 0) + 1;
  return count; }"""
ATTRIBUTES = """() => [...new Set([...document.querySelectorAll('*')].flatMap(
  e => e.getAttributeNames()))].sort()"""


@pytest.fixture(scope="module")
def benign(browser, tmp_path_factory):
    """What a page of harmless text consists of."""
    path = write_page(page_leaks.hostile("benign"),
                      tmp_path_factory.mktemp("benign"), "--all")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page.evaluate(COUNT), page.evaluate(ATTRIBUTES), page.title()
    page.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_O3_hostile_text_adds_no_element(show, benign, tmp_path, text):
    """O3: in every place that the traced program chooses."""
    page = show(write_page(page_leaks.hostile(text), tmp_path, "--all"))
    assert (page.evaluate(COUNT), page.evaluate(ATTRIBUTES),
            page.title()) == benign
    assert "owned" not in page.title()


@pytest.mark.parametrize("text", HOSTILE)
def test_O3_hostile_memory_adds_no_element(show, tmp_path, text):
    """O3, in the account of memory."""
    counts = []
    for chosen in ("benign", text):
        page = show(write_page(memory_leaks.hostile(chosen), tmp_path,
                               "--all"))
        counts.append((page.evaluate(COUNT), page.evaluate(ATTRIBUTES),
                       page.title()))
    assert counts[0] == counts[1]


def test_O4_policy_and_links(tmp_path):
    """O4: nothing from elsewhere, nothing inline but what is named."""
    page = write_page(page_leaks.real(), tmp_path).read_text()
    assert page.startswith("<!DOCTYPE html><!-- written by cyclereport -->\n")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert re.fullmatch(
        r"default-src 'none'; base-uri 'none'; form-action 'none'; "
        r"style-src 'sha256-[\w+/=]{44}'; script-src 'sha256-[\w+/=]{44}'",
        policy)
    assert "http:" not in page and "https:" not in page
    assert not re.search(r'\b(src|srcset|style|on\w+)="', page)
    assert not re.search(r'href="[^#]', page)
    assert "localStorage" not in page and "eval(" not in page


def test_policy_stops_what_is_not_named(browser, tmp_path):
    """A script that got in all the same does not run."""
    path = write_page(page_leaks.real(), tmp_path)
    path.write_text(path.read_text().replace(
        "<main>", "<main><script>document.title='owned'</script>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() != "owned"
    page.close()


# ----- drawings and sizes ------------------------------------------------------

def lint(svg):
    done = subprocess.run(["xmllint", "--noout", "--nonet", "-"], input=svg,
                          capture_output=True)
    assert done.returncode == 0 and done.stderr == b"", done.stderr


@pytest.mark.skipif(shutil.which("xmllint") is None, reason="no xmllint here")
@pytest.mark.parametrize("text", HOSTILE)
def test_O7_every_drawing_is_xml(tmp_path, text):
    """O7: the file, and those of the page."""
    leak = page_leaks.hostile(text)
    lint(run(leak, tmp_path, "--format", "svg", "--all"))
    page = run(leak, tmp_path, "--format", "html", "--all")
    drawings = re.findall(rb'<svg class="drawing".*?</svg>', page, re.S)
    assert len(drawings) == 2
    for drawing in drawings:
        lint(drawing)


@pytest.mark.skipif(shutil.which("dot") is None, reason="no dot here")
@pytest.mark.parametrize("text", HOSTILE)
def test_O8_dot_accepts_the_dot(tmp_path, text):
    """O8: the program reads what was written with the library."""
    graph = run(page_leaks.hostile(text), tmp_path, "--format", "dot", "--all")
    done = subprocess.run(["dot", "-Tplain"], input=graph,
                          capture_output=True)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    assert len(re.findall(rb"^node ", done.stdout, re.M)) == 3


@pytest.mark.parametrize("leak", [
    page_leaks.ring(3000), page_leaks.random_graph(200),
    page_leaks.random_graph(300), page_leaks.hub(5000),
    page_leaks.parallel(1000)],
    ids=["ring", "random200", "random300", "hub", "parallel"])
def test_O5_hard_graphs(tmp_path, leak):
    """O5: what takes Graphviz hours takes us seconds."""
    start = time.monotonic()
    page = run(leak, tmp_path, "--format", "html")
    assert b'<svg class="drawing"' in page
    assert len(page) < 60000
    svg = run(leak, tmp_path, "--format", "svg")
    assert b"<rect" in svg
    assert time.monotonic() - start < 30


def test_O9_ten_thousand_cycles(show, tmp_path):
    """O9: folded by the traced process, or all different: a page that opens."""
    page = show(write_page(page_leaks.many(10000, folded=True), tmp_path))
    assert page.inner_text("#finding-1 h2") == "#1 Dead cycle \u00d72000"
    path = write_page(page_leaks.many(10000), tmp_path)
    assert path.stat().st_size <= 300 * 1024
    page = show(path)
    assert "9940 more in the report" in page.inner_text("nav")
    page.keyboard.press("ArrowDown")
    assert visible(page) == ["finding-2"]


def test_same_input_same_bytes(tmp_path):
    leak = page_leaks.real()
    assert run(leak, tmp_path, "--format", "html") \
        == run(leak, tmp_path, "--format", "html")


def test_real_report_is_valid(tmp_path):
    """The documents here are what the schema says."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = pathlib.Path(__file__).parent.parent / "reports" \
        / "leak.schema.json"
    for leak in (page_leaks.real(), page_leaks.cpu(), page_leaks.many(3),
                 memory_leaks.oom(), memory_leaks.well()):
        jsonschema.validate(leak.data, json.loads(schema.read_text()))
