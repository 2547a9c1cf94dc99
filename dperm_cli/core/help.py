"""Help texts made from the catalogue: what can be chosen and what each key means."""

from __future__ import annotations

from dperm_cli.core import catalogue
from dperm_cli.core.errors import InputError

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
    lines += [f"  {line}" for line in catalogue.top_level()]
    for group, name in catalogue.defaults().items():
        keys = catalogue.choices(group)[name].keys
        lines += [f"  with {group}={name}:"] if keys else []
        lines += [f"    {group}.{key}" for key in keys]
    return "\n".join([*lines, "", RUN_TAIL])


def listing(arguments: list[str]) -> str:
    """The text of ``dperm list [group]``."""
    if not arguments:
        return "\n\n".join(_group(group, keys=False) for group in catalogue.GROUPS)
    for word in arguments:
        if word not in catalogue.GROUPS:
            allowed = f"must be one of {', '.join(catalogue.GROUPS)}"
            raise InputError("group", word, allowed, catalogue.GROUPS)
    return "\n\n".join(_group(group, keys=True) for group in arguments)


def _group(group: str, keys: bool) -> str:
    found = catalogue.choices(group)
    width = max((len(name) for name in found), default=0) + 2
    lines = [f"{group}="]
    for choice in found.values():
        lines.append(f"  {choice.name:<{width}}{choice.summary}")
        if keys:
            lines += [f"  {'':<{width}}  {group}.{key}" for key in choice.keys]
    return "\n".join(lines)
