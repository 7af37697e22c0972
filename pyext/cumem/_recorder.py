# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""torch's own recorder, where its allocator cannot be heard: who allocated what is live.

It is read when a report is made, and what was read is forgotten right afterwards: a
block that is old says a line that is wrong.  Who records already keeps his recorder.
"""

import os
import sys

from . import _core

_state = {"armed_by": None}  # the process's id


def is_ours():
    """Whether torch records because we asked."""
    return _state["armed_by"] == os.getpid()


def is_theirs():
    """Whether the program records, or may: a snapshot is then not ours to take.

    It has the stacks of each block that lives, with or without the history, and torch
    looks up the names of them all, which takes seconds the first time.
    """
    try:
        enabled = getattr(sys.modules["torch"]._C, "_cuda_isHistoryEnabled", None)
        return not is_ours() and (enabled is None or bool(enabled()))
    except Exception:  # another allocator: it has no recorder
        _core.let_through()
        return False


def arm(stacks):
    """Have torch record the stacks of what is live, if nothing else tells them; once CUDA is used."""
    if is_ours() or _core.status()["allocator_hook"]["hook"] != "none":
        return
    _core.clear_blocks()  # nobody would keep them up to date
    if not stacks:
        return
    torch = sys.modules["torch"]
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is None:
        _core.recorder(False, "this torch does not say whether its recorder is on")
        return
    try:
        if enabled():
            _core.recorder(False, "torch's recorder is on already, and is left alone")
            return
        torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
    except Exception as error:  # another allocator, another torch
        _core.let_through()
        _core.recorder(False, f"torch's recorder refused: {type(error).__name__}: {error}")
        return
    _state["armed_by"] = os.getpid()
    _core.recorder(True, "torch's own recorder is on, and read for each report")


def disarm():
    """Switch the recorder off again, unless it is somebody else's by now."""
    if not is_ours():
        return
    torch = sys.modules["torch"]
    try:
        if torch._C._cuda_isHistoryEnabled() and not _is_taken_over(torch.cuda.memory._snapshot()):
            torch.cuda.memory._record_memory_history(None)
    except Exception:  # it says no more; it stays as it is
        _core.let_through()
    _give_up("nobody observes")


def _give_up(why):
    _state["armed_by"] = None
    _core.clear_blocks()
    _core.recorder(False, why)


def _is_taken_over(snapshot):
    """Ours keeps no history but the last event."""
    return any(len(trace) > 1 for trace in snapshot.get("device_traces") or ())


def seed():
    """Tell the core what is live now, and the line that allocated it."""
    if not is_ours():
        return
    torch = sys.modules["torch"]
    try:
        snapshot = torch.cuda.memory._snapshot()
        if _is_taken_over(snapshot):
            _give_up("torch's recorder was switched on by the program since")
            return
        rows = _rows(snapshot["segments"])
        _core.clear_blocks()
        _core.seed_blocks(rows)
    except Exception as error:
        _core.let_through()
        _give_up(f"torch's snapshot cannot be read: {type(error).__name__}: {error}")


def forget():
    """The report is made."""
    if is_ours():
        _core.clear_blocks()


def _rows(segments):
    rows, sites = [], {}
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                rows.append((
                    block.get("address", at), block["size"], segment["device"],
                    segment.get("stream"), _site(block.get("frames") or (), sites),
                ))  # fmt: skip
            at += block["size"]
    return rows


def _site(frames, sites):
    stack = tuple(
        (frame["filename"], frame["line"], frame["name"])
        for frame in frames if frame["filename"] not in ("", "??")
    )  # fmt: skip
    if stack not in sites:
        sites[stack] = _core.add_site(list(stack)) if stack else 0
    return sites[stack]
