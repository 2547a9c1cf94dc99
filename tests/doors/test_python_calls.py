"""The calls of ``import dperm_cli``: the same cells as the command line, errors of one class."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from tests.doors._doors import SMALL, digests, plugin_words, public, python, table
from tests.doors._plugins import OWN

BAD = {
    "a number out of range": (("epsilon=-1",), {}, "epsilon"),
    "a number out of range, as a key": ((), {"epsilon": -1}, "epsilon"),
    "an unknown key": ((), {"epsilom": 1}, "epsilon"),
    "an unknown mechanism": ((), {"mechanism": "noisy_gdd"}, "noisy_gd"),
    "an unknown group": (("solver=fast",), {}, "solver"),
    "a key twice": (("epsilon=1",), {"epsilon": 2}, "epsilon"),
    "a word without =": (("epsilon",), {}, "epsilon"),
    "an option": (("--epsilon", "1"), {}, "epsilon=1|--epsilon"),
    "an array of two dimensions": ((), {"epsilon": np.ones((2, 2))}, "epsilon"),
    "not a number": ((), {"epsilon": float("nan")}, "epsilon"),
    "a type that no YAML has": ((), {"epsilon": object()}, "epsilon"),
    "an interpolation": ((), {"out": "${oc.env:HOME}"}, "out"),
    "a plug-in that is not there": ((), {"plugins": ["absent.py"]}, "absent.py"),
    "a help page": (("--help",), {}, "help"),
}


@pytest.fixture
def quiet():
    """Progress goes to stderr: keep it out of the test's output."""
    with contextlib.redirect_stderr(io.StringIO()) as text:
        yield text


def test_keys_and_the_command_line_mean_the_same_cells(study_folder, tmp_path, quiet):
    run = public("run")
    keys = {"mechanism": ["noisy_gd", "noisy_sgd"], "epsilon": [3, 10, 30, 100], "seed": [0, 1]}
    by_keys = run(
        **keys,
        dataset="diabetes",
        loss="squared",
        trials=2,
        out=tmp_path / "keys",
        **{"constraint.radius": 1},
    )
    expected = (study_folder / "table.csv").read_bytes()
    assert (tmp_path / "keys/table.csv").read_bytes() == expected
    assert len(by_keys.frame()) == 16
    assert isinstance(by_keys, public("Study"))


@pytest.mark.slow
def test_a_list_of_words_means_the_same_cells(study_folder, tmp_path, quiet):
    public("run")(
        "mechanism=[noisy_gd,noisy_sgd]",
        "epsilon=[3,10,30,100]",
        "seed=[0,1]",
        *SMALL,
        f"out={tmp_path / 'words'}",
    )
    expected = (study_folder / "table.csv").read_bytes()
    assert (tmp_path / "words/table.csv").read_bytes() == expected


@pytest.mark.slow
def test_numbers_of_numpy_are_numbers(tmp_path, quiet):
    study = public("run")(
        *SMALL, epsilon=np.array([1.0, 10.0]), seed=np.int64(3), out=str(tmp_path / "numpy")
    )
    assert sorted(study.frame()["epsilon"]) == [1.0, 10.0]


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_key_is_one_clear_error_of_a_public_class(fault, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, keys, said = BAD[fault]
    run = public("run")
    with pytest.raises(Exception, match=said) as caught:
        run("dataset=diabetes", *words, **{"out": str(tmp_path / "bad"), **keys})
    names = [kind.__name__ for kind in type(caught.value).__mro__]
    import dperm_cli

    own = [name for name in names if hasattr(dperm_cli, name)]
    assert own, f"none of {names} is public"
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_all_bad_keys_have_one_class(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, kinds = public("run"), set()
    for words, keys, _ in BAD.values():
        try:
            run("dataset=diabetes", *words, **{"out": str(tmp_path / "bad"), **keys})
        except Exception as error:
            kinds.add(type(error))
    assert len(kinds) == 1, kinds


def test_a_plugin_of_a_file_is_a_keyword(own, tmp_path, quiet):
    study = public("run")(
        *SMALL, mechanism="one_step", plugins=[own], epsilon=[1, 10], out=tmp_path / "study"
    )
    assert set(study.frame()["mechanism"]) == {"one_step"}
    for row in table(tmp_path / "study"):
        assert digests(plugin_words(row))


@pytest.mark.slow
def test_a_class_of_a_cell_is_a_plugin(tmp_path):
    """A notebook's class has no file: rows say so, and its source is what the digest is of."""
    script = (
        "import sys, dperm_cli\nsource = open(sys.argv[1]).read()\n"
        "space = {'__name__': '__main__'}\n"
        "import linecache; linecache.cache['<cell 1>'] = (len(source), None,"
        " source.splitlines(True), '<cell 1>')\n"
        "exec(compile(source, '<cell 1>', 'exec'), space)\n"
        f"study = dperm_cli.run(*{SMALL!r}, mechanism='one_step', plugins=[space['OneStep']],"
        " out='study')\n"
    )
    (tmp_path / "own.txt").write_text(OWN)
    public("run")
    python(script, tmp_path / "own.txt", cwd=tmp_path)
    (row,) = table(tmp_path / "study")
    assert "one_step" in plugin_words(row)
    assert row["status"] == "ok"


def test_plugins_of_one_call_are_unknown_to_the_next(own, tmp_path, quiet):
    run = public("run")
    run(*SMALL, mechanism="one_step", plugins=[own], epsilon=1, out=tmp_path / "first")
    with pytest.raises(Exception, match="one_step") as caught:
        run(*SMALL, mechanism="one_step", epsilon=1, out=tmp_path / "second")
    assert not isinstance(caught.value, SystemExit)
    assert not (tmp_path / "second").exists()


@pytest.mark.slow
def test_a_changed_file_is_read_again_in_the_same_process(own, tmp_path, quiet):
    run = public("run")
    keys = {"mechanism": "one_step", "plugins": [own], "epsilon": 1}
    first = run(*SMALL, **keys, out=tmp_path / "study").frame()
    own.write_text(
        own.read_text().replace("step_size: Positive = 0.1", "step_size: Positive = 0.2")
    )
    second = run(*SMALL, **keys, out=tmp_path / "again").frame()
    assert first["cell"].iloc[0] != second["cell"].iloc[0]


@pytest.mark.parametrize("name", ["absent", "file", "empty"])
def test_a_folder_without_a_study_is_one_clear_error(name, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    load = public("load")
    with pytest.raises(Exception, match=name) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_the_accountant_adds_up_events():
    """A Gaussian of sigma = 5 sensitivities at delta 1e-6: 0.8341 under replace_one."""
    account, gaussian = public("account"), public("Gaussian")
    found = account((gaussian(5.0, 1.0, gap=1.0),), delta=1e-6, relation="replace_one")
    assert found.epsilon == pytest.approx(0.83412, rel=1e-4)
    assert found.delta <= 1e-6
    twice = account((gaussian(5.0, 1.0, gap=1.0),) * 2, delta=1e-6, relation="replace_one")
    assert found.epsilon < twice.epsilon < 2 * found.epsilon


def test_plans_release_nothing_and_say_what_would_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = public("plans")(*SMALL, mechanism="noisy_gd", epsilon=[1, 10])
    assert len(found) == 2
    assert found[0].noise_scale > found[1].noise_scale
    assert all(plan.events for plan in found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_audit_of_a_plugin_from_python(own, capfd):
    report = public("audit")("--quick", *SMALL[:3], mechanism="one_step", plugins=[own])
    assert "one_step" in repr(report)
    assert hasattr(report, "_repr_html_")
    assert capfd.readouterr().out == ""


def test_describe_gives_an_object(capfd):
    found = public("describe")(*SMALL[:3])
    assert "noisy_gd" in str(found)
    assert "<" in found._repr_html_()
    assert capfd.readouterr().out == ""


def test_a_problem_of_ones_own_has_a_certified_optimum():
    """The mean of squares on a line: the minimiser is known, and the gap holds."""
    data, problem, squared = public("Data"), public("Problem"), public("Squared")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (50, 1))
    y = 0.5 * x[:, 0]
    records = data.of_records(
        "line", "regression", x, y, row_bound=1.0, target_bound=1.0, fingerprint="line"
    )
    best = problem(records, squared(), public("L2Ball")(radius=2.0, p=1)).optimum()
    assert best.theta == pytest.approx([0.5], abs=1e-2)
    assert 0.0 <= best.gap < 1e-3
