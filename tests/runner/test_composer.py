"""Configurations put together from choices that Hydra composed one by one."""

from __future__ import annotations

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.runner.compose import composer


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"dataset": "csv", "mechanism": "huberized"},
        {"dataset": "digits", "mechanism": "localization", "privacy": "pure", "loss": "hinge",
         "constraint": "l1_ball", "sampler": "net"},
    ],
)  # fmt: skip
def test_a_combination_is_what_hydra_composes_at_once(chosen):
    whole = composer._compose(find_shipped("conf"), *(f"{g}={name}" for g, name in chosen.items()))
    found = composer.Composer().compose(chosen)
    assert found == whole
    assert list(found) == list(whole)


def test_a_choice_is_composed_once_in_a_process(monkeypatch):
    composer.Composer().compose({"dataset": "digits", "loss": "hinge"})
    monkeypatch.setattr(composer, "hydra_compose", None)
    found = composer.Composer().compose({"dataset": "digits", "loss": "hinge"})
    assert found["dataset"]["name"] == "digits"
    with pytest.raises(InputError, match="dataset=none_such"):
        composer.Composer().compose({"dataset": "none_such"})
