# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs whose memory grows although it is reachable, stays where it need
not, or does neither; what should be said of each stands beside it, and was
written before the detector.

Each runs twice: without cumem, seen by an oracle (growth_oracle.py: does it
really do what it claims?), and under CUMEM_WARN_CYCLES=1, both as forks of
processes that have imported torch (`make growth` runs them as a user does).
Output and exit code must be the same.  Any other holder fails, and so does any
alarm that is not expected.
"""

import copy
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import growth_case as case
import growth_oracle
import leak_file

NAMES = case.names()
TWINS = case.twins()
NO_LINE_SHARE = 0.10
HEALTHY = 10
MANY_LEAKS = 3
CONTROLS = ["P1_losses_list", "32_no_zero_grad"]
WITHOUT_A_LINE = {"45_nccl_comm": "NCCL's memory is no object's"}


def skip_unless_runnable(name):
    missing = case.what_is_missing(name)
    if missing is not None:
        pytest.skip(missing)


class Run:
    """A program under cumem, beside what the same printed without."""

    def __init__(self, path, findings, folder):
        self.path, self.folder = path, folder
        self.traced = case.run_preloaded(path, folder)
        self.judgement = case.judge(findings, case.read_report(folder), self.traced.stderr)
        self.is_healthy = not findings

    def check(self, observed):
        assert self.traced.returncode == 0, self.traced.stderr
        assert self.traced.stdout == self.plain_output(observed)
        assert self.judgement.problems() == []

    def plain_output(self, observed):
        """Of the run without; the oracle sees no GPU."""
        if self.path in observed:
            return observed[self.path]["output"]
        return case.run_program(self.path, self.folder).stdout


def key_of(item):
    """(name, is it the twin?) of a test's program."""
    label = item.callspec.params.get("label") or item.callspec.params["name"]
    fixed = label.startswith("fixed/") or item.function.__name__ == "test_advice_mends_it"
    return label.rpartition("/")[2], fixed


def selected(request, fixture):
    return [key_of(item) for item in request.session.items if item.module is request.module
            and fixture in item.fixturenames and hasattr(item, "callspec")]


@pytest.fixture(scope="module")
def observed(request):
    """What the oracle saw, by path, of the programs of all selected tests."""
    wanted = {case.program(*key) for key in selected(request, "observed")}
    wanted |= {case.program(name, fixed) for name in CONTROLS for fixed in (False, True)}
    return growth_oracle.observe_all([path for _, path, _ in case.programs_on_cpu()
                                      if path in wanted])


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The runs of all selected tests, some of them at a time."""
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    jobs = {}

    def start(name, fixed=False):
        if (name, fixed) not in jobs:
            findings = [] if fixed else case.expected_of(name)
            folder = tmp_path_factory.mktemp(name)
            jobs[name, fixed] = pool.submit(Run, case.program(name, fixed), findings, folder)
        return jobs[name, fixed].result

    for name, fixed in selected(request, "runs"):
        if case.what_is_missing(name) is None:
            start(name, fixed)
    yield lambda name, fixed=False: start(name, fixed)()
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", NAMES)
def test_growth_sample(name, runs, observed):
    skip_unless_runnable(name)
    runs(name).check(observed)


@pytest.mark.parametrize("name", TWINS)
def test_advice_mends_it(name, runs, observed):
    skip_unless_runnable(name)
    runs(name, fixed=True).check(observed)


def test_reports_follow_their_schema(runs):
    """As real processes wrote them."""
    pytest.importorskip("jsonschema")
    paths = [runs(name).folder / "leak.json" for name in NAMES
             if case.what_is_missing(name) is None]
    written = [path for path in paths if path.exists()]
    assert written
    assert [line for path in written for line in leak_file.breaches(path)] == []


def test_recall_and_false_alarms(runs, capsys):
    done = [runs(name) for name in NAMES
            if case.what_is_missing(name) is None]
    done += [runs(name, fixed=True) for name in TWINS if case.what_is_missing(name) is None]
    judgements = [run.judgement for run in done]
    with capsys.disabled():
        print("\n" + case.summary(judgements, sum(run.is_healthy for run in done)))
    found = sum(one.right for one in judgements)
    assert found > 0
    assert sum(len(one.false_alarms) for one in judgements) == 0
    assert sum(one.without_a_line for one in judgements) <= NO_LINE_SHARE * found


def findings_in(done):
    """What a process says, without the marks that its whole stacks have."""
    return re.sub(r"\[[0-9a-f]{6}\]", "", done.stderr)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_fork_says_what_a_process_of_its_own_says(name, runs, tmp_path):
    alone = case.run_observed(case.program(name), tmp_path)
    assert findings_in(runs(name).traced) == findings_in(alone) != ""


# The samples themselves.

@pytest.fixture(scope="module")
def seen(observed):
    return {label: (findings, observed[path]) for label, path, findings in case.programs_on_cpu()
            if path in observed}


LABELS = NAMES + [f"fixed/{name}" for name in TWINS]


@pytest.mark.parametrize("label", LABELS)
def test_program_does_what_it_claims(label, seen):
    """On the CPU: the lines, the sizes, and that nothing else grows."""
    name = label.rpartition("/")[2]
    if name in case.ON_GPU:
        pytest.skip("seen on a GPU alone")
    assert list(growth_oracle.problems_of(*seen[label])) == []


def test_oracle_sees_a_wrong_claim(seen):
    """Positive control: no leak expected, another line, another size."""
    leaking, staying = CONTROLS
    findings, observed = seen[leaking]
    (finding,) = findings
    elsewhere = {**finding, "alloc": [leaking + ".py:1 main"]}
    larger = {**finding, "bytes_per_iteration": [1 << 21, 1 << 22]}
    for wrong in ([], [elsewhere], [larger]):
        assert list(growth_oracle.problems_of(wrong, observed)) != []
    assert list(growth_oracle.problems_of(findings, seen["fixed/" + leaking][1])) != []
    lingering, observed = seen[staying]
    assert list(growth_oracle.problems_of([], observed)) != []
    assert list(growth_oracle.problems_of(lingering, seen["fixed/" + staying][1])) != []


def test_every_finding_has_a_mended_twin():
    assert {name for name in NAMES if case.expected_of(name)} == set(TWINS)


def test_there_are_healthy_programs_and_such_with_many_leaks():
    counts = [len(case.expected_of(name)) for name in NAMES]
    assert counts.count(0) >= HEALTHY
    assert sum(count >= MANY_LEAKS for count in counts) >= 2


def test_programs_know_nothing_of_cumem():
    for path in [*map(case.program, NAMES), *(case.program(name, True) for name in TWINS)]:
        assert "cumem" not in path.read_text(), path


@pytest.mark.parametrize("name", NAMES)
def test_expectations_are_whole(name):
    for finding in case.expected_of(name):
        assert {"verdict", "holder", "advice"} <= set(finding)
        assert finding["verdict"] in (*case.ALARMS, "cycle")
        assert "alloc" in finding or "category" in finding or finding["verdict"] == "cycle"
        assert "held" in finding or finding["verdict"] == "cycle" or name in WITHOUT_A_LINE


# The harness: reports as the detector is to write them, and wrong ones.

def frame_of(text):
    place, _, name = text.partition(" ")
    filename, _, line = place.partition(":")
    return {"filename": "/home/someone/" + filename, "line": int(line), "name": name,
            "source": ""}


def middle(limits):
    return (limits[0] + limits[1]) // 2


def write_growth(report, finding):
    site = len(report["sites"]) + 1
    report["sites"].append({"id": site, "user_frame": 0,
                            "frames": [frame_of(finding.get("alloc", ["none.py:1 f"])[0])]})
    report["growth"].append({
        "site": site, "verdict": finding["verdict"],
        "category": case.as_list(finding.get("category", "other"))[0],
        "holder": [{"annotation": text, "edge": ""} for text in finding["holder"]],
        "made_at": [frame_of(finding["held"][0])] if "held" in finding else [],
        "advice": "; ".join(case.as_list(finding["advice"])),
        "bytes_per_iteration": middle(finding.get("bytes_per_iteration", [0, 0])),
        "since_iteration": middle(finding.get("since_iteration", case.FIRST_TEN)),
        "bytes": middle(finding.get("bytes", [1 << 25, 1 << 25])),
        "names": finding.get("names", [])})


def write_cycle(report, finding):
    report["edges"].append({"id": 7, "annotation": finding["holder"][0]})
    report["cycles"].append({"class": finding["class"], "cut": [7], "advice": finding["advice"],
                             "bytes_each": middle(finding["bytes_each"]),
                             "peak_bytes": 8 * finding["bytes_each"][0]})


def right_report(name):
    report = {"sites": [], "edges": [], "cycles": [], "growth": []}
    for finding in case.expected_of(name):
        (write_cycle if finding["verdict"] == "cycle" else write_growth)(report, finding)
    return report


def judge_file(name, report, folder):
    """As a run does: through the file."""
    (folder / "leak.json").write_text(json.dumps(report))
    return case.judge(case.expected_of(name), case.read_report(folder))


@pytest.mark.parametrize("name", NAMES)
def test_right_report_passes(name, tmp_path):
    judgement = judge_file(name, right_report(name), tmp_path)
    assert judgement.problems() == []
    assert judgement.right == len(case.expected_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_empty_report_misses_all(name, tmp_path):
    judgement = case.judge(case.expected_of(name), case.read_report(tmp_path))
    assert len(judgement.missed) == len(case.expected_of(name))
    assert judgement.false_alarms == []


WRONG = {
    "another holder": lambda entry: entry.update(holder=[{"annotation": "self.cache", "edge": ""}]),
    "no holder": lambda entry: entry.update(holder=[]),
    "another line that holds": lambda entry: entry["made_at"][0].update(line=1),
    "other advice": lambda entry: entry.update(advice="buy memory"),
    "another category": lambda entry: entry.update(category="parameter"),
    "another rate": lambda entry: entry.update(bytes_per_iteration=1 << 30),
    "a later start": lambda entry: entry.update(since_iteration=39),
    "another verdict": lambda entry: entry.update(verdict="lingering"),
    "not yet sure": lambda entry: entry.update(verdict="growing"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_report_fails(what, tmp_path):
    report = right_report("P1_losses_list")
    WRONG[what](report["growth"][0])
    judgement = judge_file("P1_losses_list", report, tmp_path)
    assert judgement.problems() != [] and judgement.right == 0


@pytest.mark.parametrize("wrong", [
    {"growth": [{"site": None, "bytes": 2, "verdict": "ok", "category": ""}]},
    {"held": [{"site": 2, "bytes": 2}]}, {"storages": [{"site": None, "bytes": 2}]}])
def test_bytes_without_a_line_fail(wrong):
    report = {"sites": [{"id": 1, "frames": [{}]}, {"id": 2, "frames": []}], "edges": [], "cycles": [],
              "storages": [{"site": 1, "bytes": 99}],
              "growth": [{"site": None, "bytes": 9, "verdict": "ok", "category": leak_file.OUTSIDE}]}
    assert case.judge([], report).problems() == []
    for key, rows in wrong.items():
        report[key] = report.get(key, []) + rows
    assert case.judge([], report).problems() == ["2 of 101 bytes have no line that allocated them"]


def test_wrong_line_is_a_miss_and_a_false_alarm(tmp_path):
    report = right_report("P1_losses_list")
    report["sites"][0]["frames"][0]["line"] += 1
    judgement = judge_file("P1_losses_list", report, tmp_path)
    assert len(judgement.missed) == len(judgement.false_alarms) == 1


def test_lingering_is_judged_by_names_and_bytes(tmp_path):
    for wrong in ({"names": ["layer1.weight"]}, {"bytes": 1 << 21}):
        report = right_report("32_no_zero_grad")
        report["growth"][0].update(wrong)
        assert judge_file("32_no_zero_grad", report, tmp_path).right == 0


@pytest.mark.parametrize("verdict", case.ALARMS)
def test_alarm_on_a_healthy_program_fails(verdict, tmp_path):
    report = right_report("P1_losses_list")
    report["growth"][0]["verdict"] = verdict
    assert len(judge_file("T01_image_classifier", report, tmp_path).false_alarms) == 1


@pytest.mark.parametrize("change", [
    {"verdict": "settled"}, {"verdict": "ok"}, {"verdict": "growing"}, {"bytes": 1 << 19}])
def test_what_nobody_is_told_of_is_no_alarm(change, tmp_path):
    report = right_report("P1_losses_list")
    report["growth"][0].update(change)
    assert judge_file("T01_image_classifier", report, tmp_path).problems() == []


@pytest.mark.parametrize("name, alarms", [
    ("T01_image_classifier", 1), ("fixed/P1_losses_list", 1), ("24_activations_only", 1),
    ("P1_losses_list", 0)])
def test_what_was_told_and_taken_back_is_a_false_alarm(name, alarms):
    fixed = name.startswith("fixed/")
    findings = [] if fixed else case.expected_of(name)
    told = """cumem: cpu grows by 1.0 MiB per iteration
#1 LEAK +1.0 MiB per iteration since iteration 2                        [74928d]
   held  not known: #2 LEAK is another line

cumem: cpu grows by 1.0 MiB per iteration
#1 LEAK +1.0 MiB per iteration since iteration 2                        [74928d]
cumem: stopped growing: a.py:6 main, at 31 MiB (told as a leak before)
"""
    report = {**case.NOTHING} if fixed else right_report(name)
    assert case.judge(findings, report, told.replace("#1", "[rank 0] #1")).false_alarms \
        == ["false alarm: told, #1 LEAK +1.0 MiB per iteration since iteration 2"] * alarms
    assert case.judge(findings, report, told.replace("#1 LEAK", "#1 DEAD CYCLE")
                      .replace("#2 LEAK", "#2")).false_alarms == []


def test_second_holder_on_the_same_line_fails(tmp_path):
    report = right_report("P1_losses_list")
    other = copy.deepcopy(report["growth"][0])
    other.update(holder=[{"annotation": "cache", "edge": "global"}], bytes_per_iteration=0)
    report["growth"].append(other)
    assert judge_file("P1_losses_list", report, tmp_path).right == 0


@pytest.mark.parametrize("change", [
    {"class": "uncollectable"}, {"advice": ""}, {"bytes_each": 512}, {"peak_bytes": 0}])
def test_dead_cycle_is_judged_too(change, tmp_path):
    report = right_report("24_activations_only")
    report["cycles"][0].update(change)
    assert judge_file("24_activations_only", report, tmp_path).right == 0


def test_dead_cycle_nobody_expects_is_a_false_alarm(tmp_path):
    report = right_report("24_activations_only")
    assert len(judge_file("T01_image_classifier", report, tmp_path).false_alarms) == 1


def test_summary_counts_what_was_judged(tmp_path):
    whole = judge_file("M1_three_leaks", right_report("M1_three_leaks"), tmp_path)
    report = right_report("M1_three_leaks")
    report["growth"][0]["advice"] = ""
    report["growth"].pop()
    part = judge_file("M1_three_leaks", report, tmp_path)
    line = case.summary([whole, part], 0)
    assert "recall 0.667 (4 of 6 findings as written, 1 found but described" in line
    assert "1 missed; 0 without the line" in line and "0 false alarms in 2 programs" in line
