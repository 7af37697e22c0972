# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""python tests/growth_samples.py [NAME...]: the table of the growth samples.

Each program and its mended twin runs under CUMEM_WARN_CYCLES=1; a line for
each says what was told of it, and what of that was not as written (or has no line
that allocated it, more than a hundredth of the bytes).  The last
line has recall and false alarms.  Exit status 1 when anything is amiss.
"""

import os
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import growth_case as case


def judge(program):
    label, path, findings = program
    with tempfile.TemporaryDirectory() as folder:
        done = case.run_observed(path, pathlib.Path(folder))
        judgement = case.judge(findings, case.read_report(pathlib.Path(folder)),
                               done.stderr)
    if done.returncode != 0:
        judgement.wrong.append(f"exit status {done.returncode}: {done.stderr[-400:]}")
    return judgement


def print_row(label, findings, judgement):
    wanted = "+".join(sorted(one["verdict"] for one in findings)) or "-"
    told = "+".join(sorted(judgement.verdicts)) or "-"
    state = "ok" if not judgement.problems() else "NOT"
    print(f"{state:4}{label:34} {told:24} expected {wanted}", flush=True)
    for problem in judgement.problems():
        print("    !", problem)


def main(chosen):
    listed = list(case.programs(chosen))
    judgements = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (label, _, findings), judgement in zip(listed, pool.map(judge, listed)):
            judgements.append(judgement)
            print_row(label, findings, judgement)
    for name in case.names():
        if case.what_is_missing(name) is not None:
            print(f"--  {name:34} not run: {case.what_is_missing(name)}")
    print(case.summary(judgements, sum(not findings for _, _, findings in listed)))
    return any(judgement.problems() for judgement in judgements)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
