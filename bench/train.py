# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Training loop with automatic GC: no tool, torch's detector, CUMEM_WARN_CYCLES=1.

"again" is a second process without a tool: its ratio is the noise of this machine.
"on/off" is one process in which cumem is installed and taken back by turns.
"""

import loop
import measure

TOOLS = {"none": "none", "again": "none", "cumem": "warn", "torch": "torch",
         loop.SWITCHED: "switch warn"}
ALLOWED = 1.01


def cases(options):
    live = [1_000, 300_000] if options.quick else [1_000, 300_000, 1_000_000]
    for model in options.models.split(","):
        for count in live:
            yield {"model": model, "live": count, "cycles": 0, "cores": options.cores}
        if model == "mlp":
            yield {"model": model, "live": 300_000, "cycles": 4, "cores": options.cores}


def main():
    parser = loop.arguments(__doc__, 240)
    parser.add_argument("--models", default="mlp,transformer")
    parser.add_argument("--rounds", type=int, default=5,
                        help="fresh processes (default 5, fewer where they start slowly)")
    parser.add_argument("--iterations", type=int, default=60, help="in one turn")
    options = parser.parse_args()
    output = measure.Output("train", __doc__.splitlines()[0], options)
    work = list(cases(options))
    clock = measure.Clock(options.seconds, len(work))
    rows = []
    for case in work:
        name = f"{case['model']} live {case['live']:,} cycles {case['cycles']}"
        if not clock.begin():
            output.budget(name, f"<= {ALLOWED}x", "out of time", None)
            continue
        result = loop.run_case(output, __file__, case, TOOLS,
                               options.rounds, options.iterations, clock)
        rows.append([name, *loop.row_of(result, "none"),
                     measure.number(result["median_collections"]["none"], 1)])
        judge(output, name, result)
        print(rows[-1], result["failed"] or "", flush=True)
    output.text(measure.table(
        ["case", "none ms", "none again", "cumem", "torch", "cumem on/off",
         "GCs/iteration"], rows))
    output.text("", "xR [low, high]: median of paired ratios to none, 95 % interval;"
                " cpu: processor time;", "instr: user instructions ("
                + output.machine["instructions"] + ")")
    output.write()


def judge(output, name, result):
    measured, ratios = loop.sharper(result)
    peer = result["ratios"]["torch"].get("wall_ms")
    verdict = loop.holds(ratios, ALLOWED) if peer else None
    output.budget(name, f"<= {ALLOWED}x", measured, verdict)


if __name__ == "__main__":
    measure.run(main, loop.make)
