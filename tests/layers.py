# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The rules of the source tree that no compiler checks.

Runs alone (``python tests/layers.py``: one line for each breach, exit status
1) and under pytest.  Each rule is a function that yields its breaches.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Which folders a file in a folder may include from, besides its own.
ARROWS = {
    "detector": set(),
    "allocator_hooks": {"detector"},
    "graph": {"detector"},
    "reports": {"detector", "graph"},
    "pyext": {"allocator_hooks", "detector", "graph", "reports"},
    "tests": {"allocator_hooks", "detector", "graph", "reports"},
}

# pyext's folders: a file in one may include from those before it.
ROOMS = ("tables", "collector", "code", "objects", "torch", "frameworks",
         "allocations", "frozen", "holders", "session", "module")

# Foreign headers and the only files (or folder) that may include them.
FOREIGN = {
    r"Python\.h|structmember\.h|frameobject\.h|internal/.*|cpython/.*": "pyext/",
    r"(cjson/)?cJSON\.h": "reports/leak_json.c",
    # The test reads back what dot.c wrote.
    r"(graphviz/)?(cgraph|gvc|gvcext|gvplugin)\.h": ("reports/dot.c",
                                                     "tests/t_dot.c"),
    # The product has declarations of its own; the test compares them.
    r"cupti.*\.h|cuda.*\.h": "tests/t_driver_layout.c",
    r"cmocka\.h": "tests/",
}

# Nobody has set a handler while these run, and the core may be what is missing.
BEFORE_THE_PROGRAM = {"__main__.py", "_start.py"}

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_README_LINES = 20

SPDX = "SPDX-License-Identifier: MIT"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def c_files():
    for folder in ARROWS:
        yield from sorted((ROOT / folder).rglob("*.[ch]"))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def folder_of(path):
    """The folder whose rules hold; a probe is a part of pyext under test."""
    parts = path.relative_to(ROOT).parts
    return "pyext" if parts[0] == "tests" and parts[1].endswith("_probe") else parts[0]


def includes(path):
    return INCLUDE.findall(path.read_text())


def include_follows_the_arrows(files=None):
    """detector <- graph <- reports; pyext and tests see all of them."""
    for path in files or c_files():
        folder = folder_of(path)
        for quote, header in includes(path):
            if quote != '"':
                continue
            target = (path.parent / header).resolve()
            if ROOT not in target.parents:
                yield f"{name_of(path)}: includes {header}, which is not ours"
                continue
            other = folder_of(target)
            if other != folder and other not in ARROWS[folder]:
                yield f"{name_of(path)}: {folder} may not include {other}/"


def include_follows_the_rooms(files=None):
    """Within pyext no file includes from a folder that stands on its own."""
    for path in files or sorted((ROOT / "pyext").rglob("*.[ch]")):
        room = path.parent.name
        if room not in ROOMS:
            yield f"{name_of(path)}: in none of pyext's folders"
            continue
        for quote, header in includes(path):
            other = (path.parent / header).resolve().parent
            if quote == '"' and other.name in ROOMS \
                    and ROOMS.index(other.name) > ROOMS.index(room):
                yield f"{name_of(path)}: pyext/{room} may not include {other.name}/"


def one_foreign_library_one_file(files=None):
    """cJSON, cgraph, gvc, CUPTI and Python each have one home."""
    for path in files or c_files():
        for _, header in includes(path):
            for pattern, home in FOREIGN.items():
                at_home = f"{folder_of(path)}/{path.name}".startswith(home)
                if re.fullmatch(pattern, header) and not at_home:
                    yield f"{name_of(path)}: only {home} may include <{header}>"


def every_c_test_has_its_module():
    """tests/t_NOUN.c tests one NOUN.c, or a NOUN.h that has no code."""
    for path in sorted((ROOT / "tests").glob("t_*.c")):
        noun = path.stem[2:]
        if not any((ROOT / folder / f"{noun}.{suffix}").exists()
                   for folder in ARROWS for suffix in "ch"):
            yield f"{name_of(path)}: there is no module {noun}.c"


def sources():
    yield from c_files()
    for folder in ("pyext", "tests", "tools", "bench", "samples"):
        for pattern in ("*.py", "*.sh", "*.js", "*.css"):
            yield from sorted((ROOT / folder).rglob(pattern))
    yield from sorted((ROOT / "reports").glob("*.[jc]s*"))


def no_file_is_long():
    """A file has at most 600 lines."""
    for path in sources():
        lines = path.read_text().count("\n")
        if lines > MAX_FILE_LINES and path.suffix != ".json":
            yield f"{name_of(path)}: {lines} lines, at most {MAX_FILE_LINES}"


def functions(path):
    """(name, lines) of each C function: PEP 7 puts its braces in column 0."""
    start = name = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"[a-z_]\w*\(", line):
            start, name = number, line.split("(")[0]
        elif line == "}" and start is not None:
            yield name, number - start + 1
            start = None
        elif line.endswith(";") and not line.startswith(" "):
            start = None


def no_function_is_long(files=None):
    """A function has at most 60 lines."""
    for path in files or c_files():
        for name, lines in functions(path):
            if lines > MAX_FUNCTION_LINES:
                yield f"{name_of(path)}: {name} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def every_c_file_names_its_licence():
    """The two-line head."""
    for path in c_files():
        if SPDX not in path.read_text()[:200]:
            yield f"{name_of(path)}: no '{SPDX}' at its top"


def clauses(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            yield node
        elif isinstance(node, ast.withitem) and "suppress(" in ast.unparse(node):
            yield node.context_expr


def gives_on(clause):
    """What the program's signal handler raised goes through, or all that was caught does."""
    if not isinstance(clause, ast.ExceptHandler):
        return False
    first, last = clause.body[0], clause.body[-1]
    asks = isinstance(first, ast.Expr) and ast.unparse(first).startswith(
        ("_core.let_through(", "_core.unraisable("))
    return asks or (isinstance(last, ast.Raise) and last.exc is None)


def no_except_swallows_what_a_handler_raised():
    """Each clause that goes on asks first: _core.let_through(), _core.unraisable()."""
    for path in sorted((ROOT / "pyext" / "cumem").rglob("*.py")):
        if path.name in BEFORE_THE_PROGRAM:
            continue
        for clause in clauses(path):
            if not gives_on(clause):
                yield f"{name_of(path)}:{clause.lineno}: an except clause that does not begin with _core.let_through()"


def every_folder_has_its_readme():
    """Why it is there, what enters, what leaves: at most 20 lines."""
    for folder in ARROWS.keys() - {"tests"}:
        readme = ROOT / folder / "README.md"
        if not readme.exists():
            yield f"{folder}/README.md is missing"
        elif (lines := readme.read_text().count("\n")) > MAX_README_LINES:
            yield f"{folder}/README.md: {lines} lines, at most {MAX_README_LINES}"


RULES = [
    include_follows_the_arrows,
    include_follows_the_rooms,
    one_foreign_library_one_file,
    every_c_test_has_its_module,
    no_file_is_long,
    no_function_is_long,
    every_c_file_names_its_licence,
    no_except_swallows_what_a_handler_raised,
    every_folder_has_its_readme,
]


def main():
    breaches = [breach for rule in RULES for breach in rule()]
    for breach in breaches:
        print(breach)
    print(f"layers: {len(RULES)} rules, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
