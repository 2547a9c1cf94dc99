"""`dperm run` from the words to the files."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

KEYS = (
    "dataset",
    "n",
    "p",
    "loss",
    "constraint",
    "mechanism",
    "calibration",
    "relation",
    "guarantee",
    "epsilon",
    "delta",
    "epsilon_accounted",
    "noise_scale",
    "steps",
    "trials",
    "excess_risk_median",
    "excess_risk_q05",
    "excess_risk_q95",
    "excess_risk_per_record_median",
    "floor_excess_risk",
    "optimum_gap",
    "bound_upper",
    "bound_lower",
    "bound_upper_id",
    "bound_constant",
    "bound_factor",
    "train_metric",
    "test_metric",
    "metric",
    "seconds",
    "status",
    "reason",
)
TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3", "trials=3")


def test_json_rows_have_the_promised_keys(dperm):
    done = dperm("run", *TINY, "mechanism=noisy_sgd", "format=json")
    assert done.code == 0, done.err
    (row,) = done.rows
    assert set(KEYS) <= set(row)
    assert row["status"] == "ok"
    assert row["guarantee"] == "approx"
    assert row["relation"] == "replace_one"
    assert row["steps"] == row["n"] ** 2
    assert row["delta"] == pytest.approx(row["n"] ** -2)
    assert 0 < row["epsilon_accounted"] <= row["epsilon"] == 1.0
    assert row["excess_risk_q05"] <= row["excess_risk_median"] <= row["excess_risk_q95"]
    assert row["optimum_gap"] <= 1e-6 * row["floor_excess_risk"]
    assert row["excess_risk_median"] == pytest.approx(
        row["n"] * row["excess_risk_per_record_median"]
    )
    assert row["bound_upper"] > row["bound_lower"] > 0
    assert row["bound_factor"] == row["bound_upper"] / row["bound_lower"]


def test_files_and_table(dperm, figures, tmp_path):
    done = dperm("run", *TINY, "epsilon=[0.5,5]", "out=here")
    assert done.code == 0, done.err
    written = set(os.listdir(tmp_path / "here"))
    assert {"records", "manifest.json", "table.csv", "table.md", "table.tex"} <= written
    assert {name for name in written if name.startswith("figure")} == {
        "figure.png",
        "figure.caption.md",
    }
    assert len(os.listdir(tmp_path / "here" / "records")) == 2
    assert "synthetic_logistic" in done.out
    again = dperm("report", "here")
    assert again.out == done.out


def test_nothing_is_drawn_unless_a_test_asks(dperm, tmp_path):
    """Figures would take most of the time of these tests."""
    assert dperm("run", *TINY, "out=here").code == 0
    assert (tmp_path / "here" / "figure.png").read_bytes() == b"png"


def test_lists_and_multirun_are_the_same_cells(dperm):
    one = dperm("run", *TINY, "epsilon=[0.5,5]", "mechanism=[noisy_gd,noisy_sgd]", "--cfg", "job")
    two = dperm("run", "-m", *TINY, "epsilon=0.5,5", "mechanism=noisy_gd,noisy_sgd", "--cfg", "job")
    assert one.out == two.out
    assert len(one.rows) == 4


def test_default_study_name_is_stable_and_readable(dperm, tmp_path):
    dperm("run", *TINY, "trials=1")
    dperm("run", *TINY, "trials=1")
    (study,) = os.listdir(tmp_path / "outputs")
    assert study.startswith("synthetic_logistic-auto-")


def test_finished_cells_are_looked_up_and_force_recomputes(dperm, tmp_path):
    record = tmp_path / "here" / "records"
    dperm("run", *TINY, "out=here")
    (name,) = os.listdir(record)
    first = (record / name).stat().st_mtime_ns
    dperm("run", *TINY, "out=here")
    assert (record / name).stat().st_mtime_ns == first
    table = (tmp_path / "here" / "table.csv").read_bytes()
    dperm("run", *TINY, "out=here", "force=true")
    assert (record / name).stat().st_mtime_ns > first
    assert (tmp_path / "here" / "table.csv").read_bytes() == table


def test_records_of_other_code_are_not_looked_up(dperm, tmp_path, monkeypatch):
    dperm("run", *TINY, "trials=1", "out=here")
    monkeypatch.setattr("dperm_cli.runner.cells.record_digest.code_digest", lambda *parts: "other")
    dperm("run", *TINY, "trials=1", "out=here")
    assert len(os.listdir(tmp_path / "here" / "records")) == 2


def test_a_trial_is_the_same_among_few_and_many(dperm, tmp_path):
    import pyarrow.parquet as pq

    def thetas(out):
        (name,) = os.listdir(tmp_path / out / "records")
        return pq.read_table(tmp_path / out / "records" / name)["theta"].to_pylist()

    words = (*TINY, "mechanism=noisy_sgd")
    dperm("run", *words, "trials=2", "out=two")
    dperm("run", *words, "trials=5", "out=five")
    assert thetas("five")[:2] == thetas("two")


def test_paper_calibration_prints_certified_beside_nominal(dperm):
    done = dperm(
        "run", "dataset=synthetic_logistic", "dataset.n=1000",
        "dataset.p=2", "mechanism=noisy_sgd", "calibration=paper", "trials=1", "format=json",
    )  # fmt: skip
    (row,) = done.rows
    assert row["n"] == 1000
    assert row["epsilon"] == 1.0
    assert row["epsilon_accounted"] == pytest.approx(0.0750, abs=5e-5)
    lipschitz = 1 / (1 + math.exp(-10))  # the logistic slope on margins up to 10
    assert row["noise_scale"] == pytest.approx(95716.7 * lipschitz, rel=1e-5)


def test_relation_and_privacy_kinds(dperm):
    words = ("run", "-m", *TINY, "mechanism=noisy_gd,noisy_sgd", "format=json")
    both = dperm(*words, "privacy.relation=add_remove").rows
    assert [row["status"] for row in both] == ["ok", "unsupported"]
    pure = dperm(*words, "privacy=pure").rows
    assert [row["status"] for row in pure] == ["unsupported", "unsupported"]
    zero = dperm(*words, "delta=0")
    assert zero.code == 1  # every cell is unsupported
    assert all("approx" in row["reason"] for row in zero.rows)
    poisson = dperm(
        "run", *TINY, "mechanism=noisy_sgd", "mechanism.sampling=poisson", "mechanism.batch=5",
        "privacy.relation=add_remove", "format=json",
    )  # fmt: skip
    assert poisson.rows[0]["status"] == "ok"
    assert poisson.rows[0]["relation"] == "add_remove"


def test_add_remove_needs_half_the_noise_of_replace_one(dperm):
    """Two gradients of the hinge loss can be 2 L apart."""
    words = ("run", *TINY, "loss=hinge", "mechanism=noisy_gd", "mechanism.steps=10", "format=json")
    (one,) = dperm(*words).rows
    (other,) = dperm(*words, "privacy.relation=add_remove").rows
    assert one["noise_scale"] == pytest.approx(2 * other["noise_scale"], rel=1e-9)


def test_unsafe_scaling_is_printed(dperm, tmp_path):
    lines = ["a,b,label"] + [f"{i % 7},{i % 5},{'yes' if i % 3 else 'no'}" for i in range(40)]
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    words = (
        "run", "dataset=csv", "dataset.path=mine.csv", "dataset.target=label",
        "dataset.labels={yes: 1, no: -1}", "dataset.scaling=minmax", "trials=1",
    )  # fmt: skip
    assert dperm(*words).code == 2
    done = dperm(*words, "dataset.unsafe_scaling=true")
    assert done.code == 0, done.err
    assert "unsafe" in done.out.lower() or "not covered" in done.out.lower()


def test_a_users_own_yaml(dperm, tmp_path):
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    (folder / "short.yaml").write_text("# ten steps\nname: noisy_gd\nsteps: 10\n")
    done = dperm("run", *TINY, "--config-dir", "mine", "mechanism=short", "format=json")
    assert done.code == 0, done.err
    assert done.rows[0]["steps"] == 10


def test_a_failed_cell_does_not_lose_the_others(dperm, tmp_path, monkeypatch):
    from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd

    release = NoisyGd.release

    def broken(self, view, plan, gate):
        if plan.guarantee.epsilon < 1:
            raise RuntimeError("out of\nluck")
        return release(self, view, plan, gate)

    monkeypatch.setattr(NoisyGd, "release", broken)
    words = ("run", *TINY, "mechanism=noisy_gd", "epsilon=[0.5,5]", "out=here", "format=json")
    done = dperm(*words)
    assert done.code == 1
    assert [row["status"] for row in done.rows] == ["failed", "ok"]
    assert done.rows[0]["reason"] == "RuntimeError: out of luck"
    monkeypatch.setattr(NoisyGd, "release", release)
    healed = dperm(*words)
    assert healed.code == 0
    assert [row["status"] for row in healed.rows] == ["ok", "ok"]


def test_a_plan_beyond_the_budget_is_not_released(dperm, monkeypatch):
    """The runner adds the events up again; a mechanism cannot talk its way out."""
    import dataclasses

    from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd

    honest = NoisyGd.plan

    def boastful(self, spec, budget):
        plan = honest(self, spec, budget)
        events = tuple(dataclasses.replace(e, scale=e.scale / 2) for e in plan.events)
        return dataclasses.replace(plan, events=events)

    monkeypatch.setattr(NoisyGd, "plan", boastful)
    done = dperm("run", *TINY, "mechanism=noisy_gd", "format=json")
    assert done.code == 1
    assert done.rows[0]["status"] == "failed"
    assert "refused to release" in done.rows[0]["reason"]
    assert done.rows[0]["excess_risk_median"] is None


def test_output_below_a_file_is_refused(dperm, tmp_path):
    (tmp_path / "file").write_text("")
    done = dperm("run", *TINY, "trials=1", "out=file/below")
    assert done.code == 2
    assert "out=file/below: lies in file, which is no folder" in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_rows_are_json_without_nan(dperm):
    done = dperm("run", *TINY, "trials=1", "loss=hinge", "constraint=box", "format=json")
    (row,) = [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]
    assert math.isfinite(row["excess_risk_median"])


def test_manifest_says_where_the_numbers_come_from(dperm, tmp_path):
    dperm("run", *TINY, "trials=1", "out=here")
    manifest = json.loads((tmp_path / "here" / "manifest.json").read_text())
    assert manifest["argv"][:1] == ["dataset=synthetic_logistic"]
    assert manifest["versions"]["dperm"]
    assert len(manifest["cells"]) == 1


@pytest.mark.parametrize("word", ["epsilon=1", "epsilon=1.0", "epsilon=1e0", "epsilon=[1.0]"])
def test_equal_numbers_are_one_cell(dperm, word):
    words = ("run", *TINY, "--cfg", "job")
    assert dperm(*words, word).out == dperm(*words).out
    assert len(dperm(*words, "epsilon=[1,1.0]").rows) == 1


def test_label_maps_with_quoted_keys_and_regression_bounds(dperm, tmp_path):
    lines = ["a,b,target"] + [f"{i % 7},{i % 5},{i % 2}" for i in range(40)]
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    words = ("run", "dataset=csv", "dataset.path=mine.csv", "dataset.target=target", "trials=1")
    done = dperm(*words, 'dataset.labels={"1": 1, "*": -1}', "format=json")
    assert done.rows[0]["status"] == "ok", done.err
    bounds = ("dataset.task=regression", "dataset.target_bounds=[0,2]", "dataset.columns=[a,b]")
    done = dperm(*words, *bounds, "format=json")
    assert [row["metric"] for row in done.rows] == ["r2"], done.err


def test_files_of_somebody_else_are_left_alone(dperm, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "table.csv").write_text("precious\n")
    done = dperm("run", *TINY, "trials=1", "out=mine")
    assert done.code == 2
    assert "table.csv" in done.err
    assert os.listdir(tmp_path / "mine") == ["table.csv"]
    assert dperm("run", *TINY, "trials=1", "out=mine/table.csv").code == 2


def test_an_unusable_cache_costs_time_only(dperm, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "file"))
    done = dperm("run", *TINY, "trials=1", "format=json")
    assert done.code == 0
    assert done.rows[0]["status"] == "ok"
    assert "cache is not used" in done.err


def test_report_of_a_damaged_record_says_so(dperm, tmp_path):
    dperm("run", *TINY, "epsilon=[0.5,5]", "out=here")
    records = tmp_path / "here" / "records"
    path = records / sorted(os.listdir(records))[0]
    path.write_bytes(path.read_bytes()[:-1])
    done = dperm("report", "here")
    assert done.code == 3
    assert "damaged" in done.err
    table = dperm("run", *TINY, "epsilon=[0.5,5]", "out=here").out
    assert dperm("report", "here").out == table


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("words", [["--help"], ["list"]])
def test_a_full_standard_output_is_one_line(words):
    command = [sys.executable, "-m", "dperm_cli", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1


def test_population_under_add_remove(dperm):
    words = ("run", *TINY, "mechanism=noisy_gd", "privacy.relation=add_remove", "format=json")
    (auto,) = dperm(*words).rows
    assert (auto["population"], auto["population_source"]) == (auto["n"], "from the data")
    done = dperm(*words[:-1], "privacy.population=100")
    assert "disclosed" not in done.out
    assert "disclosed" in dperm(*words[:-1]).out
    (declared,) = dperm(*words, "privacy.population=100").rows
    assert (declared["n"], declared["population"]) == (60, 100)
    assert declared["population_source"] == "declared"
    assert declared["delta"] == pytest.approx(1e-4)
    assert dperm(*words, "privacy.population=59").code == 2
    assert dperm("run", *TINY, "privacy.population=100").code == 2


def test_nothing_in_a_plan_follows_n_when_the_population_is_declared(dperm):
    def plan(n):
        done = dperm(
            "run", "dataset=synthetic_logistic", f"dataset.n={n}", "dataset.p=3", "trials=1",
            "-m", "mechanism=noisy_gd,noisy_sgd", "mechanism.steps=50", "ridge=0.1",
            "privacy.relation=add_remove", "privacy.population=64", "format=json",
        )  # fmt: skip
        return [
            [row[key] for key in ("delta", "noise_scale", "steps", "settings", "reason")]
            for row in done.rows
        ]

    assert plan(60) == plan(61)


def test_other_data_draw_other_noise(dperm, tmp_path):
    """Two versions of a file under one configuration must not share noise that cancels."""
    import pyarrow.parquet as pq

    thetas = []
    for last in ("0.5", "-0.5"):
        lines = ["a,b,label"] + ["0.1,0.2,1", "0.3,-0.2,-1"] * 20 + [f"{last},0.1,1"]
        (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
        dperm(
            "run", "dataset=csv", "dataset.path=mine.csv", "dataset.target=label", "trials=1",
            "dataset.test_fraction=0", f"out=out{last}", "epsilon=0.01",
            "mechanism=noisy_gd", "mechanism.steps=1",
        )  # fmt: skip
        (name,) = os.listdir(tmp_path / f"out{last}" / "records")
        record = pq.read_table(tmp_path / f"out{last}" / "records" / name)
        thetas.append(record["theta"].to_pylist()[0])
    # at epsilon 0.01 the noise is hundreds of times one record: equal noise would show
    assert math.dist(*thetas) > 0.05 * math.hypot(*thetas[0])


def test_noise_beyond_the_generators_range_is_refused(dperm):
    done = dperm(
        "run", *TINY, "mechanism=noisy_gd", "mechanism.steps=1", "epsilon=[1,100]", "format=json"
    )
    assert [row["status"] for row in done.rows] == ["ok", "unsupported"]
    assert "bounded range" in done.rows[1]["reason"]
