# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What cyclereport must survive: rows O1-O3, O9 and O11-O15 of the catalogue
of failures, each test named after its row."""

import copy
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import growth_leaks  # noqa: E402
import leak_file  # noqa: E402

run, error_of, save = leak_file.run, leak_file.error_of, leak_file.save
EXAMPLE = leak_file.EXAMPLE


@pytest.fixture
def leak(tmp_path):
    """The document of REPORT.md's example, on disk: its path."""
    path = tmp_path / "leak-r3-n7-4711.json"
    path.write_text(json.dumps(leak_file.example()))
    return path


def test_O1_cut_file_is_refused_wherever_it_is_cut(leak, tmp_path):
    whole = leak.read_bytes()
    assert whole.endswith(b"}")
    for end in [0, *range(9, len(whole) - 1, 97), len(whole) - 2, len(whole) - 1]:
        words = error_of("-", "--format=text", cwd=tmp_path,
                         stdin=whole[:end])
        assert words == f"standard input: byte {end}: the file ends too early"
    for end in range(1, 9):
        words = error_of("-", "--format=text", cwd=tmp_path, stdin=whole[:end])
        assert re.fullmatch(r"standard input: byte \d+: .*", words)
    for odd in (b'{"format":nul', whole.replace(b"[", b"", 1)):
        words = error_of("-", "--format=text", cwd=tmp_path, stdin=odd)
        assert ("ends too early" in words) == odd.endswith(b"nul"), words


def test_O1_damaged_file_is_not_told_as_cut(tmp_path):
    """As cumem writes it, on lines: the place is where a quote or a bracket is missing."""
    whole = json.dumps(leak_file.example(), separators=(",", ":"))
    whole = whole.replace('{"format"', '{"format"', 1).replace(',"', ',\n"').encode()
    for mark in (b'"host"', b"]"):
        at = whole.index(mark)
        words = error_of("-", "--format=text", cwd=tmp_path, stdin=whole[:at] + whole[at + 1:])
        found = re.fullmatch(r"standard input: byte (\d+): this is no JSON; .*", words)
        assert found and abs(int(found[1]) - at) < 64, (words, at)


def test_O1_killed_while_writing_leaves_old_or_new(leak, tmp_path):
    run(leak.name, cwd=tmp_path)
    page = tmp_path / "cycle-r3-n7-4711.html"
    before = page.read_bytes()
    for delay in (0, 0.001, 0.003, 0.01, 0.03):
        child = subprocess.Popen([leak_file.program(), leak.name],
                                 cwd=tmp_path, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            child.wait(timeout=delay or None if delay else 0.0001)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        assert page.read_bytes() == before


def test_O2_disk_full_leaves_nothing(leak, tmp_path):
    """A file size limit of the kernel stands for a full disk."""
    import resource
    import signal

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = subprocess.run([leak_file.program(), leak.name, "-o", "x.html"],
                          cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr == "cyclereport: x.html: File too large\n"
    assert [p.name for p in tmp_path.iterdir()] == [leak.name]


@pytest.mark.parametrize("option", ["--format=json", "--help", "--version"])
def test_O2_full_device(leak, tmp_path, option):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [leak_file.program(), leak.name, option], cwd=tmp_path,
            stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == \
        "cyclereport: standard output: No space left on device\n"


HOSTILE = ["</script>", "<!--", "]]>", '"><img src=x onerror=alert(1)>',
           "\u2028\u2029", "`backtick`", "$LISTENERS", "%s%n%d", "\u202etxt",
           "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x07\x08\x9b31m",
           "\udcff".encode("utf-8", "surrogatepass"), "\u2066\u2069",
           "a\nb\rc", "\u200b\ufeff", "x" * 5000, "\u0000"]


def hostile(text):
    """The example with `text` in every place that holds text."""
    def fill(value, key=""):
        if isinstance(value, dict):
            return {k: fill(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [fill(v, key) for v in value]
        keep = ("format", "fingerprint", "address", "class", "trigger",
                "kind", "rule", "stream", "shared_with")
        return text if isinstance(value, str) and key not in keep else value

    return fill(leak_file.example())


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_O15_nothing_that_a_terminal_obeys(tmp_path, text):
    raw = text if isinstance(text, str) else "@@"
    bytes_ = json.dumps(hostile(raw), ensure_ascii=False).encode()
    if not isinstance(text, str):
        bytes_ = bytes_.replace(b"@@", text)
    (tmp_path / "leak.json").write_bytes(bytes_)
    out = run("leak.json", "--format=text", "--all", "--all-frames",
              cwd=tmp_path)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e"
                     "\u2060-\u206f\ufeff]", out) is None
    again = run("leak.json", "--format=json", cwd=tmp_path)
    json.loads(again)


@pytest.mark.parametrize("text", HOSTILE[:10], ids=range(10))
def test_O3_labels_add_no_element(tmp_path, text):
    from html.parser import HTMLParser

    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.tags = []

        def handle_starttag(self, tag, attrs):
            self.tags.append((tag, sorted(name for name, _ in attrs)))

    def tags_of(document):
        save(tmp_path / "leak.json", document)
        parser = Tags()
        parser.feed(run("leak.json", "-o", "-", "--format=html",
                        cwd=tmp_path))
        outside_drawings = [tag for tag, _ in parser.tags]
        return (outside_drawings.count("script"),
                outside_drawings.count("img"),
                [a for _, names in parser.tags for a in names
                 if a.startswith("on")])

    assert tags_of(hostile(text)) == tags_of(hostile("plain"))


def edit(path, value):
    """A change of the example: the value at a path of keys."""
    document = copy.deepcopy(leak_file.example())
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


@pytest.mark.parametrize("path, value, words", [
    (["version"], 2, "version: 2 is newer than 1, the newest that"),
    (["version"], 0, "version: expected a whole number from 1"),
    (["version"], "1", "version: expected a whole number from 0 to 2^53"),
    (["version"], KeyError, "version: expected a whole number from 1"),
    (["format"], "other", 'format: expected "cumem-leak"'),
    (["format"], 1, 'format: expected "cumem-leak"'),
    (["vertices"], {}, "vertices: expected an array"),
    (["vertices", 2], 3, "vertices[2]: expected an object"),
    (["vertices", 2, "id"], 1, "vertices[2].id: vertex 1 is there twice"),
    (["vertices", 2, "bytes"], -1, "vertices[2].bytes: expected a whole"),
    (["vertices", 2, "bytes"], 1.5, "vertices[2].bytes: expected a whole"),
    (["vertices", 2, "bytes"], 2**60, "vertices[2].bytes: expected a whole"),
    (["vertices", 2, "bytes"], "1", "vertices[2].bytes: expected a whole"),
    (["vertices", 2, "annotation"], [], "vertices[2].annotation: expected a text"),
    (["vertices", 5, "site"], 9, "vertices[5].site: site 9 does not exist"),
    (["edges", 1, "tail"], 99, "edges[1].tail: vertex 99 does not exist"),
    (["edges", 1, "head"], KeyError, "edges[1].head: expected the number of a vertex"),
    (["edges", 3, "made_at", 0], 1, "edges[3].made_at[0]: expected an object"),
    (["edges", 3, "made_at", 0, "line"], -4, "edges[3].made_at[0].line: expected"),
    (["edges", 3, "made_at", 0, "certain"], 1, "edges[3].made_at[0].certain: expected true or false"),
    (["sites", 0, "user_frame"], 3, "sites[0].user_frame: frame 3 does not exist"),
    (["storages", 0, "address"], "0xzz", "storages[0].address: expected a hexadecimal"),
    (["storages", 0, "address"], 12, "storages[0].address: expected a hexadecimal"),
    (["storages", 0, "vertices", 0], 77, "storages[0].vertices[0]: vertex 77 does not exist"),
    (["cycles", 0, "cut", 0], 17, "cycles[0].cut[0]: edge 17 does not exist"),
    (["cycles", 3, "vertices", 0], 0, "cycles[3].vertices[0]: vertex 0 does not exist"),
    (["cycles", 0, "payload", 0], "1", "cycles[0].payload[0]: expected the number of a storage"),
    (["cycles", 0, "fingerprint"], "0123456789abcdef0", "cycles[0].fingerprint: expected a hexadecimal"),
    (["cycles", 0, "class"], "dead", "cycles[0].class: expected collectable, finalizer,"),
    (["cycles"], None, "cycles: expected an array"),
    (["growth"], "none", "growth: expected an array"),
    (["storages", 0, "names"], "x", "storages[0].names: expected an array"),
    (["cycles", 0, "count"], 1e300, "cycles[0].count: expected a whole"),
    (["cycles", 0, "time"], -5, "cycles[0].time: expected seconds"),
    (["cycles", 1, "library"], "torch", "cycles[1].library: expected an object"),
    (["cycles", 0, "shared_with"], [1], "cycles[0].shared_with[0]: expected a hexadecimal"),
    (["lost"], 3, "lost: expected an object"),
    (["rank"], -2, "rank: expected a whole"),
])
def test_O12_wrong_values_are_named(tmp_path, path, value, words):
    save(tmp_path / "leak.json", edit(path, value))
    assert error_of("leak.json", cwd=tmp_path).startswith(
        "leak.json: " + words)
    assert [p.name for p in tmp_path.iterdir()] == ["leak.json"]


@pytest.mark.parametrize("text", [
    "\x1b[31mred", "\x1b]0;title\x07", "a\nb#9 LEAK forged", "\r\x08\x7f",
    "\u202eevil", "\u2028", "%s%n", "`", "x" * 3000, "\u4e2d" * 90], ids=range(10))
def test_O15_growth_is_harmless_on_a_terminal(tmp_path, text):
    """In every place that the traced program chooses."""
    save(tmp_path / "x.json", growth_leaks.hostile(text).data)
    out = run("x.json", "--format=text", "--all", "--all-frames",
              cwd=tmp_path)
    assert not set(out.encode()) & (set(range(32)) - {10} | {127})
    assert "\u202e" not in out and "\u2028" not in out
    titles = [line for line in out.splitlines() if line.startswith("#")]
    assert [title.split()[1] for title in titles] == [
        "LEAK", "LINGERING", "GROWING", "SETTLED"]
    held = [line for line in out.splitlines() if line.startswith("   held")]
    assert len(held) == 4
    if len(text) < 40:  # names of files are never cut
        assert all(len(line) <= 80 for line in held)


def test_O12_self_loops_and_any_ids(tmp_path):
    document = leak_file.example()
    number = {v["id"]: 10**15 - 7 * v["id"] for v in document["vertices"]}
    for vertex in document["vertices"]:
        vertex["id"] = number[vertex["id"]]
    for edge in document["edges"]:
        edge["tail"] = number[edge["tail"]]
        edge["head"] = number[edge["head"]]
    document["edges"].append(dict(document["edges"][0], id=99,
                                  tail=number[1], head=number[1]))
    for cycle in document["cycles"]:
        cycle["vertices"] = [number[v] for v in cycle["vertices"]]
    for storage in document["storages"]:
        storage["vertices"] = [number[v] for v in storage["vertices"]]
    save(tmp_path / "leak-r3-n7-4711.json", document)
    assert run("leak-r3-n7-4711.json", "--format=text",
               cwd=tmp_path) == EXAMPLE


def test_O11_depth_and_syntax(tmp_path):
    def refused(bytes_):
        return error_of("-", cwd=tmp_path, stdin=bytes_)

    assert refused(b"[" * 100_000) == \
        "standard input: byte 64: nested deeper than 64"
    assert refused(b'{"a":' * 70) == \
        "standard input: byte 320: nested deeper than 64"
    assert "ends too early" in refused(b'{"1":1,')
    assert "ends too early" in refused(b"")
    assert refused(b"{} x") == ("standard input: byte 3: this is no JSON; "
                                "expected a leak.json that cumem wrote")
    assert refused(b"[1]") == "standard input: expected a JSON object"
    assert refused(b'{"FORMAT":"cumem-leak","version":1}') == \
        'standard input: format: expected "cumem-leak"'
    assert "no JSON" in refused(b'{"format":nul}')
    run("-", "--format=text", cwd=tmp_path,
        stdin=b'{"format":"cumem-leak","version":1,"cycles":[],"growth":[]}  \n')


@pytest.mark.parametrize("known", [True, False], ids=["known", "alone"])
@pytest.mark.parametrize("style", [["html"], ["text", "--all"]], ids=lambda style: style[0])
def test_O9_forty_thousand_devices_with_what_each_holds(tmp_path, style, known):
    """Half a second where each device's are found at once, half a minute where among all.
    The text has each of them; the page is never over 5 MB, and counts the others."""
    document = leak_file.example()
    names = [f"cuda:{i}" for i in range(40_000)]
    document["devices"] = [{"name": name, "free": 1 << 30} for name in names if known]
    document["held"] = [
        {"device": name, "framework": framework, "library": library, "bytes": 1 << 20, "count": 1}
        for framework, library in (("torch", ""), ("driver", "libnccl.so.2")) for name in names]
    save(tmp_path / "leak.json", document)
    start = time.monotonic()
    out = run("leak.json", f"--format={style[0]}", *style[1:], "-o", "-", cwd=tmp_path)
    assert time.monotonic() - start < 5
    shown = out.count("libnccl.so.2")
    if style[0] == "html":
        assert len(out.encode()) < 5 << 20 and out.endswith("</html>\n") and shown > 100
        shown += sum(map(int, re.findall(r"(\d+) more devices in the report", out)))
    assert shown == len(names)


def test_O9_forty_thousand_devices_with_dead_memory(tmp_path):
    """Each has a line and a bar at the top; the one that ran out is shown wherever it stands."""
    document = leak_file.example()
    device = document["devices"][0]
    document["devices"] = [dict(device, name=f"{i}" + 300 * "x", free=1 << 30, asked_bytes=(i == 39_000) << 20)
                           for i in range(40_000)]  # fmt: skip
    document["exhausted"] = {"device": document["devices"][39_000]["name"]}
    save(tmp_path / "leak.json", document)
    page = run("leak.json", "--format=html", "-o", "-", cwd=tmp_path)
    assert len(page.encode()) < 5 << 20
    assert page.count('<div class="device">') == 65 and page.count(" when memory ran out</span>") == 1
    assert re.findall(r"(\d+) more devices in the report", page)[:2] == ["39936", "39935"]
    memory = page[page.index('id="memory"'):]
    assert "<h3>39000xxx" in memory and "more devices in the report" in memory


def test_O9_long_names_and_advice(tmp_path):
    """Linear in their length: minutes each, where every rest of them is read to its end."""
    document = growth_leaks.job().data
    document["growth"][0]["advice"] = "a " * 4_000_000
    for name, frame in zip("xyz", (site["frames"][-1] for site in document["sites"])):
        frame["filename"] = name + "/a" * 500_000
    document["growth"][0]["made_at"][0]["filename"] = "/a" * 500_000
    save(tmp_path / "leak.json", document)
    start = time.monotonic()
    out = run("leak.json", "--format=text", "-o", "-", cwd=tmp_path)
    assert time.monotonic() - start < 5
    assert out.count(" a") > 3_000_000


def test_O9_no_timeline_of_more_devices_than_are_written(tmp_path):
    document = growth_leaks.job().data
    document["timeline"]["devices"] = [{"name": f"cuda:{i}"} for i in range(65)]
    save(tmp_path / "leak.json", document)
    assert error_of("leak.json", cwd=tmp_path) == \
        "leak.json: timeline.devices: expected at most 64"


def test_O13_data_never_becomes_a_file_name(tmp_path):
    inside = tmp_path / "in"
    inside.mkdir()
    document = hostile("../../evil/leak.json")
    save(inside / "leak.json", document)
    run("in/leak.json", cwd=tmp_path)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) \
        == ["in", "in/cycle.html", "in/leak.json"]


def test_O13_existing_files_are_kept(leak, tmp_path):
    page = tmp_path / "cycle-r3-n7-4711.html"
    page.write_text("mine\n")
    run(leak.name, cwd=tmp_path, code=2)
    assert run.error == ("cyclereport: cycle-r3-n7-4711.html exists and is no page or "
                         "drawing of cyclereport's (-f overwrites it)\n")
    assert page.read_text() == "mine\n"
    run(leak.name, "-f", cwd=tmp_path)
    assert page.read_text().startswith("<!DOCTYPE html>")
    before = page.stat().st_ino
    run(leak.name, cwd=tmp_path)  # its own page is replaced
    assert page.stat().st_ino != before


def test_O13_what_is_read_is_never_overwritten(leak, tmp_path):
    (tmp_path / "rules").write_text("none\n")
    (tmp_path / "again.json").symlink_to(leak.name)
    (tmp_path / "before.json").write_bytes(leak.read_bytes())
    read = {name: (tmp_path / name).read_bytes() for name in (leak.name, "before.json", "rules")}
    for output in (leak.name, f"./{leak.name}", "again.json", "before.json", "rules"):
        for style in ([], ["--format=json"]):
            run(leak.name, *style, "--baseline=before.json", "--suppressions=rules", "-f", "-o", output,
                cwd=tmp_path, code=2)
            assert run.error == (f"cyclereport: {output} is read and would be overwritten"
                                 " (-o takes another name)\n")
    assert {name: (tmp_path / name).read_bytes() for name in read} == read
    run(leak.name, "--baseline=before.json", "-f", "-o", "page.html", cwd=tmp_path)


@pytest.mark.parametrize("mine", [
    "cyclereport leak.json > out.txt\n", "cumem: up to 5 MiB was dead\nepoch 1\n",
    '{"format":"cumem-leak","version":1}\n', "", "<!-- written by cyclereport --> and more\n"])
def test_O13_what_only_speaks_of_us_is_kept(leak, tmp_path, mine):
    kept = tmp_path / "kept"
    kept.write_text(mine)
    for style in "html", "text", "json", "svg", "dot":
        run(leak.name, f"--format={style}", "-o", "kept", cwd=tmp_path, code=2)
    assert kept.read_text() == mine


def test_O13_links_are_not_followed(leak, tmp_path):
    target = tmp_path / "target"
    target.write_text("<!-- cyclereport -->\n")
    page = tmp_path / "cycle-r3-n7-4711.html"
    page.symlink_to(target)
    run(leak.name, cwd=tmp_path, code=2)
    assert page.is_symlink()
    run(leak.name, "-f", cwd=tmp_path)
    assert not page.is_symlink()
    assert target.read_text() == "<!-- cyclereport -->\n"
    dangling = tmp_path / "dangling.html"
    dangling.symlink_to(tmp_path / "nowhere")
    assert run(leak.name, "-o", dangling.name, cwd=tmp_path, code=2) == ""
    assert not (tmp_path / "nowhere").exists()


def test_O13_devices_and_odd_outputs(leak, tmp_path):
    run(leak.name, "--format=text", "-o", "/dev/null", cwd=tmp_path)
    assert pathlib.Path("/dev/null").is_char_device()
    assert run(leak.name, "-o", "no/such/folder.html", cwd=tmp_path, code=2) == ""
    assert "No such file or directory" in run.error
    assert run(leak.name, "-o", tmp_path, cwd=tmp_path, code=2) == ""
    assert "Is a directory" in run.error
    assert run(leak.name, "-o", "x" * 300, cwd=tmp_path, code=2) == ""
    assert "File name too long" in run.error


def test_O14_only_the_owner_may_read(leak, tmp_path):
    before = os.umask(0)
    try:
        run(leak.name, cwd=tmp_path)
        run(leak.name, "--format=json", "-o", "x.json", cwd=tmp_path)
    finally:
        os.umask(before)
    for name in ("cycle-r3-n7-4711.html", "x.json"):
        mode = (tmp_path / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_O14_input_names_are_not_opened(tmp_path):
    fifo = tmp_path / "source.py"
    os.mkfifo(fifo)  # opening it would wait for ever
    save(tmp_path / "leak.json", hostile(str(fifo)))
    run("leak.json", cwd=tmp_path)
