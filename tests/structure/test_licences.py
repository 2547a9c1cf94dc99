"""docs/licences.md lists every package that comes with dperm, and none that restricts its users."""

from __future__ import annotations

import re
from importlib import metadata

import pytest

from tests import licences

ROWS = (licences.ROOT / "docs/licences.md").read_text().partition("|---|\n")[2]
PAGE = dict(re.findall(r"^\| ([a-z0-9-]+) \| (.+?) \| ", ROWS, re.M))
HERE = [name for name in licences.find_packages() if name in PAGE]
TRIED_WITH = dict(
    line.split("==")
    for line in (licences.ROOT / "constraints.txt").read_text().lower().splitlines()
    if "==" in line
)


def test_every_package_that_comes_along_is_listed():
    missing = set(licences.find_packages()) - set(PAGE)
    assert missing == set(), "make licences"
    assert {"numpy", "scikit-learn", "onnx", "submitit", "distributed"} <= set(PAGE)


@pytest.mark.parametrize("name", PAGE)
def test_a_licence_leaves_users_free(name):
    assert [term for term in licences.list_terms(PAGE[name]) if term not in licences.ALLOWED] == []


def test_the_page_says_what_packages_declare():
    """Of the versions that the tests were made with; another version may say it in other words."""
    tried = {licences.normalise(name): version for name, version in TRIED_WITH.items()}
    compared = []
    for name in HERE:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:  # an extra that is not installed
            continue
        if version == tried.get(name):
            assert licences.read_licence(name) == PAGE[name], name
            compared.append(name)
    assert compared


def test_every_package_has_a_version_in_constraints():
    """So that what is listed is what `make run` installs."""
    tried = {licences.normalise(name) for name in TRIED_WITH}
    assert set(PAGE) - tried == set()
