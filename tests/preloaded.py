# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs that begin with torch, without the seconds that its import takes: each is a fork of a
process that has imported it, and nothing else, before cumem is there.

Such a process serves one thread of the tests and has no thread of its own when it forks.  The child
becomes the program: its environment, folder, output, `__main__`, exit handlers and exit status.
What comes before torch in a program (options of the interpreter, variables that torch reads) needs a
process of its own; so does the start by CUMEM_WARN_CYCLES where that is what is tested: here it comes
after torch.
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

SERVER = """
import torch
{more}

def next_request():
    import json, os, sys
    print(0, flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()

def become(program):
    import os, sys
    for number, name in enumerate(("/dev/null", program["out"], program["err"])):
        opened = os.open(name, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(program["folder"])
    os.environ.clear()
    os.environ.update(program["environment"])
    names = globals()
    for name in ("torch", "next_request", "become"):
        del names[name]
    if program["file"] != "<string>":
        sys.argv[:] = [program["file"]]
        sys.path[0] = os.path.dirname(program["file"])
        names["__file__"] = program["file"]
    if "CUMEM_WARN_CYCLES" in os.environ:
        import _cumem_start
        _cumem_start.main()
    return compile(program["code"], program["file"], "exec")

exec(become(next_request()))
"""

# What the first step of any optimizer imports.
OF_OPTIMIZERS = "import torch._dynamo"

_of_thread = threading.local()


class Preloaded:
    def __init__(self, environment, optimizes):
        server = SERVER.format(more=OF_OPTIMIZERS if optimizes else "")
        self.process = subprocess.Popen([sys.executable, "-c", server], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.told = b""
        assert self.answer(None) == 0

    def answer(self, seconds):
        """A number; None when it did not come in time."""
        source = self.process.stdout.fileno()
        while b"\n" not in self.told:
            if not select.select([source], [], [], seconds)[0]:
                return None
            read = os.read(source, 100)
            assert read, "the process that has imported torch is gone"
            self.told += read
        line, _, self.told = self.told.partition(b"\n")
        return int(line)

    def run(self, code, *, folder, environment, seconds, file="<string>"):
        """(exit status, output, errors), as of subprocess.run()."""
        with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as readers:
            pipes = [pathlib.Path(place, name) for name in ("out", "err")]
            for pipe in pipes:
                os.mkfifo(pipe)
            printed = [readers.submit(pipe.read_text) for pipe in pipes]
            request = {"code": code, "file": file, "folder": str(folder), "environment": environment,
                       "out": str(pipes[0]), "err": str(pipes[1])}
            try:
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
                self.process.stdin.flush()
                status = self.wait(seconds)
            finally:  # nobody reads for ever
                for pipe in pipes:
                    os.close(os.open(pipe, os.O_RDWR))
            out, err = (one.result() for one in printed)
        if status is None:
            raise subprocess.TimeoutExpired(file, seconds, out, err)
        return status, out, err

    def wait(self, seconds):
        """The exit status; None when the time is over, and the program's end with it."""
        child = self.answer(None)
        status = self.answer(seconds)
        if status is None:
            os.kill(child, signal.SIGKILL)
            self.answer(None)
        return status


def _of_this_thread(environment, optimizes):
    """Made at its first use, without what is cumem's; it ends with the tests."""
    served = _of_thread.__dict__.setdefault("served", {})
    if optimizes not in served:
        others = {name: value for name, value in environment.items() if not name.startswith("CUMEM_")}
        served[optimizes] = Preloaded(others, optimizes)
    return served[optimizes]


def run(code, *, environment, optimizes, **options):
    """(exit status, output, errors) of a program that begins with torch."""
    return _of_this_thread(environment, optimizes).run(code, environment=environment, **options)


def run_file(path, **options):
    """As subprocess.run() would answer."""
    status, out, err = run(path.read_text(), file=str(path), **options)
    return subprocess.CompletedProcess([str(path)], status, out, err)
