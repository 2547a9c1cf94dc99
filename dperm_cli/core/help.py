"""Write help texts from the catalogue: the choices of each group and the meaning of each key."""

from __future__ import annotations

import os
import textwrap

from dperm_cli.core import catalogue, checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax

_PAGE_WIDTH = 100
_SETTING_WIDTH = 38

RUN_HEAD = """\
usage: dperm run [-m] [--config-dir DIR] [--cfg job] [KEY=VALUE ...]

Composes a configuration from the groups below, runs every cell and writes records, tables
and figures to out=outputs/<study>. A cell whose record exists is looked up, not run again.

groups (GROUP=NAME; `dperm list GROUP` describes each)"""

RUN_TAIL = """\
several values: 'epsilon=[0.1,1,10]' in one run, or -m epsilon=0.1,1,10 mechanism=noisy_sgd,noisy_gd
your own files: --config-dir DIR with DIR/dataset/mine.yaml, then dataset=mine
look first:     --cfg job prints the cells without running them

examples
  dperm run mechanism=noisy_sgd epsilon=0.1
  dperm run -m mechanism=noisy_sgd,noisy_gd epsilon=0.1,1,10 trials=20
  dperm run dataset=csv dataset.path=a.csv dataset.target=label 'dataset.labels={yes: 1, no: -1}'"""


def run_help() -> str:
    """The text of ``dperm run --help``."""
    lines = [RUN_HEAD]
    for group in catalogue.GROUPS:
        lines.append(f"  {group:<11}{' '.join(catalogue.choices(group))}")
    lines += ["", "keys and their defaults"]
    lines += _settings(catalogue.top_level(), "  ")
    for group, name in catalogue.defaults().items():
        keys = catalogue.settings(group, catalogue.choices(group)[name])
        lines += [f"  with {group}={name}:"] if keys else []
        lines += _settings(keys, f"    {group}.")
    return "\n".join([*lines, "", RUN_TAIL])


ACCOUNT = """\
usage: dperm account [KEY=VALUE ...]

The noise a mechanism needs for a budget, and the budget that a noise scale is certified for, from
public facts alone: no data are read. Prints a table and draws epsilon against noise and certified
against nominal epsilon. Several values: epsilon=0.1,1,10.

keys
  mechanism     {mechanisms}, or all (the default)
  calibration   tight (least certified noise) or paper (the scale as printed)
  n             number of records (1000)
  epsilon       the budget (1); or instead of it
  noise_scale   the noise, in the mechanism's unit: prints the epsilon it is certified for
  delta         auto is 1/n^2
  L             Lipschitz constant of one record's loss (1)
  radius        of the l2 ball (1); or constraint=NAME constraint.KEY=VALUE as in dperm run
  p             number of parameters (10)
  ridge, lasso, smoothness, privacy, privacy.relation, mechanism.KEY   as in dperm run
  format        table or json (one object a row); out=FOLDER
  figure        true, false or auto (drawn for several rows, and where out= is given)

examples
  dperm account mechanism=noisy_sgd calibration=paper n=1000 epsilon=1 delta=1e-6
  dperm account n=1e4 epsilon=0.1,1,10 format=json
  dperm account mechanism=noisy_gd mechanism.steps=100 noise_scale=84.5 delta=1e-6"""


def account_help() -> str:
    """The text of ``dperm account --help``."""
    return ACCOUNT.format(mechanisms=", ".join(catalogue.choices("mechanism")))


def list_text(arguments: list[str]) -> str:
    """The text of ``dperm list [--config-dir DIR] [group ...]``."""
    words = Syntax(options=CONFIG_DIR).split(arguments)
    groups, folder = words.operands, words.options.get("--config-dir")
    if folder is not None and not os.path.isdir(folder):
        raise InputError("--config-dir", folder, "must be an existing folder")
    for word in groups:
        checks.choice("group", word, catalogue.LISTED_GROUPS)
    shown = groups or catalogue.LISTED_GROUPS
    return "\n\n".join(_list_group(group, folder, keys=bool(groups)) for group in shown)


def _list_group(group: str, folder: str | None, keys: bool) -> str:
    # an experiment is a verb's operand and a file of its own form: its keys are not settings
    keys = keys and group in catalogue.GROUPS
    found = catalogue.choices(group, folder)
    width = max((len(name) for name in found), default=0) + 2
    lines = [f"{group}="]
    for choice in found.values():
        lines += _wrap_text(choice.summary, f"  {choice.name:<{width}}")
        if keys and choice.width:
            lines += _wrap_text(f"Gaussian width {choice.width}", " " * (width + 2))
        if keys:
            lines += _settings(catalogue.settings(group, choice), f"      {group}.")
    return "\n".join(lines)


def _settings(settings: list[catalogue.Setting], indent: str) -> list[str]:
    """``key: default`` in one column and its meaning in another."""
    lines = []
    for setting in settings:
        lines += _wrap_text(setting.meaning, f"{indent}{setting.line}".ljust(_SETTING_WIDTH) + "  ")
    return lines


def _wrap_text(text: str, head: str) -> list[str]:
    """The text after its head, on as many lines as the page's width takes."""
    parts = textwrap.wrap(text, max(_PAGE_WIDTH - len(head), 40), break_on_hyphens=False) or [""]
    rest = [" " * len(head) + part for part in parts[1:]]
    return [(head + parts[0]).rstrip(), *rest]
