"""Only core/files.py opens a file for writing or renames one; where not, it is said here why."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import dperm_cli

HERE = Path(dperm_cli.__file__).parent
WRITER = "core/files.py"

# What else writes, how often, and why that is no way around the writer.
EXCEPTIONS = {
    # goes on in a file of its own, NAME.part, after an interruption; renamed when it is whole
    "datasets/shared/download.py": Counter({"open": 1, "write_text": 1, "os.replace": 1}),
    # the null device in the place of a stdout whose reader has gone
    "cli.py": Counter({"os.open": 1}),
    # the null device in the place of a standard stream that is closed
    "core/standard_streams.py": Counter({"os.open": 1}),
    # flags that not every system has; what is opened for writing is written by core/files.py
    "core/system_calls.py": Counter({"os.open": 4}),
    # opened for reading
    "core/parquet_files.py": Counter({"OSFile": 1}),
    # the file of a lock, which holds nothing
    "core/shared_lock.py": Counter({"os.open": 1}),
    # opened for reading
    "datasets/shared/block_stage.py": Counter({"memmap": 1}),
    # written to an open file of core/files.py
    "datasets/shared/stored_arrays.py": Counter({"tofile": 4}),
    # files of its own that grow, whose parts have sums; their folder is renamed when it is whole
    "core/growing_files.py": Counter({"open": 1, "os.open": 1}),
    # the file of `dperm new`, which must not be there: made anew or refused
    "core/new_plugin.py": Counter({"open": 1}),
    # a worker's own notes in the folder of one sweep, which goes with the sweep
    "runner/sweep/attempts.py": Counter({"open": 1, "write_text": 1}),
}

# Calls that open a file for writing, whatever their arguments, or put one in the place of another.
WRITING = {
    "write_text", "write_bytes", "rename", "hardlink_to", "symlink_to", "mkstemp",
    "NamedTemporaryFile", "FileHandler", "copy2", "copyfile", "copytree",
    "os.replace", "os.renames", "os.link", "os.symlink", "os.mknod", "os.truncate", "shutil.move",
    "shutil.copy", "open_memmap",
}  # fmt: skip
# Calls that are given a mode: without one they read.
OPENING = {"open", "fdopen", "ZipFile", "GzipFile", "BZ2File", "LZMAFile"}
# Calls that write to the open file that they are given; a name of a file would open one.
SAVING = {
    "save", "savez", "savez_compressed", "savetxt", "savefig", "to_csv", "to_parquet", "to_json",
    "write_table", "ParquetWriter", "OSFile", "memmap",
}  # fmt: skip
OPEN_FILES = ("file", "sink", "content")  # what an open file is called in the package
LIBRARIES = {"np", "pq", "pa", "drawn", "figure", "table"}
READ_ONLY = {"O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY"}


def find_writes(text: str) -> Counter[str]:
    """The calls of a module's text that open a file for writing, rename or link one."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return Counter(name for name in map(_name_write, calls) if name)


def _name_write(call: ast.Call) -> str:
    """What a call that writes is called; nothing for one that does not."""
    words = ast.unparse(call.func).split(".")
    name, whole = words[-1], ".".join(words[-2:])
    if whole in WRITING or name in WRITING:
        return whole if whole in WRITING else name
    if whole == "os.open":
        flags = {node.attr for node in ast.walk(call.args[1]) if isinstance(node, ast.Attribute)}
        return "" if flags and flags <= READ_ONLY else whole
    target = call.args[1 if name == "write_table" else 0 :][:1]
    if target and isinstance(target[0], ast.Name) and target[0].id in OPEN_FILES:
        return ""
    if name in OPENING:
        return name if _may_write(call, words) else ""
    if name == "tofile" or (name in SAVING and words[0] in LIBRARIES):
        return name
    # str.replace takes two words, dataclasses.replace a value and names, Path.replace one path
    one_path = len(call.args) == 1 and not call.keywords
    return name if name == "replace" and one_path and len(words) > 1 else ""


def _may_write(call: ast.Call, words: list[str]) -> bool:
    """Whether the mode is for writing, or not written out where it would be read."""
    place = 0 if words[-1] == "open" and len(words) > 1 and words[0] not in ARCHIVES else 1
    mode: ast.expr | None = call.args[place] if len(call.args) > place else None
    mode = next((word.value for word in call.keywords if word.arg == "mode"), mode)
    if mode is None:
        return False
    if not isinstance(mode, ast.Constant):
        return isinstance(mode, (ast.IfExp, ast.JoinedStr)) or words == ["open"]
    return isinstance(mode.value, str) and bool(set(mode.value) & set("wax+"))


ARCHIVES = {"io", "os", "gzip", "bz2", "lzma", "tarfile", "zipfile", "codecs"}


@pytest.mark.parametrize(
    "line",
    [
        "open(p, 'w')", "open(p, mode='ab')", "open(p, 'r+')", "open(p, mode)", "p.open('x')",
        "gzip.open(p, 'wb')", "zipfile.ZipFile(p, 'w')", "Path(p).write_text(x)",
        "p.write_bytes(x)", "os.replace(a, b)", "a.replace(b)", "Path(a).rename(b)",
        "shutil.copy(a, b)", "shutil.copytree(a, b)", "os.open(p, os.O_WRONLY | os.O_CREAT)",
        "os.open(p, flags)", "np.save(path, x)", "np.savez(folder / 'a', x=x)",
        "pq.write_table(table, path)", "drawn.savefig('a.pdf')", "tempfile.NamedTemporaryFile()",
        "x.tofile(path)", "p.symlink_to(a)", "table.to_csv(path)",
    ],
)  # fmt: skip
def test_what_writes(line):
    assert sum(find_writes(line).values()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "open(p)", "open(p, 'rb')", "p.open()", "gzip.open(p, 'rb')", "zipfile.ZipFile(p)",
        "'a'.replace('b', 'c')", "replace(cell, epsilon=1)", "dataclasses.replace(cell, a=1)",
        "os.open(p, os.O_RDONLY | os.O_NONBLOCK)", "np.save(file, x)", "drawn.savefig(sink)",
        "pq.write_table(rows, file)", "zipfile.ZipFile(sink, 'w')", "event.open(gate, dim)",
        "store.write(cell, rows)", "archive.open(entry)",
    ],
)  # fmt: skip
def test_what_does_not(line):
    assert not find_writes(line)


def test_only_the_writer_writes():
    found = {
        path.relative_to(HERE).as_posix(): find_writes(path.read_text("utf-8"))
        for path in sorted(HERE.rglob("*.py"))
    }
    assert found.pop(WRITER)["open"] > 0
    others = {name: dict(calls) for name, calls in found.items() if calls}
    assert others == {name: dict(calls) for name, calls in EXCEPTIONS.items()}, (
        "write with core.files: write_atomically, open_atomically, append_durably or OutputFile"
    )
