# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""observe_tensor_cycles with 4 equal cycles per iteration: none, torch, cumem.

"again" is a second process without a tool: its ratio is the noise of this machine.
"on/off" is one process in which cumem is installed and taken back by turns.
"""

import loop
import measure

TOOLS = {"none": "none", "again": "none", "cumem": "observe", "torch": "torch",
         loop.SWITCHED: "switch observe"}
ALLOWED = 1.05


def main():
    parser = loop.arguments(__doc__, 90)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=20)
    options = parser.parse_args()
    output = measure.Output("observe", __doc__.splitlines()[0], options)
    live = [1_000] if options.quick else [1_000, 300_000]
    work = [{"model": "mlp", "live": count, "cycles": 4, "cores": options.cores}
            for count in live]
    clock = measure.Clock(options.seconds, len(work))
    rows = []
    for case in work:
        name = f"mlp live {case['live']:,} cycles 4"
        if not clock.begin():
            output.budget(name, f"<= {ALLOWED}x", "out of time", None)
            continue
        result = loop.run_case(output, __file__, case, TOOLS,
                               options.rounds, options.iterations, clock)
        calls = (result["status"]["cumem"] or {}).get("calls", 0)
        rows.append([name, *loop.row_of(result, "none"), calls])
        judge(output, name, result, calls)
    output.text(measure.table(
        ["case", "none ms", "none again", "cumem", "torch", "cumem on/off",
         "pages given"], rows))
    output.write()


def judge(output, name, result, calls):
    """Only a run in which the callback was called says anything."""
    measured, ratios = loop.sharper(result)
    peer = result["ratios"]["torch"].get("wall_ms")
    verdict = loop.holds({"wall_ms": ratios.get("wall_ms")}, ALLOWED) if peer and calls else None
    output.budget(name, f"<= {ALLOWED}x", measured, verdict)


if __name__ == "__main__":
    measure.run(main, loop.make)
