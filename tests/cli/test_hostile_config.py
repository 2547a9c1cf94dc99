"""Configuration is data: what would run, look up, expand or escape is refused, and leaves nothing.

Every payload would create a file named ``owned`` if any part of it ran.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from dperm_cli.core import catalogue, registry
from dperm_cli.core.errors import InputError
from dperm_cli.runner import compose, user_yaml
from dperm_cli.runner.plan import MOST_CELLS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "dperm_cli").rglob("*.py"))
RUNS = "{_target_: os.mkdir, path: owned}"

WORDS = {
    "_target_=os.mkdir": "_target_",
    "+_target_=os.mkdir": "_target_",
    "++mechanism._target_=os.mkdir": "mechanism._target_",
    "mechanism={_target_: os.mkdir, path: owned}": "mechanism._target_",
    "dataset.labels={_target_: os.mkdir}": "dataset.labels._target_",
    'dataset.labels={"_target_": "os.mkdir"}': "dataset.labels._target_",
    "constraint.inner={name: l2_ball, _target_: os.mkdir}": "constraint.inner._target_",
    f"hydra.callbacks.x={RUNS}": "_target_",
    "+hydra.callbacks.x._target_=os.mkdir": "hydra.callbacks.x._target_: unknown key",
    f"hydra={{callbacks: {{x: {RUNS}}}}}": "_target_",
    "hydra.job_logging.version=1": "hydra.job_logging.version: unknown key",
    "hydra/job_logging=colorlog": "hydra/job_logging: unknown key",
    "hydra/launcher=joblib": "hydra/launcher: unknown key",
    "hydra.run.dir=owned": "hydra.run.dir: unknown key",
    "hydra.sweep.dir=owned": "hydra.sweep.dir: unknown key",
    "hydra.output_subdir=owned": "hydra.output_subdir: unknown key",
    "hydra.job.chdir=true": "hydra.job.chdir: unknown key",
    "hydra.searchpath=[file:///etc]": "hydra.searchpath: unknown key",
    "hydra.verbose=true": "hydra.verbose: unknown key",
    "defaults=[noisy_sgd]": "defaults: unknown key",
    "+experiment=x": "experiment: unknown key",
    "mechanism@hydra=noisy_gd": "packages (@)",
    "mechanism@_global_=noisy_gd": "packages (@)",
    "dataset.path=${oc.env:HOME}": "interpolations",
    "dataset.path='${oc.env:HOME}'": "interpolations",
    "mechanism=${oc.env:SHELL}": "interpolations",
    "out=${oc.env:HOME}/owned": "interpolations",
    "out=${hydra:runtime.cwd}": "interpolations",
    "epsilon=${oc.decode:1}": "interpolations",
    "epsilon=[1,'${x}']": "interpolations",
    "dataset.labels={'${x}': 1}": "interpolations",
    "mechanism=../mechanism/noisy_gd": "mechanism=../mechanism/noisy_gd",
    "mechanism=./noisy_gd": "mechanism=./noisy_gd",
    "mechanism=noisy_gd.yaml": "mechanism=noisy_gd.yaml",
    "mechanism=/etc/passwd": "mechanism=/etc/passwd",
    "mechanism=noisy_gd/../noisy_sgd": "mechanism=noisy_gd/../noisy_sgd",
    "mechanism=NOISY_GD": "mechanism=NOISY_GD",
    "mechanism='noisy_gd '": "mechanism=noisy_gd",
    "mechanism='noisy_gd\n'": "mechanism=noisy_gd",
    "mechanism='ｎoisy_gd'": "mechanism=ｎoisy_gd",
    "mechanism='noisy\u2215gd'": "mechanism=noisy\u2215gd",
    "mechanism='noisy_gd\u200b'": "mechanism=noisy_gd",
    "mechanism='noisy_gd\0'": "must be text",
    "mechanism='\udcff'": "must be text",
    "mechanism=_protocol": "mechanism=_protocol",
    "mechanism=__init__": "mechanism=__init__",
    "mechanism=null": "mechanism=None",
    "mechanism=[[noisy_gd]]": "mechanism=",
    "mechanism={name: noisy_gd}": "mechanism=",
    "dataset=../dataset/digits": "dataset=../dataset/digits",
    "privacy=../privacy/pure": "privacy=../privacy/pure",
    "loss=os.system": "loss=os.system",
    "constraint=..": "constraint=..",
    "out=": "folder name",
    "out='a\0b'": "must be text",
    "out=[a,b]": "one value",
    "out=3": "folder name",
    "seed=1e30": "seed=",
    "seed=" + "9" * 5000: "too long",
    "trials=" + "9" * 5000: "too long",
    "epsilon=" + "[" * 2000 + "1" + "]" * 2000: "nested deeper",
    "epsilon=[" + "1," * 20_000 + "x]": "cannot be read",
    "x" * 2_000_000 + "=1": "characters",
}  # fmt: skip

SWEEPS = {
    "epsilon=range(1,1e18)": "at most 10000 values",
    "epsilon=range(0,1,0)": "step",
    "epsilon=range(0.0,1.0,1e-300)": "at most 10000 values",
    "mechanism=glob(*)": "globs",
    "mechanism=noisy_gd,../x": "mechanism=../x",
    "mechanism=choice(noisy_gd,'${x}')": "interpolations",
    "epsilon=interval(0,1)": "intervals",
}

DEEP = "a: " + "[" * 100_000
BOMB = "name: noisy_gd\na: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
FILES = {
    "name: noisy_gd\n_target_: os.mkdir\npath: owned\n": "_target_",
    f"name: noisy_gd\nsteps: {RUNS}\n": "mechanism.steps._target_",
    f"name: noisy_gd\nsteps: [[{RUNS}]]\n": "_target_",
    f"name: noisy_gd\nhydra:\n  callbacks:\n    x: {RUNS}\n": "mechanism.hydra",
    "name: noisy_gd\nhydra.run.dir: owned\n": "mechanism.hydra.run.dir",
    "name: noisy_gd\nhydra:\n  searchpath: [file:///etc]\n": "mechanism.hydra",
    "defaults:\n  - override /hydra/job_logging: colorlog\nname: noisy_gd\n": "mechanism.defaults",
    "defaults: [../../etc/passwd]\nname: noisy_gd\n": "mechanism.defaults",
    f"# @package _global_\nname: noisy_gd\nhydra:\n  callbacks:\n    x: {RUNS}\n": "packages (@)",
    f"# @package hydra\nname: x\ncallbacks:\n  x: {RUNS}\n": "packages (@)",
    "name: noisy_gd\nsteps: ${oc.env:HOME}\n": "interpolations",
    "name: ${oc.env:HOME}\n": "interpolations",
    "name: noisy_gd\n${oc.env:HOME}: 1\n": "interpolations",
    'name: noisy_gd\nsteps: "\\x24{oc.env:HOME}"\n': "interpolations",
    "name: noisy_gd\nsteps: '${oc.create:{a: 1}}'\n": "interpolations",
    "name: noisy_gd\nsteps: !!python/object/apply:os.mkdir [owned]\n": "tags",
    "name: noisy_gd\nsteps: !!python/object/apply:pathlib.Path [owned]\n": "tags",
    "!!map\nname: noisy_gd\n": "tags",
    "name: !!str noisy_gd\n": "tags",
    "name: noisy_gd\nsteps: &x 1\n": "aliases",
    "name: noisy_gd\nbase: &x {steps: 1}\n<<: *x\n": "aliases",
    "name: noisy_gd\n<<: {steps: 3}\n": "mechanism.<<",
    BOMB: "aliases",
    "name: noisy_gd\nsteps: [" + "1," * 11_000 + "1]\n": "more than 10000",
    "name: noisy_gd\n" + "".join(f"k{i}: 1\n" for i in range(6000)): "more than 10000",
    "name: noisy_gd\n" + "# padding\n" * 110_000: "1048576 bytes",
    DEEP: "nested deeper",
    "name: noisy_gd\nsteps: " + "9" * 5000 + "\n": "no number",
    "name: noisy_gd\nsteps: " + "9" * 500_000 + "\n": "longer than",
    "name: noisy_gd\nsteps: 1\nsteps: 2\n": "twice",
    "name: noisy_gd\n? [a, b]\n: 1\n": "one word",
    "name: noisy_gd\nsteps: \"a\\0b\"\n": "must be text",
    "name: noisy_gd\n--- \nname: noisy_sgd\n": "not a YAML",
    "name: ../noisy_gd\n": "mechanism=../noisy_gd",
    "name: os.system\n": "mechanism=os.system",
    "name: _protocol\n": "mechanism=_protocol",
    "name: [noisy_gd]\n": "must hold",
    "- noisy_gd\n": "must hold",
    "noisy_gd": "must hold",
    "": "must hold",
    "name: noisy_gd\nsteps: [\n": "not a YAML",
    "name: noisy_gd\n\tsteps: 1\n": "not a YAML",
}  # fmt: skip


def evil(tmp_path: Path, text: str | bytes, name: str = "evil", group: str = "mechanism") -> None:
    folder = tmp_path / "mine" / group
    folder.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    (folder / f"{name}.yaml").write_bytes(data)


def assert_refused(done, tmp_path: Path, part: str, left: list[str]) -> None:
    assert done.code == 2, done.err
    assert done.out == ""
    assert part in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert len(done.err) < 1500
    assert "Traceback" not in done.err
    assert sorted(os.listdir(tmp_path)) == left


@pytest.fixture
def no_hydra(monkeypatch):
    """Composing with Hydra is an error: what is refused must be refused before."""

    def started(*_, **__):
        raise AssertionError("Hydra was started")

    monkeypatch.setattr(compose, "hydra_compose", started)
    monkeypatch.setattr(compose, "_compose", compose._compose.__wrapped__)  # nothing is remembered


@pytest.mark.parametrize("word", list(WORDS), ids=lambda word: word[:60].encode("unicode_escape"))
def test_hostile_words(dperm, tmp_path, word):
    assert_refused(dperm("run", word), tmp_path, WORDS[word], [])


@pytest.mark.parametrize("word", [word for word in WORDS if "_target_" in word or "hydra" in word])
def test_refused_before_hydra_starts(dperm, tmp_path, word, no_hydra):
    if not word.startswith("++mechanism."):  # its keys are those of the composed mechanism
        assert_refused(dperm("run", word), tmp_path, WORDS[word], [])


@pytest.mark.parametrize("word", list(SWEEPS))
def test_hostile_sweeps(dperm, tmp_path, word):
    assert_refused(dperm("run", "-m", word), tmp_path, SWEEPS[word], [])


def test_a_sweep_without_end_is_counted_before_it_is_made(dperm, tmp_path):
    words = ("epsilon=range(1,9000)", "seed=range(0,9000)", "trials=range(1,9000)")
    done = dperm("run", "-m", *words)
    assert_refused(done, tmp_path, f"at most {MOST_CELLS}", [])


@pytest.mark.parametrize("text", list(FILES), ids=lambda text: text[:50])
def test_hostile_files(dperm, tmp_path, text):
    verb = "describe" if text == BOMB else "run"
    evil(tmp_path, text)
    done = dperm(verb, "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, FILES[text], ["mine"])
    assert os.listdir(tmp_path / "mine" / "mechanism") == ["evil.yaml"]


HYDRA = compose.hydra_compose


@pytest.mark.parametrize("text", list(FILES), ids=lambda text: text[:50])
def test_hydra_never_sees_a_users_file(tmp_path, text, no_hydra):
    evil(tmp_path, text)
    folder = user_yaml.Folder.given(str(tmp_path / "mine"))
    try:
        folder.load("mechanism", "evil")
    except InputError:
        return
    assert FILES[text].startswith("mechanism=")  # a plain file with an unknown name


def test_only_shipped_files_reach_hydra(dperm, tmp_path, monkeypatch):
    seen = []

    def watched(name, overrides):
        seen.extend(overrides)
        return HYDRA(name, overrides)

    monkeypatch.setattr(compose, "hydra_compose", watched)
    monkeypatch.setattr(compose, "_compose", compose._compose.__wrapped__)
    evil(tmp_path, "name: noisy_gd\nsteps: 3\n", "short")
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=short", "loss=hinge")
    assert done.code == 0, done.err
    assert '"steps":3' in done.out
    assert set(seen) == {"loss=hinge"}


def test_numbers_are_read_as_in_the_shipped_files(tmp_path):
    from omegaconf import OmegaConf

    for group in catalogue.GROUPS:
        for name in catalogue.choices(group):
            path = ROOT / "conf" / group / f"{name}.yaml"
            own = user_yaml.read(group, name, path, ROOT)
            assert own == OmegaConf.to_container(OmegaConf.load(path))
    evil(tmp_path, "name: x\na: 1e5\nb: -2E-3\nc: .5\nd: .nan\ne: 1_000\nf: 2001-01-01\ng: null\n")
    found = user_yaml.Folder.given(str(tmp_path / "mine")).load("mechanism", "evil")
    assert [found[key] for key in "abcefg"] == [1e5, -2e-3, 0.5, 1000, "2001-01-01", None]
    assert found["d"] != found["d"]


@pytest.mark.parametrize(
    "name", ["Evil", "evil-1", "évil", "..", ".", "a b", "evil.yaml", "", "evil/../evil", "x" * 300]
)
def test_file_names_have_one_alphabet(dperm, tmp_path, name):
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    if "/" not in name and len(name) < 200:
        (folder / f"{name}.yaml").write_text("name: noisy_gd\n")
    done = dperm("run", "--config-dir", "mine", f"mechanism='{name}'")
    assert_refused(done, tmp_path, "mechanism=", ["mine"])


def test_a_shipped_name_cannot_be_taken(dperm, tmp_path):
    evil(tmp_path, "name: noisy_sgd\n", "noisy_gd")
    done = dperm("run", "--config-dir", "mine", "mechanism=noisy_gd")
    assert_refused(done, tmp_path, "shipped name", ["mine"])


def test_links_pipes_and_folders_in_the_users_folder(dperm, tmp_path):
    outside = tmp_path / "secret.yaml"
    outside.write_text("name: noisy_gd\n")
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    (folder / "link.yaml").symlink_to(outside)
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    (folder / "gone.yaml").symlink_to("nowhere.yaml")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    (folder / "good.yaml").write_text("name: noisy_gd\nsteps: 3\n")
    (folder / "alias.yaml").symlink_to("good.yaml")
    expected = {
        "link": "leads out", "device": "leads out", "folder": "cannot be read|not a regular",
        "pipe": "not a regular", "gone": "cannot be read", "loop": "cannot be read",
    }  # fmt: skip
    for name, part in expected.items():
        done = dperm("run", "--config-dir", "mine", f"mechanism={name}")
        assert any(p in done.err for p in part.split("|")), done.err
        assert_refused(done, tmp_path, f"mechanism={name}", ["mine", "secret.yaml"])
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=alias")
    assert done.code == 0, done.err
    whole = tmp_path / "other"
    whole.symlink_to(tmp_path / "mine")
    assert dperm("run", "--cfg", "job", "--config-dir", "other", "mechanism=good").code == 0


def test_a_linked_group_does_not_lead_out(dperm, tmp_path):
    (tmp_path / "mine").mkdir()
    evil(tmp_path / "elsewhere", "name: noisy_gd\n")
    (tmp_path / "mine" / "mechanism").symlink_to(tmp_path / "elsewhere" / "mine" / "mechanism")
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, "leads out", ["elsewhere", "mine"])


def test_other_files_of_the_users_folder_are_not_read(dperm, tmp_path):
    """A primary configuration, Hydra's own groups and Python beside the choices do nothing."""
    evil(tmp_path, "name: noisy_gd\nsteps: 3\n", "good")
    evil(tmp_path, f"callbacks:\n  x: {RUNS}\n", "default", "hydra/callbacks")
    payload = f"hydra:\n  callbacks:\n    x: {RUNS}\nepsilon: 99\n"
    (tmp_path / "mine" / "config.yaml").write_text(payload)
    (tmp_path / "mine" / "hydra_plugins").mkdir()
    (tmp_path / "mine" / "hydra_plugins" / "x.py").write_text("open('owned', 'w')\n")
    (tmp_path / "mine" / "sitecustomize.py").write_text("open('owned', 'w')\n")
    done = dperm("run", "--cfg", "job", "--config-dir", "mine", "mechanism=good")
    assert done.code == 0, done.err
    assert '"epsilon":1' in done.out
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("words", [("path", "../a9a"), ("fetch", "/etc/passwd"), ("verify", "..")])
def test_data_verbs_look_names_up(dperm, tmp_path, words):
    assert_refused(dperm("data", *words), tmp_path, "dataset=", [])


@pytest.mark.parametrize(
    "text", [b"name: noisy_gd\nsteps: \xff\n", b"\x80\x02c__builtin__\neval\n", b"\0" * 100]
)
def test_files_that_are_no_text(dperm, tmp_path, text):
    evil(tmp_path, text)
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert_refused(done, tmp_path, "mechanism=evil", ["mine"])


SUBPROCESS = {
    "target": "name: noisy_gd\n_target_: os.mkdir\npath: owned\n",
    "callbacks": f"# @package _global_\nname: noisy_gd\nhydra:\n  callbacks:\n    x: {RUNS}\n",
    "searchpath": "name: noisy_gd\nhydra:\n  searchpath: [file:///etc]\n",
    "bomb": BOMB,
}


def test_payloads_through_a_new_process(tmp_path):
    """From the shell, as a user would: exit 2, one line, an empty folder. One start serves all."""
    for name, text in SUBPROCESS.items():
        evil(tmp_path, text, name)
    (tmp_path / "work").mkdir()
    calls = [["--config-dir", "../mine", f"mechanism={name}"] for name in SUBPROCESS]
    calls += [["mechanism=../x"], [f"hydra.callbacks.x={RUNS}"], ["hydra.run.dir=owned"]]
    script = f"""
import sys
from dperm_cli.cli import main
for words in {calls!r}:
    print(main(["run", *words]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "work", capture_output=True, text=True,
        timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["2"] * len(calls), done.stderr
    assert len(done.stderr.splitlines()) == len(calls)
    assert os.listdir(tmp_path / "work") == []
    assert sorted(os.listdir(tmp_path)) == ["mine", "work"]


def test_output_names_are_made_of_registered_names(dperm, tmp_path):
    """Whatever was typed, the study's folder is built of plug-in names and a digest."""
    from dperm_cli.runner import plan
    from dperm_cli.runner.overrides import parse

    study = plan.plan(parse(["mechanism=[noisy_gd,noisy_sgd]", "dataset=[digits,breast_cancer]",
                             "loss=[auto]", "epsilon=[1,2]"]))  # fmt: skip
    assert user_yaml.NAME.fullmatch(study.name.replace("-", "_"))
    assert study.out == f"outputs/{study.name}"


@pytest.mark.parametrize("cell", ["../x", "/x", "a/b", "", ".", "a" * 200, "a\0b", "..", "a.b"])
def test_record_names_cannot_leave_the_store(tmp_path, cell):
    from dperm_cli.results.store import Store

    store = Store(tmp_path / "out")
    with pytest.raises(ValueError, match="hash"):
        store.path(cell)
    with pytest.raises(ValueError, match="hash"):
        store.write_manifest({"cells": [cell]})
    assert os.listdir(tmp_path) == []


def test_a_forged_manifest_reads_nothing(dperm, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"cells": ["../../secret"]}')
    done = dperm("report", "out")
    assert done.code == 2
    assert sorted(os.listdir(tmp_path / "out")) == ["manifest.json"]


def test_links_in_the_output_folder_are_replaced_and_not_followed(tmp_path):
    from dperm_cli.results.store import atomic_write

    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "table.csv").symlink_to(precious)
    atomic_write(tmp_path / "table.csv", b"new")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "table.csv").is_symlink()


def test_names_are_looked_up_never_imported():
    for name in ("os", "os.path", "../core/rng", "_protocol", "__init__", "noisy_gd.__class__", ""):
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
POOLS = {ROOT / "dperm_cli" / "runner" / "backends.py"}
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
    if dotted == "yaml.load" and ast.unparse(node.args[-1]) != "_Loader":
        found.append("yaml.load")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "dperm_cli")))
def test_no_pickle_and_no_way_to_name_code(path):
    # joblib hands cells to processes of its own; it reads no file and no word of the user's
    allowed = {"joblib", "joblib.externals.loky.process_executor"} if path in POOLS else set()
    assert set(dangers(ast.parse(path.read_text()))) - allowed == set()


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
    users = [p.name for p in SOURCES if "import_module(" in p.read_text()]
    # _outside: one library, by names written there
    assert set(users) <= {"registry.py", "_registry.py", "code.py", "_outside.py"}
