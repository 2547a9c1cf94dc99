"""The gallery of all figures: each study in it can be drawn, and its page names them."""

from __future__ import annotations

import pytest

from dperm_cli.core import catalogue
from tests import draw_gallery


@pytest.mark.slow
@pytest.mark.parametrize("name", draw_gallery.STUDIES)
def test_a_study_of_the_gallery(name, tmp_path, monkeypatch):
    """Each by itself at one trial, as the whole takes minutes; no kept experiment."""
    words, reports = draw_gallery.STUDIES[name]
    quick = tuple("trials=1" if word.startswith("trials=") else word for word in words)
    monkeypatch.setattr(draw_gallery, "STUDIES", {name: (quick, reports)})
    monkeypatch.setattr(draw_gallery, "OTHERS", {})
    (tmp_path / "kept").mkdir()
    draw_gallery.main([str(tmp_path / "out"), str(tmp_path / "kept")])
    page = (tmp_path / "out" / "index.html").read_text()
    for i in range(len(reports)):
        assert f"src='{name}_{i}_single.png'" in page
    assert page.count("<figure>") == page.count("<figcaption>") == 2 * len(reports) + 1
    assert "width:3.3in" in page


def test_the_page_shows_each_figure_at_its_width_with_its_caption(tmp_path):
    for theme in ("single", "double"):
        (tmp_path / f"study_0_{theme}.png").write_bytes(b"")
    (tmp_path / "study_0_single.md").write_text("what <is> seen\n")
    (tmp_path / "other.txt").write_text("no figure")
    page = draw_gallery.write_page(tmp_path)
    assert page.count("<figure>") == 2
    assert "width:3.3in' src='study_0_single.png'><figcaption>what &lt;is&gt; seen" in page
    assert "width:6.9in' src='study_0_double.png'><figcaption></figcaption>" in page


def test_ranks_and_slopes_are_in_the_gallery(tmp_path, monkeypatch):
    reports = [words for _, many in draw_gallery.STUDIES.values() for words in many]
    assert ("ranks=true", "slopes=true") in reports

    def write(verb, folder, *words):
        if verb == "report":
            made = {"figure.png": b"a", "figure.caption.md": b"seen"}
            made |= {"ranks.png": b"b", "slopes.csv": b"slope"} if "ranks=true" in words else {}
            for name, content in made.items():
                (tmp_path / "out" / "work" / "data_sets" / name).write_bytes(content)
        elif verb == "run":
            (tmp_path / "out" / "work" / "data_sets").mkdir(parents=True)

    monkeypatch.setattr(draw_gallery, "call", write)
    monkeypatch.setattr(draw_gallery, "STUDIES", {"data_sets": draw_gallery.STUDIES["data_sets"]})
    monkeypatch.setattr(draw_gallery, "OTHERS", {})
    draw_gallery.main([str(tmp_path / "out"), str(tmp_path)])
    kept = [(tmp_path / "out" / f"data_sets_{i}_single.png").read_bytes() for i in range(3)]
    assert kept == [b"a", b"a", b"b"]
    assert (tmp_path / "out" / "data_sets_2_double.md").read_text() == "slope"


def test_an_experiment_is_drawn_from_kept_records(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(draw_gallery, "STUDIES", {})
    monkeypatch.setattr(draw_gallery, "OTHERS", {})
    monkeypatch.setattr(draw_gallery, "call", lambda *words: said.append(words))
    for name in catalogue.choices("experiment"):
        (tmp_path / "kept" / name / "records").mkdir(parents=True)
    draw_gallery.main([str(tmp_path / "out"), str(tmp_path / "kept")])
    assert len(said) == len(catalogue.choices("experiment"))
    assert all(words[0] == "report" for words in said)
