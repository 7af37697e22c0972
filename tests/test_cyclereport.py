# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cyclereport as a user meets it: files in, text, JSON, drawings, pages out.

CUMEM_CYCLEREPORT names another build of the program, e.g. a sanitized one.
"""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import growth_leaks  # noqa: E402
import leak_file  # noqa: E402
import memory_leaks  # noqa: E402

SCHEMA = pathlib.Path(__file__).parent.parent / "reports" / "leak.schema.json"
MIB = 1 << 20


run, error_of, save = leak_file.run, leak_file.error_of, leak_file.save
EXAMPLE = leak_file.EXAMPLE


@pytest.fixture
def leak(tmp_path):
    """The document of REPORT.md's example, on disk: its path."""
    path = tmp_path / "leak-r3-n7-4711.json"
    path.write_text(json.dumps(leak_file.example()))
    return path


def test_example_of_the_report(leak, tmp_path):
    assert run(leak.name, cwd=tmp_path) == EXAMPLE
    assert run.error == "cyclereport: wrote cycle-r3-n7-4711.html\n"
    page = tmp_path / "cycle-r3-n7-4711.html"
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_page_is_named_after_the_input(tmp_path):
    for name, page in [("leak.json", "cycle.html"),
                       ("leak-7.json", "cycle-7.html"),
                       ("other.json", "cycle.html"),
                       ("leak-.json", "cycle.html")]:
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        save(folder / name, leak_file.example())
        run(f"{folder.name}/{name}", cwd=tmp_path)
        assert sorted(p.name for p in folder.iterdir()) == sorted([name, page])


def test_same_input_gives_same_bytes(leak, tmp_path):
    for kind in ("text", "json", "dot", "svg", "html"):
        first = run(leak.name, "--format", kind, cwd=tmp_path)
        assert first and first == run(leak.name, "--format", kind,
                                      cwd=tmp_path)


def test_json_reads_back_equal(leak, tmp_path):
    once = run(leak.name, "--format", "json", cwd=tmp_path)
    again = run("-", "--format", "json", cwd=tmp_path, stdin=once.encode())
    assert once == again
    assert json.loads(once)["cycles"][0]["advice"].startswith("capture")


def test_json_follows_its_schema(leak, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(run(leak.name, "--format", "json", cwd=tmp_path))
    jsonschema.validate(document, schema)
    assert document["format"] == "cumem-leak" and document["version"] == 1
    document["cycles"][0]["class"] = "wrong"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


OUT_OF_MEMORY = """\
memory cuda:0 (140 GiB): torch 134 GiB (9.0 GiB cached, 96 MiB pending free, 3.2
         GiB in private pools), cupy 1.2 GiB, outside the frameworks 2.3 GiB,
         other processes 612 MiB, free 1.7 GiB
   why   8.0 GiB asked, 8.4 GiB cached in pieces of at most 384 MiB: fragmented;
         common pool: 1214 segments, 93 % used, 119.8 of 122.3 GiB requested
   fix   run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
   held  12 GiB by C++ alone: 8.4 GiB model.py:88 Block.forward: x =...; +2 more
"""


def test_out_of_memory_on_an_h200(tmp_path):
    """The fixture: written once by memory_leaks.oom()."""
    jsonschema = pytest.importorskip("jsonschema")
    path = pathlib.Path(__file__).parent / "oom_h200.leak.json"
    text = run(path, "--format", "text", cwd=tmp_path)
    assert OUT_OF_MEMORY in text
    assert text.index("#5 ") < text.index("memory cuda:0") \
        < text.index("hidden: ")
    assert "   alloc (in backward, waiting thread) train.py:58 main" in text
    once = run(path, "--format", "json", cwd=tmp_path)
    assert once == run("-", "--format", "json", cwd=tmp_path,
                       stdin=once.encode())
    document = json.loads(once)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    original = json.loads(path.read_text())
    assert document["devices"] == original["devices"]
    assert len(document["held"]) == 5


def test_memory_is_shown_where_it_is_asked_for(tmp_path):
    well = save(tmp_path / "well.json", memory_leaks.well().data)
    assert "\nmemory " not in run(well.name, "--format", "text",
                                  cwd=tmp_path)
    text = run(well.name, "--format", "text", "--all", cwd=tmp_path)
    assert "\nmemory cuda:1 (140 GiB): other processes 600 MiB, free" in text
    alone = save(tmp_path / "alone.json", memory_leaks.oom_only().data)
    assert run(alone.name, "--format", "text", cwd=tmp_path) == (
        "cumem [rank 3]: no dead cycle holds device memory\n"
        + OUT_OF_MEMORY)


def test_json_is_not_thinned_by_what_text_hides(leak, tmp_path):
    document = json.loads(run(leak.name, "--format", "json", "--top", 1,
                              "--min-bytes", "1GiB", cwd=tmp_path))
    assert len(document["cycles"]) == 17


def test_all_shows_everything(leak, tmp_path):
    text = run(leak.name, "--all", "--format", "text", cwd=tmp_path)
    assert text.count(" DEAD CYCLE") == 17
    assert "#2 DEAD CYCLE in tensordict, 2.0 MiB" in text
    assert "known https://github.com/pytorch/tensordict/issues/1187" in text
    assert "hidden" not in text


def test_top_and_min_bytes(leak, tmp_path):
    text = run(leak.name, "--all", "--top", "2", "--format=text",
               cwd=tmp_path)
    assert text.count(" DEAD CYCLE") == 2
    assert "hidden: 15 more (at most 2.0 MiB) | cyclereport leak-r3" in text
    text = run(leak.name, "--min-bytes", "6GiB", "--format=text", cwd=tmp_path)
    assert "hidden: 2 in libraries (tensordict), 15 under 6 GiB\n" in text
    assert "#1" not in text


def test_all_frames(leak, tmp_path):
    text = run(leak.name, "--all-frames", "--format=text", cwd=tmp_path)
    at = text.index("   alloc")
    assert text[at:].splitlines()[:4] == [
        "   alloc model.py:112 Encoder.forward: h = self.proj(x)",
        "         linear.py:116 Linear.forward: return F.linear(x)",
        "         model.py:112 Encoder.forward: h = self.proj(x)",
        "         train.py:80 main: model(batch)"]


def test_fail_on(leak, tmp_path):
    run(leak.name, "--format=text", "--fail-on", "cycle", cwd=tmp_path,
        code=1)
    run(leak.name, "--format=text", "--fail-on", "cycle,growth",
        cwd=tmp_path, code=1)
    run(leak.name, "--format=text", "--fail-on", "growth", cwd=tmp_path)
    clean = save(tmp_path / "clean.json",
                 leak_file.example() | {"cycles": []})
    text = run(clean.name, "--format=text", "--fail-on", "cycle",
               cwd=tmp_path)
    assert text == "cumem [rank 3]: no dead cycle holds device memory\n"


def test_baseline_leaves_out_what_was_there(leak, tmp_path):
    text = run(leak.name, "--baseline", leak.name, "--format=text",
               "--fail-on=cycle", cwd=tmp_path)
    assert text == ("cumem [rank 3]: only known dead cycles hold device memory "
                    "(17 suppressed)\n")
    run(leak.name, "--baseline", leak.name, "--format=html", "-o", "page.html",
        cwd=tmp_path)
    assert "<h1>Only known dead cycles hold device memory.</h1>" in \
        (tmp_path / "page.html").read_text()
    earlier = leak_file.example()
    del earlier["cycles"][0]
    save(tmp_path / "earlier.json", earlier)
    text = run(leak.name, "--baseline", "earlier.json", "--format=text",
               cwd=tmp_path)
    assert text == EXAMPLE.replace(
        "2 in libraries (tensordict), 14 under 1 MiB\n"
        "cyclereport --all", "16 suppressed | cyclereport")


@pytest.mark.parametrize("rule", [
    "fingerprint 3f9a2c", "fingerprint 3F9A2C0000000001", "type Trainer",
    "type __main__.Tr*", "file train.py", "file */model.py",
    "file home/*/model.py", "function Encoder.*", "function forward",
    "  type   Trainer\t# behind a blank\n# on its own line", "fingerprint 3f9a2c # known",
])
def test_suppressions(leak, tmp_path, rule):
    (tmp_path / "cumem.supp").write_text(f"# ours\n\n{rule}\n")
    text = run(leak.name, "--suppressions", "cumem.supp", "--format=text",
               cwd=tmp_path)
    assert "[3f9a2c]" not in text and "1 suppressed" in text
    assert run.error == ""


@pytest.mark.parametrize("rule", ["fingerprint 4f", "type Train", "file rain.py",
                                  "function Enc", "type train.py"])
def test_suppressions_do_not_reach_too_far(leak, tmp_path, rule):
    (tmp_path / "s").write_text(rule)
    assert run(leak.name, "--suppressions", "s", "--format=text",
               cwd=tmp_path) == EXAMPLE


def test_bad_suppressions_are_one_warning(leak, tmp_path):
    (tmp_path / "s").write_text("type\nfingerprint xyz\ntype A\nsilence all\n")
    assert run(leak.name, "--suppressions", "s", "--format=text",
               cwd=tmp_path) == EXAMPLE
    assert run.error == ("cyclereport: s: line 1, 2, 4: expected fingerprint,"
                         " type, file or function and what it is\n")


def test_help_and_version(tmp_path):
    text = run("--help", cwd=tmp_path)
    assert text.startswith("usage: cyclereport FILE")
    for option in ("--output", "--format", "--top", "--min-bytes", "--all",
                   "--all-frames", "--fail-on", "--suppressions",
                   "--baseline", "--force", "--version", "--help"):
        assert option in text
    assert re.fullmatch(r"cyclereport \d+\.\d+\.\d+\n",
                        run("--version", cwd=tmp_path))


@pytest.mark.parametrize("arguments, words", [
    ([], "expected the name of a leak.json"),
    (["a.json", "b.json"], 'expected one file, also got "b.json"'),
    (["a.json", "--colour"], 'there is no option "--colour"'),
    (["a.json", "--format"], "--format needs a value"),
    (["a.json", "--format", "pdf"], '--format "pdf": expected html, svg, dot, json or text'),
    (["a.json", "--top", "0"], '--top "0": expected a whole number from 1'),
    (["a.json", "--top", "-1"], '--top "-1": expected a whole number from 1'),
    (["a.json", "--min-bytes", "1XiB"], '--min-bytes "1XiB": expected bytes'),
    (["a.json", "--fail-on", "cycles"], '--fail-on "cycles": expected cycle, growth'),
    (["missing.json"], "missing.json: No such file or directory"),
    (["."], ".: Is a directory"),
])
def test_bad_usage_is_one_line(tmp_path, arguments, words):
    assert words in error_of(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_standard_input_and_output(leak, tmp_path):
    document = leak.read_bytes()
    text = run("-", cwd=tmp_path, stdin=document)
    assert text.splitlines()[1] == EXAMPLE.splitlines()[1]
    assert "cyclereport leak" not in text
    page = run("-", "-o", "-", cwd=tmp_path, stdin=document)
    assert page.startswith("<!DOCTYPE html>") and run.error == ""
    assert run(leak.name, "--format=html", cwd=tmp_path).startswith("<!DOC")
    assert [p.name for p in tmp_path.iterdir()] == [leak.name]


def test_colour_only_on_a_terminal(leak, tmp_path):
    def on_terminal(**environment):
        parent, child = pty.openpty()
        subprocess.run([leak_file.program(), leak.name, "--format=text"],
                       cwd=tmp_path, stdout=child, check=True,
                       env={"TERM": "xterm"} | environment)
        os.close(child)
        text = os.read(parent, 100000).decode()
        os.close(parent)
        return text.replace("\r\n", "\n")

    coloured = on_terminal()
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == EXAMPLE
    assert on_terminal(NO_COLOR="1") == EXAMPLE
    assert on_terminal(TERM="dumb") == EXAMPLE
    assert "\x1b" not in run(leak.name, "--format=text", cwd=tmp_path)


@pytest.mark.parametrize("key, expected", [
    ("format", '"cumem-leak"'), ("version", "a whole number from 1"),
    ("cycles", "an array"), ("growth", "an array")])
def test_what_does_not_say_that_it_is_clean_is_refused(tmp_path, key, expected):
    document = leak_file.example() | {"cycles": [], "growth": []}
    save(tmp_path / "x.json", document)
    run("x.json", "--format=text", "--fail-on=cycle,growth", cwd=tmp_path)
    lost = {name: value for name, value in document.items() if name != key}
    for broken in lost, lost | {key: None}:
        save(tmp_path / "x.json", broken)
        assert error_of("x.json", "--format=text", cwd=tmp_path) == \
            f"x.json: {key}: expected {expected}"


def test_unknown_keys_are_ignored(leak, tmp_path):
    document = leak_file.example()
    document["later"] = {"x": [1]}
    for key in ("vertices", "edges", "cycles", "storages", "sites"):
        document[key][0]["later"] = {"deep": [[]]}
    save(leak, document)
    assert run(leak.name, "--format=text", cwd=tmp_path) == EXAMPLE


# --- what the text makes of odd documents -----------------------------------


def text_of(tmp_path, change, *options):
    document = leak_file.example()
    document["cycles"] = document["cycles"][:1]
    change(document)
    save(tmp_path / "leak.json", document)
    return run("leak.json", "--format=text", *options, cwd=tmp_path)


def line_of(text, label):
    return next(line for line in text.splitlines()
                if line.startswith(f"   {label} "))


def test_classes_of_findings(tmp_path):
    def title(**changes):
        text = text_of(tmp_path, lambda d: d["cycles"][0].update(changes))
        return text.splitlines()[1].split("  ")[0]

    assert title(count=1, peak_bytes=16 * MIB) == "#1 DEAD CYCLE, 16 MiB"
    assert title(count=3, peak_bytes=16 * MIB) == \
        "#1 DEAD CYCLE x3, 16 MiB each"
    assert title(count=3, peak_bytes=16 * MIB, **{"class": "frozen"}) == \
        "#1 DEAD CYCLE (frozen) x3, 16 MiB each"
    assert title(count=1, **{"class": "uncollectable"}) == \
        "#1 UNCOLLECTABLE CYCLE, 16 MiB"
    assert title(count=1, **{"class": "finalizer"}) == "#1 DEAD CYCLE, 16 MiB"
    text = text_of(tmp_path, lambda d: d["cycles"][0].update(
        {"class": "resurrected"}), "--all")
    assert text == "cumem [rank 3]: no dead cycle holds device memory\n"


def test_what_lives_on_elsewhere_is_not_dead(tmp_path):
    nothing = {"bytes_each": 0, "peak_bytes": 0, "total_bytes": 0,
               "payload": [], "also_held_elsewhere": [1]}
    text = text_of(tmp_path, lambda d: d["cycles"][0].update(nothing))
    assert text == "cumem [rank 3]: no dead cycle holds device memory\n"
    text = text_of(tmp_path, lambda d: d["cycles"][0].update(nothing),
                   "--all")
    assert "#1 DEAD CYCLE x412, 0 B each  " in text


def test_headers(tmp_path):
    def header(*devices):
        def change(document):
            document["devices"] = list(devices)
            document["rank"] = None
        return text_of(tmp_path, change).split("#1")[0].splitlines()

    cuda = {"name": "cuda:1", "peak_allocated": 0, "dead_peak": 8 * MIB}
    cpu = {"name": "cpu", "dead_peak": 8 * MIB}
    assert header(cpu) == ["cumem: up to 8.0 MiB of cpu tensors was dead at "
                           "one moment (no GPU here)"]
    assert header(cuda) == ["cumem: up to 8.0 MiB of cuda:1 was dead at one "
                            "moment"]
    assert header(cuda | {"peak_allocated": 64 * MIB}, cpu) == [
        "cumem: up to 8.0 of 64.0 MiB at cuda:1's peak was dead",
        "cumem: up to 8.0 MiB of cpu tensors was dead at one moment"]
    assert header(cuda | {"peak_allocated": 80 << 30}) == [
        "cumem: up to 8.0 MiB of 80.0 GiB at cuda:1's peak was dead"]
    assert header() == ["cumem: 1 dead cycle holds device memory"]


def test_uncertain_and_unknown_cuts(tmp_path):
    place = leak_file.example()["edges"][3]["made_at"][0]

    def change(document):
        places = [dict(place, certain=False, line=line) for line in
                  (57, 61, 8)]
        places[2]["filename"] = "/home/x/model.py"
        document["edges"][3]["made_at"] = places

    text = text_of(tmp_path, change)
    assert line_of(text, "cut") == (
        "   cut   probably train.py:57  self.cb = lambda ... "
        "(or train.py:61, model.py:8)")
    text = text_of(tmp_path, lambda d: d["cycles"][0].update(
        cut=[], no_cut_reason="the store is in compiled code"))
    assert line_of(text, "cut") == \
        "   cut   not known: the store is in compiled code"


def test_equal_base_names_are_told_apart(tmp_path):
    def change(document):
        document["edges"][3]["made_at"][0]["filename"] = "/home/y/z/model.py"

    text = text_of(tmp_path, change)
    assert line_of(text, "cut").startswith("   cut   z/model.py:57  ")
    assert line_of(text, "alloc").startswith("   alloc x/model.py:112 ")


def test_long_lines_are_cut_at_80_columns(tmp_path):
    def change(document):
        for frame in (document["edges"][3]["made_at"][0],
                      document["sites"][0]["frames"][1]):
            frame["source"] = "\tself.value = " + "x + " * 100

    text = text_of(tmp_path, change)
    for label in ("cut", "alloc"):
        line = line_of(text, label)
        assert len(line) == 80 and line.endswith("...")
        assert "\t" not in line


def test_advice_is_wrapped_never_cut(tmp_path):
    advice = " ".join(f"word{i}" for i in range(60))
    text = text_of(tmp_path, lambda d: d["cycles"][0].update(advice=advice))
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "   fix" in line)
    last = next(i for i, line in enumerate(lines) if "   path" in line)
    assert all(len(line) <= 80 for line in lines[first:last])
    assert all(line[:9].strip() in ("", "fix") for line in lines[first:last])
    assert " ".join(line[9:] for line in lines[first:last]) == advice


def chain(count):
    """A document with one ring of `count` objects, the tensor on the first."""
    document = leak_file.example()
    document["vertices"] = [
        {"id": i, "annotation": f"m.Step{i}", "type": f"m.Step{i}",
         "kind": "object", "bytes": 1} for i in range(1, count + 1)]
    document["vertices"].append(
        dict(leak_file.example()["vertices"][5], id=count + 1))
    document["edges"] = [
        {"id": i, "annotation": ".next", "tail": i, "head": i % count + 1}
        for i in range(1, count + 1)]
    document["edges"].append({"id": count + 1, "annotation": ".x", "tail": 1,
                              "head": count + 1})
    document["storages"][0]["vertices"] = [count + 1]
    document["cycles"] = [document["cycles"][0]]
    document["cycles"][0].update(vertices=list(range(1, count + 1)),
                                 cut=[count], rule="back_link")
    return document


def test_long_paths_lose_steps_in_the_middle(tmp_path):
    save(tmp_path / "leak.json", chain(50))
    line = line_of(run("leak.json", "--format=text", cwd=tmp_path), "path")
    assert len(line) <= 160
    assert line.startswith("   path  Step1 .next > ")
    assert " > ... > " in line and line.count("...") == 1
    assert line.endswith("Step50 .next ~~> Step1 .x > Tensor [64, 512] "
                         "float32")


def test_a_ring_of_a_hundred_thousand(tmp_path):
    save(tmp_path / "leak.json", chain(100_000))
    text = run("leak.json", "--format=text", cwd=tmp_path)
    assert "   path  " in text


# ----- growth ------------------------------------------------------------------

GROWTH = """\
cumem [rank 3]: cuda:0 grows by 4.0 MiB per iteration; full in about 54 min
#1 LEAK +4.0 MiB per iteration since iteration 3; full in about 1950 iterations (54 min)
   held  train.py:80 main: local `losses` (list, 997 items) > loss > grad_fn
   fix   append `loss.item()` instead: a loss keeps its whole graph
   alloc train.py:41 step: loss = criterion(model(batch), target)
#2 LINGERING 97 MiB of gradients kept through every forward since iteration 1
   held  probably train.py:60 main:
         local `model` (ResNet) > ... > .grad (Tensor)
   fix   call `optimizer.zero_grad(set_to_none=True)` before the forward pass
   alloc (in backward, waiting thread) train.py:42 step: loss.backward()
#3 GROWING +1.0 MiB per iteration since iteration 960 (61 % sure)       [000003]
   held  `job.model.encoder` (Encoder) > ... > ['k12'] (Tensor)
   alloc model.py:88 Encoder.forward: self.cache[key] = x.detach()
cyclereport job.json
"""


@pytest.fixture
def job(tmp_path):
    return save(tmp_path / "job.json", growth_leaks.job().data)


def test_growth_as_the_report_says_it(job, tmp_path):
    """REPORT.md's sentences, byte for byte."""
    assert run(job.name, "--format=text", cwd=tmp_path) == GROWTH


def test_the_page_keeps_where_they_pile_up(tmp_path):
    document = growth_leaks.job().data
    document["growth"] = document["growth"][:1]
    document["growth"][0].update(holder_at=30, holder=growth_leaks.holder(
        ("train.py:80 main", ""), *((f"dict of {i}", f".k{i}") for i in range(1, 60))))
    page = run(save(tmp_path / "leak.json", document).name, "--format=html", cwd=tmp_path)
    (step,) = re.findall('<li class="suspect">.*?</li>', page)
    assert "dict, 30 items" in step and "they pile up here" in step
    assert re.findall("(.. more steps)", page) == ["22 more steps", "21 more steps"]
    (row,) = re.findall("train.py:80 main: .*?</td>", page)
    assert ".k3 (dict, 3 items) \u2026 \u203a .k30 (dict, 30 items) \u2026" in row


def test_growth_reads_back_and_follows_the_schema(job, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    changed = json.loads(job.read_text())
    changed["timeline"]["slices_since"] = 900
    job.write_text(json.dumps(changed))
    once = run(job.name, "--format", "json", cwd=tmp_path)
    assert once == run("-", "--format", "json", cwd=tmp_path,
                       stdin=once.encode())
    document, original = json.loads(once), json.loads(job.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    jsonschema.validate(original, json.loads(SCHEMA.read_text()))
    for row in document["growth"] + original["growth"]:
        for place in row["made_at"]:
            place.setdefault("library", False)
    key = lambda row: row["fingerprint"]  # noqa: E731
    assert sorted(document["growth"], key=key) \
        == sorted(original["growth"], key=key)
    assert document["timeline"] == original["timeline"]
    assert document["collector"] == original["collector"]
    assert document["looks"] == original["looks"]
    document["growth"][0]["verdict"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))


def test_fail_on_growth(job, tmp_path):
    def fails(document, *options, on="growth", code):
        save(tmp_path / "x.json", document)
        run("x.json", "--format=text", f"--fail-on={on}", *options,
            cwd=tmp_path, code=code)

    fails(growth_leaks.job().data, code=1)
    fails(growth_leaks.job().data, on="cycle", code=0)
    fails(growth_leaks.job().data, on="cycle,growth", code=1)
    fails(growth_leaks.both().data, "--top=1", code=1)
    fails(growth_leaks.both().data, "--top=1", on="cycle", code=1)
    fails(growth_leaks.job().data, "--min-bytes=5GiB", code=0)
    for verdict, code in [("leak", 1), ("lingering", 1), ("growing", 0),
                          ("settled", 0), ("ok", 0)]:
        document = growth_leaks.job().data
        document["growth"] = document["growth"][:1]
        document["growth"][0]["verdict"] = verdict
        fails(document, code=code)


def test_growth_of_a_baseline_is_left_out(job, tmp_path):
    earlier = growth_leaks.job()
    del earlier.data["growth"][1]
    save(tmp_path / "earlier.json", earlier.data)
    text = run(job.name, "--baseline=earlier.json", "--format=text",
               "--fail-on=growth", cwd=tmp_path, code=1)
    assert "LEAK" not in text and "GROWING" not in text
    assert "#1 LINGERING 97 MiB" in text and "2 suppressed" in text


@pytest.mark.parametrize("rule,left", [
    ("fingerprint 7d3a9e", ["LINGERING", "GROWING"]),
    ("function step", ["GROWING"]), ("function main", ["GROWING"]),
    ("file model.py", ["LEAK", "LINGERING"]), ("type list",
     ["LEAK", "LINGERING", "GROWING"])])
def test_growth_is_suppressed(job, tmp_path, rule, left):
    (tmp_path / "s").write_text(rule)
    text = run(job.name, "--suppressions=s", "--format=text", cwd=tmp_path)
    assert [line.split()[1] for line in text.splitlines()
            if line.startswith("#")] == left


def test_growth_hidden_and_shown(job, tmp_path):
    text = run(job.name, "--min-bytes=50MiB", "--top=1", "--format=text", cwd=tmp_path)
    assert text.count("\n#") == 1
    assert "hidden: 1 more (at most 97 MiB), 1 under 50 MiB | cyclereport --all job.json\n" in text
    text = run(job.name, "--all", "--format=text", cwd=tmp_path)
    assert [line.split()[1] for line in text.splitlines()
            if line.startswith("#")] == ["LEAK", "SETTLED", "OK",
                                         "LINGERING", "GROWING"]


def test_refused_growth_names_the_place(job, tmp_path):
    document = growth_leaks.job().data
    document["growth"][2]["series"][5] = [1, 2]
    save(tmp_path / "bad.json", document)
    assert error_of("bad.json", cwd=tmp_path) \
        == "bad.json: growth[2].series[5]: expected [iteration, count, bytes]"
