"""The rule that tells a bare participle from a verb, a noun and a noun with its attribute."""

from __future__ import annotations

import pytest

from tests.structure import measure
from tests.structure.measure import House
from tests.structure.words import is_bare_participle, is_participle

PARTICIPLES = """
    opened found shown _joined checked clipped drawing held kept told rebuilt unheard unsolved
    tried typed freed guaranteed agreed listening padded asked_for carried_out told_apart
    sampled_as_printed mapped_by_place as_printed not_given unless_heard epsilon_asked
    rows_joined steps_needed held_out moved_up planned_and_replayed all_shown printed_2 printed_a
    __Opened saw drew left_alone smoothing missing
"""
OTHERS = """
    seed speed need exceed embed hundred red naked bed shed thing string nothing ring bring ceiling
    rounding setting mapping padding clipping docstring
    read split set put run cut spread open check list
    open_cell check_opened is_sorted has_changed find_missing was_seen list_queued require_signed
    sorted_rows expected_norm missing_rows fixed_point rising_crossing one_sided list_valued
    bound gradient_bound noise_scale cross_as_printed chosen_m of_records by_cell within within_ball
    __enter__ __reversed__ _ __ settings warnings present record
"""


@pytest.mark.parametrize("name", PARTICIPLES.split())
def test_bare_participles(name):
    assert is_bare_participle(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names(name):
    assert not is_bare_participle(name)


@pytest.mark.parametrize("word", ["agreed", "decreed", "freed", "guaranteed"])
def test_participles_among_the_words_in_eed(word):
    assert is_participle(word)


def test_functions_of_all_kinds_count_and_other_names_do_not(tmp_path):
    text = '''"""def opened(): ..."""
from functools import cached_property, partial as p
from house.core.b import open_cell as opened, SIZE as padded
found = lambda: 1
drawn = p(print, 1)
closed = open_cell = opened
made = 3
class Checked:
    sorted_rows: int
    listed: bool = False
    seen = property(lambda self: 1)
    def kept(self): ...
    @property
    def held(self): ...
    @cached_property
    def _told(self): ...
    async def sent(self, asked):
        given = asked
        def lost(): ...
        return given, lost
    def __reversed__(self): ...
'''
    folder = tmp_path / "house" / "core"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(text)
    (folder / "b.py").write_text("SIZE = 1\ndef open_cell(): ...\n")
    places = measure.measure(House(tmp_path, "house"), "participles").places
    names = "opened found drawn closed seen kept held _told sent lost"
    assert " ".join(place.text for place in places) == names
