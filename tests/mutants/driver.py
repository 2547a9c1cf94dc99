"""Applies patches to a copy of the package and runs checks on it.

``python -m tests.mutants.driver ROOT FOLDER``, where ROOT holds dperm_cli and tests. Reads jobs
[{name, patches, checks}] as JSON from stdin and prints one JSON object a job: {name, faults:
{check: reason}}. Every job runs in a child of its own, forked after the heavy libraries were
loaded; what it imports of dperm_cli comes from the patched copies in its folder, and from ROOT
where nothing was patched (so that compiled loops are not compiled again).
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.edits import edit_source, find_symbol


class Overlay(importlib.abc.MetaPathFinder):
    """Finds patched modules in the copy before the ordinary finders see them."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.files:
            return None
        return importlib.util.spec_from_file_location(fullname, self.files[fullname])


def patched(root: Path, folder: Path, patches: list[dict]) -> dict[str, Path]:
    """Write the patched copies; ValueError when a patch does not apply exactly once."""
    package, texts = root / "dperm_cli", {}
    for patch in patches:
        file, name = find_symbol(package, patch["symbol"])
        text = texts.get(file) or (package / file).read_text()
        texts[file] = edit_source(text, name, patch["old"], patch["new"])
    files = {}
    for name, text in texts.items():
        copy = folder / "dperm_cli" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
        files["dperm_cli." + name.removesuffix(".py").replace("/", ".")] = copy
    return files


def work(root: Path, folder: Path, job: dict) -> dict[str, str]:
    """In the child: apply, import, check. {check: reason} of those that failed."""
    sys.meta_path.insert(0, Overlay(patched(root, folder, job["patches"])))
    from tests.mutants.checks import CHECKS

    faults = {}
    for name in job["checks"]:
        try:
            CHECKS[name]()
        except BaseException as error:
            faults[name] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return faults


def run(root: Path, folder: Path, number: int, job: dict) -> dict:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = folder / str(number)
            own.mkdir()
            faults = work(root, own, job)
            os.write(writer, json.dumps(faults).encode()[:60000])
            code = 0
        except ValueError as error:
            os.write(writer, json.dumps({"patch": str(error)}).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    faults = json.loads(answer) if answer else {"driver": "the child died"}
    return {"name": job["name"], "faults": faults}


def main() -> None:
    root, folder = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(root))
    for heavy in ("numpy", "scipy.sparse", "scipy.optimize", "scipy.special", "scipy.stats",
                  "numba", "pytest"):  # fmt: skip
        importlib.import_module(heavy)
    jobs = json.load(sys.stdin)
    with ThreadPoolExecutor(2) as pool:
        numbered = [pool.submit(run, root, folder, i, job) for i, job in enumerate(jobs)]
        for done in numbered:
            print(json.dumps(done.result()), flush=True)


if __name__ == "__main__":
    main()
