"""The contracts that ``dperm check`` tries on plug-ins from outside hold for all shipped ones."""

from __future__ import annotations

import pytest

from dperm_cli.audit.contracts import mechanism_neighbours, suite
from dperm_cli.audit.contracts.mechanism_contract import excess_share
from dperm_cli.audit.contracts.mechanism_subject import make_subject
from dperm_cli.audit.contracts.promises import NotTried, list_promises
from dperm_cli.bounds import all_bounds
from dperm_cli.core import registry
from dperm_cli.privacy import events
from dperm_cli.views.choose import is_local

# they take a second and more; other files of this folder release with each mechanism
LONG = (
    "noisy_sgd", "high_probability", "huberized", "kernel_non_interactive", "localization",
    "kernel_semi_interactive", "standard_projection", "projected", "output_perturbation",
    "objective_perturbation", "approximate_minima_perturbation", "random_features",
    "kernel_interactive", "mala", "hit_and_run", "zipf_regression", "lp_ball",
    "private_selection", "auto", "local_mirror_descent", "proximal",
)  # fmt: skip
# what needs a file, or a download
FILES = [
    name
    for name in registry.names("dataset")
    if registry.load("dataset", name).where in ("file", "registered")
]
FREE = ("kernel", "constraint", "loss", "dataset", "sampler")


def shipped():
    for kind in FREE:
        for name in registry.list_shipped(kind):
            if name not in FILES:
                yield make_case(kind, name, registry.load(kind, name))
    for bound in all_bounds.ALL:
        yield pytest.param("bound", bound.id, bound, id=f"bound-{bound.id}")
    for name in events.list_shipped():
        yield pytest.param("event", name, vars(events)[name], id=f"event-{name}")
    for name in registry.list_protective():
        yield make_case("mechanism", name, registry.load("mechanism", name))


def make_case(kind, name, made):
    marks = [pytest.mark.slow] if name in LONG else []
    return pytest.param(kind, name, made, id=f"{kind}-{name}", marks=marks)


@pytest.mark.parametrize(("kind", "name", "made"), list(shipped()))
def test_every_shipped_plugin_keeps_its_promises(kind, name, made):
    findings = suite.check_one(kind, name, made)
    assert not [one for one in findings if one.is_broken]
    if kind in ("mechanism", "loss", "constraint"):
        tried = [one for one in findings if one.verdict == "ok"]
        assert len(tried) >= 0.6 * len(findings)


@pytest.mark.parametrize("name", registry.list_protective())
def test_large_epsilon_recovers_the_optimum(name):
    """What dperm ships comes much nearer than ``dperm check`` asks of others."""
    made = registry.load("mechanism", name)
    try:
        share = excess_share(make_subject(made))
    except NotTried:
        assert made().space == "kernel"
        return
    assert share < 0.05


def test_every_kind_of_plugin_has_promises_that_say_how_to_mend():
    for kind, modules in suite.CONTRACTS.items():
        found = [one for module in modules for one in list_promises(module)]
        assert len(found) >= 3, kind
        assert len({one.text for one in found}) == len(found)
        assert all(len(one.mend) > 20 for one in found)


def test_only_mechanisms_of_local_trust_are_left_to_the_audit():
    for name in registry.list_protective():
        subject = make_subject(registry.load("mechanism", name))
        if is_local(subject.whole):
            with pytest.raises(NotTried, match="dperm audit"):
                mechanism_neighbours.check_attack(subject)
