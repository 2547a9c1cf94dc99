"""The package's own source has no way to run what a file or a word names."""

from __future__ import annotations

import ast
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "dperm_cli").rglob("*.py"))


def test_names_are_looked_up_never_imported():
    for name in ("os", "os.path", "../core/seeds", "base", "__init__", "noisy_gd.__class__", ""):
        for room in registry.ROOMS:
            with pytest.raises(InputError):
                registry.load(room, name)


def test_hydra_is_new_enough():
    """Older releases than 1.3.8 run code named by a configuration more readily."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = (word for word in project["dependencies"] if word.startswith("hydra-core"))
    assert pin.startswith("hydra-core>=1.3.8")
    assert tuple(map(int, version("hydra-core").split(".")[:3])) >= (1, 3, 8)
    assert "hydra-core==1.3.8" in (ROOT / "constraints.txt").read_text().splitlines()


FORBIDDEN_MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "pty",
    "jsonpickle", "torch", "ctypes", "code", "codeop",
}  # fmt: skip
LOKY = {"joblib", "joblib.externals.loky.backend", "joblib.externals.loky.process_executor"}
# joblib hands cells to processes of its own; a worker reads the cells that its parent packed when
# it has the parent's plug-ins; and a plug-in is the file that the user pointed at
ALLOWED = {
    "runner/sweep/backends.py": LOKY,
    "runner/sweep/worker.py": {"pickle"},
    # a pass comes over the cluster's own channel, which unpickles what it carries; plug-ins first
    "runner/sweep/row_cluster.py": {"pickle"},
    # asked how many cores there are
    "loops/thread_count.py": {"joblib"},
    "core/plugin_files.py": {"compile", "exec"},
    # `__init__` of a class of dperm's own, from the names of its fields
    "core/dataclass.py": {"compile", "exec"},
    # names and values of a class that the caller has are hashed: nothing is run or unpacked
    "core/plugin_classes.py": {"compile", "pickle"},
    # one setting of the C library that runs this process: no word names what is called
    "core/system_calls.py": {"ctypes"},
    # it trains with torch in an environment of its own, and reads no file with it
    "runner/peers/adapters/opacus.py": {"torch"},
}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "instantiate", "call", "get_class", "get_method",
    "read_pickle", "to_pickle", "unsafe_load", "full_load", "load_all", "system", "popen",
    "register_new_resolver", "register_resolver", "resolve",
}  # fmt: skip


def dangers(tree: ast.AST) -> list[str]:
    """What a source file does that could run what a file or a word says."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            found += [node.module or ""] if module[0] in FORBIDDEN_MODULES else []
            found += [a.name for a in node.names if a.name in FORBIDDEN_CALLS]
            found += ["hydra.utils"] if (node.module or "").startswith("hydra.utils") else []
        elif isinstance(node, ast.Call):
            found += _call_dangers(node)
    return found


def _call_dangers(node: ast.Call) -> list[str]:
    words = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
    plain = node.func.id if isinstance(node.func, ast.Name) else ""
    dotted = ast.unparse(node.func)
    last = dotted.rpartition(".")[2]
    found = [plain] if plain in FORBIDDEN_CALLS else []
    if "." in dotted and last in FORBIDDEN_CALLS - {"compile", "call", "resolve", "exec"}:
        found.append(dotted)
    if dotted in ("np.load", "np.lib.format.write_array", "np.lib.format.read_array"):
        found += [] if words.get("allow_pickle") is False else [f"{dotted} may unpickle"]
    if words.get("allow_pickle") or words.get("shell") or words.get("resolve"):
        found.append(f"{dotted}({words})")
    # the loader of ``core.plain_yaml``, which makes lists, maps and plain scalars
    if dotted == "yaml.load" and ast.unparse(node.args[-1]) != "_make_loader()":
        found.append("yaml.load")
    return found


def test_no_pickle_and_no_way_to_name_code():
    found = dict[str, set[str]]()
    for path in SOURCES:
        name = path.relative_to(ROOT / "dperm_cli").as_posix()
        found[name] = set(dangers(ast.parse(path.read_text()))) - ALLOWED.get(name, set())
    assert len(found) > 500
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pickle", "from joblib import load", "np.load(f)", "np.load(f, allow_pickle=True)",
        "eval(x)", "pd.read_pickle(f)", "from hydra.utils import instantiate", "yaml.load(t, L)",
        "OmegaConf.to_container(c, resolve=True)", "os.system(x)", "subprocess.run(x, shell=True)",
        "OmegaConf.register_new_resolver('x', f)", "yaml.unsafe_load(t)",
    ],
)  # fmt: skip
def test_the_source_test_sees(line):
    assert dangers(ast.parse(line))


def test_no_shipped_file_names_code():
    for path in (ROOT / "conf").rglob("*.yaml"):
        text = path.read_text()
        assert "_target_" not in text
        assert "${" not in text
        assert "hydra" not in text


def test_importlib_gets_registered_names_only():
    places = [p.relative_to(ROOT / "dperm_cli").as_posix() for p in SOURCES
              if "import_module(" in p.read_text()]  # fmt: skip
    # the table of public names is one of the package's own
    known = {"core/registry.py", "cli.py", "__init__.py", "api/__init__.py"}
    # what stands behind `dperm check` and `dperm audit` on the command line
    asked_for = {"core/plugin_files.py", "runner/audits/outside_targets.py"}
    assert set(places) <= known | asked_for


def test_the_command_line_imports_verbs_of_its_own_table_only():
    text = next(path for path in SOURCES if path.name == "cli.py").read_text()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [call.args[0] for call in calls if ast.unparse(call.func) == "_defer"]
    assert named
    assert all(isinstance(name, ast.Constant) for name in named)
