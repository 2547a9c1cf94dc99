"""Which known name was meant: by common other words for it, its beginning, or its letters."""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 3  # letters of a beginning that names a thing
# What is often called otherwise, by its name here; of several the first that is known counts.
_OTHER_WORDS = {
    "epsilon": "eps privacy_budget",
    "mechanism": "mech algorithm algo method",
    "dataset": "data",
    "constraint": "domain",
    "constraint.radius": "radius",
    "ridge": "l2 lambda lam regularization regularizer reg weight_decay",
    "lasso": "l1",
    "p": "d dim dims dimension dimensions features n_features",
    "n": "samples n_samples rows records",
    "seed": "random_state repeats repetitions",
    "trials": "runs",
    "steps": "iterations iters epochs",
    "mechanism.steps": "steps iterations iters epochs",
    "noise_scale": "sigma std stddev noise_std",
    "test_metric": "accuracy acc test_accuracy score r2 test_score error auc",
    "train_metric": "train_accuracy train_score",
    "excess_risk": "risk loss error",
    "theme": "width height size figsize dpi",
    "formats": "figures extensions filetype",
    "hue": "color colour colors group groupby label",
    "facet": "col row panel panels subplots",
    "aggregate": "join mean average",
    "show": "legend lines",
    "x": "xaxis horizontal",
    "y": "yaxis vertical value metric quantity",
    "columns": "cols fields",
    "rows": "where filter query",
    "style": "fmt format",
    "by": "on key",
}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was meant, or None when none is close.

    >>> nearest("eps", ["steps", "epsilon"]), nearest("accuracy", ["excess_risk", "test_metric"])
    ('epsilon', 'test_metric')
    >>> nearest("noisy_dg", ["noisy_gd", "newton"]), nearest("agg", ["aggregate", "age"])
    ('noisy_gd', 'aggregate')
    """
    import difflib  # only where a name is wrong

    known = list(known)
    word = name.casefold()
    called = (meant for meant, words in _OTHER_WORDS.items() if word in words.split())
    begun = sorted((k for k in known if k.casefold().startswith(word)), key=len)
    alike = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    meant = [meant for meant in called if meant in known]
    meant += begun if len(word) >= _SHORTEST else []
    return next(iter([*meant, *alike]), None)
