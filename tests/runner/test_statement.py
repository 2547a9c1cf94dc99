"""The statement on a release: a function of what is publishable and of declared answers alone."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import subprocess
import typing
import warnings
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
import yaml

import dperm_cli
from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import table_schema
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.privacy.events import Channel, Gaussian, Pure
from dperm_cli.privacy.metrics.joint_plan import PrivateMetrics
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.models.evaluated_release import (
    EvaluatedRelease,
    StoredEvaluation,
    read_beside,
)
from dperm_cli.runner.models.input_schema import InputSchema
from dperm_cli.runner.models.publishable import FeatureMap, Publishable, ReleaseFacts
from dperm_cli.runner.statements import answers, html_page, page_flow, pdf_pages, registry_entry
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.facts import build_statement
from dperm_cli.runner.statements.layers import NAMES
from dperm_cli.runner.statements.number_words import (
    format_number,
    format_percent,
    round_up,
)
from dperm_cli.runner.statements.questions import QUESTIONS
from dperm_cli.runner.verbs.statement import FORMATS, write_statement

ROOM = Path(inspect.getfile(build_statement)).parent
SCHEMA = yaml.safe_load((Path(__file__).parent / "registry/deployments-schema.yaml").read_text())
FACTS = ReleaseFacts("logistic", "l2_ball", 10.0, 0.0, 0.0, 1.0, 20_000, "public")
COLUMNS = InputSchema(
    "csv", "binary", 2, ("age", "pulse"), "state", labels=(("ill", 1.0), ("well", -1.0))
)
KEYS = ("level_of_intervals", "metrics", "event")  # of every evaluation
MU = 0.2366994
FILLED = {
    "url_slug": "ward-model", "name": "Ward model", "data_curators": ["County hospital"],
    "description": "Predicts an illness.", "intended_use": "Planning of beds.",
    "region": "Example county", "publication_date": "2026-11-23",
    "registry_authors": ["A. Person"],
}  # fmt: skip


def make(**changed):
    """A linear model with Gaussian noise of (1, 1e-6), and what a test changes of it."""
    given = {
        "version": "0.6.0", "mechanism": "noisy_gd", "relation": "replace_one", "delta": 1e-6,
        "events": (Gaussian(2.0 / MU, record_norm=1.0),), "steps": 1, "noise": "secure",
        "arithmetic": "grid 2^-44", "facts": FACTS, "schema": COLUMNS, "features": None,
        "theta": np.array([0.5, -0.25]),
    }  # fmt: skip
    return Publishable(**(given | changed))


def make_local():
    return make(events=(Channel(1.0),), delta=0.0, mechanism="local_sgd")


def make_kernel():
    points = FeatureMap("landmarks", Rbf(), {"points": np.ones((3, 2)), "basis": np.eye(3)},
                        "held-out")  # fmt: skip
    return make(features=points, theta=np.zeros(3), noise="research")


def make_regression():
    columns = InputSchema("npz", "regression", 2, target_bounds=(0.0, 9.0), scaling="bounds",
                          bounds=(-1.0, 1.0), intercept=True)  # fmt: skip
    facts = dataclasses.replace(FACTS, population_source="declared", ridge=0.1)
    return make(schema=columns, relation="add_remove", facts=facts, theta=np.zeros(3))


TABLE = {
    "unit": {"column": "patient", "at_most": 3},
    "target": {"column": "stay", "kind": "number", "bounds": [1, 100], "transform": "log"},
    "columns": {
        "patient": {"kind": "identifier"}, "age": {"kind": "number", "bounds": [0, 100]},
        "ward": {"kind": "category", "values": ["a", "b"]},
    },
}  # fmt: skip
CLASSES = {
    "target": {"column": "ward", "classes": ["a", "b", "c"]},
    "columns": {"age": {"kind": "number", "bounds": [0, 100]}},
}


def make_table(plain):
    """A model of a table with a declared schema."""
    table = table_schema.parse_schema(plain)
    names = [name for name in table.names if name != table_schema.CONSTANT]
    schema = InputSchema("table", table.task, len(names), tuple(names), table.target.column,
                         labels=table.target.labels, target_bounds=table.target.model_bounds,
                         intercept=True, table=table)  # fmt: skip
    return make(schema=schema, theta=np.zeros((len(names) + 1) * (3 if plain is CLASSES else 1)))


PLUGIN = (
    "mechanism mine of mine.py (no version, sha256 " + "0" * 64 + "): the guarantee rests on its "
    "own proof"
)
MODELS = {
    "linear": make,
    "pure": lambda: make(events=(Pure(1.0),), delta=0.0, mechanism="output_perturbation"),
    "local": make_local,
    "kernel": make_kernel,
    "regression": make_regression,
    "session": lambda: make(theta=None, mechanism="kernel_interactive", noise="research"),
    "plug-in": lambda: make(mechanism="mine", plugins=PLUGIN),
    "person": lambda: make_table(TABLE),
    "classes": lambda: make_table(CLASSES),
    "weak": lambda: make(events=(Pure(900.0),), delta=0.0),
}


def fill(**more):
    return answers.check(FILLED | more)


def read_text(found, given=None):
    return write_statement(found, given or Answers(), "text").decode()


def draw_longest():
    """Every answer as long as it may be."""
    text = ("word " * answers.LONGEST)[: answers.LONGEST].strip()
    given = {q.name: text for q in QUESTIONS if q.kind == "text" and not q.choices}
    return fill(**given, sector="Energy", data_source_type="Dynamic", records_per_person=7,
                data_curators=["Office " * 100] * answers.MOST_NAMES)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_equal_releases_give_equal_bytes_and_theta_is_not_looked_at(form):
    given = fill()
    first = write_statement(make(), given, form)
    assert write_statement(make(), given, form) == first
    other = make(theta=np.array([1e6, 7.125]))
    assert write_statement(other, given, form) == first


def test_the_text_knows_of_an_evaluation_beside_the_model(tmp_path):
    model = str(tmp_path / "model.npz")
    assert read_beside(model) is None
    plain = " ".join(read_text(make()).split())
    assert "the model file alone" in plain
    assert "Metrics, optima" in plain
    words = {"Accuracy": "0.8 (95% interval for the population: 0.7 to 0.9)"}
    content = json.dumps({"in_words": words, **dict.fromkeys(KEYS)})
    (tmp_path / "evaluation.json").write_text(content)
    told = write_statement(make(), Answers(), "text", read_beside(model)).decode()
    told = " ".join(told.split())
    assert "0.8 (95% interval for the population: 0.7 to 0.9)" in told
    assert "the figures of evaluation.json" in told
    assert "the model file alone" not in told
    assert "Metrics other than those of evaluation.json, optima" in told
    assert "nothing in the model file proves" in told


@pytest.mark.parametrize("form", ["text", "html", "registry"])
def test_what_is_said_follows_from_public_facts(form):
    """The comparison above tells releases apart that differ in a fact."""
    first = write_statement(make(), fill(), form)
    facts = dataclasses.replace(FACTS, population=19_999)
    assert write_statement(make(facts=facts), fill(), form) != first


def test_nothing_takes_records_paths_or_clocks():
    assert list(inspect.signature(build_statement).parameters) == [
        "found", "answers", "evaluated", "machines",
    ]  # fmt: skip
    hints = typing.get_type_hints(build_statement)
    assert hints["found"] is Publishable
    assert hints["evaluated"] == EvaluatedRelease | StoredEvaluation | None
    # noisy sums with their plan, the guarantee, and numbers that they are read with
    assert {one.name for one in dataclasses.fields(EvaluatedRelease)} == {
        "found", "guarantee", "facts"}  # fmt: skip
    assert {one.name for one in dataclasses.fields(PrivateMetrics)} == {"plan", "sums"}
    forbidden = {"time", "datetime.now", "os", "socket", "getpass", "platform", "secrets", "random"}
    for path in ROOM.glob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not forbidden & {one.name for one in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in forbidden, path
                assert not {Data.__name__, Problem.__name__} & {one.name for one in node.names}
            assert not (isinstance(node, ast.Attribute) and node.attr in ("theta", "today", "now")
                        and path.name != "release_words.py"), path  # fmt: skip


@pytest.mark.parametrize("name", list(MODELS))
def test_every_kind_of_release_has_a_statement(name):
    found = MODELS[name]()
    text = read_text(found)
    assert f"epsilon {format_number(found.person_guarantee.epsilon)}" in text
    assert all(layer in text for layer in NAMES)
    assert f"dperm {found.version}" in text
    assert b"<svg" in write_statement(found, fill(), "html")
    pages, _ = page_flow.lay_out(build_statement(found, fill()))
    assert len(pages) <= page_flow.MOST_PAGES


def test_the_numbers_of_the_risk_stand_there():
    text = read_text(make())
    for number in ("9.43 %", "1.84 %", "0.22 %", "14.81 %", "59.36 %"):
        assert f"at most {number}" in text
    assert "54.72 %" in text  # (1 + advantage) / 2
    assert "which of two values" in text
    pure = read_text(MODELS["pure"]())
    for number in ("46.22 %", "2.72 %", "0.28 %", "27.19 %", "81.61 %"):
        assert f"at most {number}" in pure


def test_numbers_are_never_rounded_down():
    rng = np.random.default_rng(0)
    for value in np.exp(rng.uniform(-30.0, 5.0, 500)):
        assert value * (1.0 - 1e-9) <= round_up(value) <= value * (1.0 + 2e-5)
        assert value * (1.0 - 1e-9) <= round_up(value, 3) <= value * 1.02
    assert format_percent(0.010001) == "1.01 %"
    assert format_percent(2.0) == "100 %"


def test_research_noise_is_not_for_release():
    text = read_text(make(noise="research"))
    assert text.count("NOT FOR RELEASE") == 2
    assert "NOT FOR RELEASE" not in read_text(make())
    assert b"NOT FOR RELEASE" in write_statement(make(noise="research"), fill(), "html")
    with pytest.raises(InputError, match="not for release"):
        write_statement(make(noise="research"), fill(), "registry")


def test_relations_units_and_counts_are_named():
    text = " ".join(read_text(make()).split())
    assert "differ in the values of one record" in text
    assert "20000 (public)" in text
    told = " ".join(read_text(make_regression()).split())
    assert "not told; at most 20000, a declared number" in told
    assert "whether one record is in the data" in told
    assert "[0, 9]" in told
    local = " ".join(read_text(make_local()).split())
    assert "One user: all answers of the user's device together" in local
    assert "local: each user's own device" in local


def test_a_person_with_several_records():
    told = " ".join(read_text(make(), fill(records_per_person=3)).split())
    assert "at most 3 records (declared): for a person the level is epsilon 2.99994" in told
    assert "delta 1.12e-5, and the membership advantage at most 28.27 %" in told
    assert "answers: records_per_person" not in told
    assert "One record is one person" in read_text(make(), fill(records_per_person=1))


def test_a_table_with_a_unit_protects_a_person():
    found = MODELS["person"]()
    told = " ".join(read_text(found).split())
    assert "differential privacy with epsilon 2.99994 and delta 1.12e-5: what the model" in told
    assert "about a person with at most 3 records is bounded" in told
    assert "whom the column patient names: at most 3 records of a person count" in told
    assert "For one record it is epsilon 0.999978, delta 1e-6" in told
    assert "records_per_person" not in told
    assert "More than one record" not in told
    assert "More than one record" in read_text(make())
    assert "Columns 2: age (number), ward (category)" in told
    assert "column stay, a number clipped to [1, 100], by its logarithm" in told
    assert "which of two sets of values" in told
    entry = registry_entry.build_entry(found, fill())["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(2.99994)
    assert "`age`, `ward`" in entry["dp_variant"]["data_domain"]


def test_classes_are_listed():
    told = " ".join(read_text(MODELS["classes"]()).split())
    assert "A classifier of 9 numbers" in told
    assert "column ward, with the classes a, b, c" in told


def test_held_out_inputs_and_plugins_are_named():
    assert "3 inputs of held-out records" in " ".join(read_text(make_kernel()).split())
    told = " ".join(read_text(MODELS["plug-in"]()).split())
    assert "none of dperm: mine is a plug-in of mine.py" in told
    assert "the guarantee rests on its own proof" in told
    assert "tests replay" not in told
    assert "--plugin" in told


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_every_mechanism_has_the_proof_page_that_is_named(name):
    from dperm_cli.runner.statements.release_words import find_proof

    page, _, version = find_proof(make(mechanism=name)).partition(" of dperm ")
    assert version == "0.6.0"
    assert (Path(dperm_cli.__file__).parents[1] / page).is_file()


def test_answers_stand_in_the_statement_and_their_lack_as_well():
    text = read_text(make())
    assert text.count("To be declared") >= 10
    assert "(answers: bias)" in text
    given = fill(bias="Nobody under 18.", actors="The ward.", access_control="Two people.",
                 side_channels="None.", collection="At admission.", people="Patients.",
                 outside_work="None.", other_releases="None.", reason_for_epsilon="Custom.",
                 signed_by="B. Officer", records_per_person=1)  # fmt: skip
    full = read_text(make(), given)
    assert "To be declared" not in full
    assert "Nobody under 18. (declared)" in full


def test_a_name_of_a_column_is_text_on_the_page():
    names = InputSchema("csv", "binary", 2, ("<script>alert(1)</script>", "a&b$x$"), "`y`")
    page = write_statement(make(schema=names), fill(name='"><img src=x>'), "html").decode()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    entry = registry_entry.format_entry(make(schema=names), fill())
    assert "`a&b$x$`" in entry
    assert write_statement(make(schema=names), fill(), "pdf").startswith(b"%PDF")


def test_the_page_loads_nothing():
    page = write_statement(make(), fill(), "html").decode()
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", page.replace("xlink:href", "href"))
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert page.count("<style") == 1
    assert "default-src 'none'" in page
    assert 'lang="en"' in page
    assert page.count('role="img"') == page.count("aria-label=") == 1
    assert page.isascii()


class Tags(HTMLParser):
    """Whether every tag that is opened is closed in its turn."""

    alone = ("meta", "!doctype")

    def __init__(self):
        super().__init__()
        self.open, self.faults = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.alone:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append((tag, self.getpos()))


@pytest.mark.parametrize("name", list(MODELS))
def test_page_and_picture_are_well_formed(name):
    page = write_statement(MODELS[name](), fill(name="<b>&"), "html").decode()
    tags = Tags()
    tags.feed(page)
    assert (tags.open, tags.faults) == ([], [])
    picture = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    assert picture.get("aria-label", "").startswith("Curve:")
    assert page.count("<th scope") == page.count("<td")


def test_the_picture_marks_a_number_of_the_list():
    risk = build_statement(make(), fill()).risk
    assert dict(risk.curve)[0.1] == risk.successes[0.1]
    rates = [rate for rate, _ in risk.curve]
    assert rates == sorted(rates)
    assert all(rate <= most <= 1.0 for rate, most in risk.curve)
    apart = max(most - rate for rate, most in risk.curve)
    assert apart == pytest.approx(risk.advantage, abs=1e-3)


def test_no_heading_stands_alone_at_the_foot_of_a_page():
    for name in MODELS:
        for words in (40, 60, 80, 100):
            given = fill(bias="word " * words, description="word " * words, people="a " * words)
            pages, _ = page_flow.lay_out(build_statement(MODELS[name](), given))
            for page in pages:
                assert page.words[-1].color != page_flow.ACCENT


@pytest.mark.parametrize("name", ["linear", "kernel"])
def test_a_statement_has_at_most_three_pages(name, tmp_path):
    columns = [f"a_rather_long_name_of_a_column_{k}" for k in range(2)]
    schema = dataclasses.replace(COLUMNS, columns=tuple(columns), labels=tuple(
        (f"a long label of a class, number {k}", 1.0 if k % 2 else -1.0) for k in range(300)
    ))  # fmt: skip
    found = dataclasses.replace(MODELS[name](), schema=schema)
    for given, most in ((Answers(), 3), (draw_longest(), 3)):
        built = build_statement(found, given)
        pages, size = page_flow.lay_out(built)
        assert len(pages) <= most
        assert size >= 7.0
        content = pdf_pages.write_pdf(built)
        (tmp_path / "s.pdf").write_bytes(content)
        assert len(re.findall(rb"/Type /Page\b", content)) == len(pages)
        assert f"font-size: {size:g}pt" in html_page.write_html(built).decode()
        for page in pages:
            assert max(one.y for one in page.words) < page_flow.PAPER[1] - page_flow.MARGIN
    assert b"CreationDate" not in content


def test_the_words_of_a_pdf_are_in_the_page():
    built = build_statement(make(), fill())
    pages, _ = page_flow.lay_out(built)
    shown = " ".join(one.text for page in pages for one in page.words)
    assert shown.split()[:4] == ["Privacy", "statement:", "Ward", "model"]
    for section in built.parts:
        assert section.title in shown
        for line in section.lines:
            assert line.text.split()[-1] in shown


@pytest.mark.parametrize(
    "name", ["linear", "pure", "local", "regression", "plug-in", "person", "classes"]
)
def test_an_entry_is_valid_under_the_schema_of_the_registry(name):
    found = MODELS[name]()
    for given in (fill(), draw_longest()):
        entry = yaml.safe_load(registry_entry.format_entry(found, given))
        jsonschema.Draft202012Validator(SCHEMA).validate(entry)
        assert entry["tier"] == 3
    shown = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert shown["epsilon"] >= found.person_guarantee.epsilon * (1.0 - 1e-9)
    assert ("delta" in shown) == (found.delta > 0.0)


def test_a_session_is_an_interactive_deployment():
    entry = registry_entry.build_entry(make(theta=None), fill())
    jsonschema.Draft202012Validator(SCHEMA).validate(entry)
    assert entry["deployment"]["basic"]["data_product_type"] == "Interactive API"
    assert entry["deployment"]["deployment_model"]["access_type"] == "Interactive"


def test_twenty_fields_of_an_entry_come_from_the_ledger():
    """Fields that are there whatever a person answers, and speak of the release."""
    one, other = (list_leaves(registry_entry.build_entry(make(), given))
                  for given in (fill(), draw_longest()))  # fmt: skip
    own = {name for name, value in one.items() if name not in list_answer_fields()}
    assert len(own) >= 20
    assert own <= set(other)
    assert not {name for name in own if one[name] == registry_entry.NOT_DECLARED}


def list_leaves(tree, prefix=""):
    found = {}
    for name, value in tree.items():
        deeper = isinstance(value, dict) and name != "privacy_parameters"
        found |= list_leaves(value, f"{prefix}{name}.") if deeper else {f"{prefix}{name}": value}
    return found


def list_answer_fields():
    """Where an entry says nothing but what a person answered."""
    entry = registry_entry.build_entry(make(), fill())
    given = [*FILLED.values(), registry_entry.NOT_DECLARED]
    return {name for name, value in list_leaves(entry).items() if value in given}


def test_letters_that_the_font_lacks_are_no_warning():
    schema = InputSchema("csv", "binary", 2, ("\u5e74\u9f62", "\u8108\u62cd"), "\u72b6\u614b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = write_statement(make(schema=schema), fill(), "html").decode()
        assert write_statement(make(schema=schema), fill(), "pdf").startswith(b"%PDF")
    assert "&#24180;&#40802;" in page


def test_pages_show_what_poppler_reads(tmp_path):
    """The file is one that another program opens."""
    path = tmp_path / "s.pdf"
    path.write_bytes(write_statement(make(), fill(), "pdf"))
    try:
        done = subprocess.run(["pdftotext", "-layout", str(path), "-"], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no pdftotext")
    text = " ".join(done.stdout.decode().split())
    assert "Privacy statement: Ward model" in text
    assert "at most 9.43 %" in text
