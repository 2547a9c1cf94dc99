"""Payloads of the tests of hostile configuration, and what a refusal must look like.

Every payload would create a file named ``owned`` if any part of it ran.
"""

from __future__ import annotations

import os
from pathlib import Path

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
    "mechanism=base": "mechanism=base",
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
    "name: base\n": "mechanism=base",
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
