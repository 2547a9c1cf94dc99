"""Configurations put together from choices that Hydra composed one by one."""

from __future__ import annotations

import os

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.runner.compose import composer, shipped_files


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
    whole = shipped_files.compose(
        find_shipped("conf"), *(f"{g}={name}" for g, name in chosen.items())
    )
    found = composer.Composer().compose(chosen)
    assert found == whole
    assert list(found) == list(whole)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nothing is known of earlier compositions; the list of those that Hydra makes from now on."""
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(shipped_files, "compose", shipped_files.compose.__wrapped__)
    made, with_hydra = [], shipped_files._compose_with_hydra

    def watch(root, overrides):
        made.append(overrides)
        return with_hydra(root, overrides)

    monkeypatch.setattr(shipped_files, "_compose_with_hydra", watch)
    return made


def list_kept(folder):
    return sorted((folder / shipped_files.FOLDER).iterdir())


def test_a_choice_is_composed_once_and_kept(fresh, tmp_path):
    once = composer.Composer().compose({"dataset": "digits", "loss": "hinge"})
    assert fresh == [("dataset=digits",), ("loss=hinge",), ()]
    again = composer.Composer().compose({"dataset": "digits", "loss": "hinge"})
    assert len(fresh) == 3
    assert again == once
    assert [list(part) for part in (again, again["loss"])] == [list(once), list(once["loss"])]
    assert len(list_kept(tmp_path)) == 3
    with pytest.raises(InputError, match="dataset=none_such"):
        composer.Composer().compose({"dataset": "none_such"})


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"digest": "", "config": {"epsilon": 9}}'])
def test_what_is_damaged_is_composed_anew(fresh, tmp_path, damage):
    once = composer.Composer().compose({})
    for kept in list_kept(tmp_path):
        kept.write_text(damage)
    assert composer.Composer().compose({}) == once
    assert fresh == [(), ()]


@pytest.mark.skipif(os.name != "posix", reason="rights of files as POSIX has them")
def test_what_others_can_write_is_composed_anew(fresh, tmp_path):
    once = composer.Composer().compose({})
    (kept,) = list_kept(tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.chmod(0o620)
    assert composer.Composer().compose({}) == once
    assert fresh == [(), ()]


def test_a_file_under_the_name_of_another_is_composed_anew(fresh, tmp_path):
    usual = composer.Composer().compose({})
    (kept,) = list_kept(tmp_path)
    composer.Composer().compose({"privacy": "local"})
    (other,) = set(list_kept(tmp_path)) - {kept}
    kept.write_bytes(other.read_bytes())
    assert composer.Composer().compose({}) == usual
    assert fresh == [(), ("privacy=local",), ()]


def test_changed_files_are_composed_anew(fresh, tmp_path):
    root = tmp_path / "conf"
    root.mkdir()
    (root / "config.yaml").write_text("epsilon: 1.0\n")
    assert shipped_files.compose(str(root)) == {"epsilon": 1.0}
    (root / "config.yaml").write_text("epsilon: 2.0\n")
    shipped_files._identify_files.cache_clear()
    assert shipped_files.compose(str(root)) == {"epsilon": 2.0}
    assert fresh == [(), ()]


def test_a_folder_that_cannot_be_written_is_no_cache(fresh, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "file"))
    assert composer.Composer().compose({})["trials"] == 10
