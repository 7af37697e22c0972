# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json is described three times: by its writer, its schema and a page. They say the same."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "reports" / "leak.schema.json").read_text())
PAGE = (ROOT / "docs" / "leak-json.md").read_text()
FRAME = {*SCHEMA["$defs"]["frame"]["properties"], "certain"}
WRITTEN = re.compile(r'(?:cm_json_(?:add|open)_|add_names)\w*\(\s*[\w>&.-]+,\s*"(\w+)"|\\"(\w+)\\":')


def keys_of(schema, path=""):
    """`devices[].name` and so on, without those of frames."""
    for name, below in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here
        yield from keys_of(below, here)
    if isinstance(schema.get("items"), dict):
        yield from keys_of(schema["items"], path + "[]")
    for choice in ("anyOf", "oneOf", "allOf"):
        for below in schema.get(choice, ()):
            yield from keys_of(below, path)


def named_on_page():
    cells = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
    names = {name for row in cells for name in re.findall(r"`([a-z_.\[\]]+)`", row[0])}
    return names | set(re.findall(r"`((?:\w+(?:\[\])?\.)+\w+)`", " ".join(row[1] for row in cells)))


def test_the_page_names_every_key():
    # An object that is nothing but its parts is not named apart from them.
    keys = set(keys_of(SCHEMA))
    wholes = {"lost"}
    assert named_on_page() - keys == set()
    assert keys - named_on_page() == wholes


def test_the_page_names_what_frames_have():
    text = PAGE[PAGE.index("A frame, here"):PAGE.index("| `sites[].id`")]
    assert FRAME <= set(re.findall(r"`(\w+)`", text))


def test_the_schema_has_what_is_written():
    files = (path.read_text() for path in (ROOT / "reports").glob("*.c"))
    written = {one or other for text in files if "struct cm_json_writer" in text
               for one, other in WRITTEN.findall(text)}
    known = {key.rpartition(".")[2] for key in keys_of(SCHEMA)} | FRAME
    assert written == known
