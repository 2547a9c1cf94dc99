"""What every mechanism promises of neighbouring data sets: replay, and attack.

The other promises of mechanisms are in ``mechanism_contract.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.audit.contracts.mechanism_subject import DELTA, Subject
from dperm_cli.audit.contracts.promises import Broken, NotTried, promise, require
from dperm_cli.audit.error_rates import make_argument
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.audit.random_neighbours import search
from dperm_cli.audit.replay import Replay, replace_record, replay
from dperm_cli.audit.statistical_attack import lower_bound
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.privacy.budget import Budget
from dperm_cli.views.choose import is_local

SEARCH = 16  # random neighbours under each relation
ROUNDS = 3  # neighbours for each loss and relation
RUNS = {"sampler": 400, "many steps": 2000, "few steps": 20_000}  # releases on each side
_MANY_STEPS = 100


@promise(
    "on a neighbour no value moves at the gate by more than its event's sensitivity, and "
    "nothing else follows the record",
    mend="record_norm of an event is how far one record moves the value, in the norm "
    "in which the event counts: L2 (spec.lipschitz for a sum of gradients; gap=spec.gradient_gap "
    "under replace_one), but L1 for Laplace and SparseAnswers, up to sqrt(p) times as much; "
    "compute everything else from noisy values and public facts, and look at records once "
    "for each noisy value, from points of the set",
)
def check_neighbours(subject: Subject) -> str:
    calls, told = 0, []
    for relation in subject.mechanism.relations:
        budget = Budget(1.0, DELTA, relation)
        own = _replay_losses(subject, budget)
        if own.faults:
            _require_finite(subject)
        require(not own.faults, f"{relation}: {_explain(own.faults)}")
        found = _search(subject, budget)
        if found.faults:
            _require_finite(subject)
        if not own.calls + found.calls and subject.is_refused(relation):
            told.append(f"{relation} is refused")
            continue
        require(not found.faults or not found.calls, f"{relation}: {_explain(found.faults)}")
        calls += own.calls + found.calls
        told.append(f"{SEARCH} random neighbours under {relation}" if found.calls else relation)
    require(calls > 0, "nothing passed the gate: no noise is drawn")
    return f"{', '.join(told)}, and more for each loss: {calls} values at the gate"


def _require_finite(subject: Subject) -> None:
    """NotTried where releases are not finite: a nan differs from itself, and shows nothing."""
    for problem, plan, budget in subject.plans((1.0,), (DELTA,), subject.problems()):
        theta = np.asarray(subject.release(problem, plan, 2, relation=budget.relation))
        if theta.dtype.kind == "f" and not np.all(np.isfinite(theta)):
            raise NotTried("its releases are not finite: mend that first")


def _search(subject: Subject, budget: Budget) -> Replay:
    candidates = [subject.mechanism, _attack_of(subject, budget).mechanism]
    try:
        return search(candidates, budget, SEARCH)
    except PrivacyError as error:
        raise Broken(f"{budget.relation}: the gate refuses: {error}") from None


def _explain(faults: tuple[str, ...]) -> str:
    """The faults of a replay, with the words by which to find them in the code."""
    told = []
    for fault in dict.fromkeys(faults):
        if fault.startswith("nothing was released with"):
            fault += ": gate.stream was not asked for it, so that no noise hides the records"
        elif fault.startswith("the outputs differ"):
            fault += ": something of the record leaves without passing the gate"
        told.append(fault)
    return "; ".join(told[:3])


def _replay_losses(subject: Subject, budget: Budget) -> Replay:
    """Replays on each loss, and of each variant of the mechanism on the first."""
    found = Replay(0, 0.0)
    problems = subject.problems()
    cases = [(subject.mechanism, problem) for problem in problems]
    cases += [(variant, problem) for variant in subject.variants for problem in problems[:2]]
    for mechanism, problem in cases:
        of_nothing = problem.data.task == "location" and budget.relation == "add_remove"
        plan = None if of_nothing else subject.plan(problem, budget, mechanism)
        if plan is None:
            continue
        rng = generator(seed_sequence(0, "contract", "neighbours", budget.relation))
        for round_ in range(ROUNDS):
            other = _replace_one(problem, rng, budget.relation)
            try:
                found = found.join(replay(mechanism, plan, problem, other, round_))
            except PrivacyError as error:
                words = f"{subject.words(problem)}: the gate refuses: {error}"
                found = found.join(Replay(0, 0.0, (words,)))
    return found


def _replace_one(problem: Any, rng: np.random.Generator, relation: str) -> Any:
    """A neighbour: a record is replaced, or removed (a row of zeros)."""
    data = problem.data
    index = int(rng.integers(data.n))
    if relation == "add_remove":
        return replace_record(problem, index, np.zeros(data.p), 1.0)
    row = rng.standard_normal(data.p)
    row *= data.row_bound / np.linalg.norm(row)
    labels = {"multiclass": [0.0, 1.0, 2.0], "location": [0.0]}.get(data.task, [-1.0, 1.0])
    return replace_record(problem, index, row, float(rng.choice(labels)))


def _attack_of(subject: Subject, budget: Budget) -> Adversary:
    found = subject.whole.adversary(budget)
    require(isinstance(found, Adversary), f"adversary gives {type(found).__name__}")
    return found


@promise(
    "its adversary is a pair of neighbours of the same public facts, and a number of each trial",
    mend="adversary(budget) returns Adversary(*linear_pair(budget.relation), mechanism) or a "
    "pair of your own that differs in one record; leave it out for the general one",
)
def check_adversary(subject: Subject) -> str:
    for relation in subject.whole.relations:
        found = _attack_of(subject, Budget(1.0, DELTA, relation))
        require(type(found.mechanism) is type(subject.whole), "it attacks another mechanism")
        sides = (found.first.data, found.second.data)
        apart = list_differences(found.first.spec(), found.second.spec())
        require(not apart, "the public facts of its pair differ")
        moved = [i for i in range(sides[0].n) if _record(sides[0], i) != _record(sides[1], i)]
        require(len(moved) == 1, f"its data sets differ in {len(moved)} records")
        if relation == "add_remove":
            lengths = [float(np.linalg.norm(_row(side, moved[0]))) for side in sides]
            require(0.0 in lengths, "add_remove: none of the two has a row of zeros there")
    return ", ".join(subject.whole.relations)


def _row(data: Any, index: int) -> np.ndarray:
    return np.asarray(data.x[index])


def _record(data: Any, index: int) -> tuple[Any, ...]:
    return _row(data, index).tobytes(), float(data.y[index])


@promise(
    "an attack on many releases finds no epsilon above the claim",
    mend="less noise comes out than the events say: add each noisy value once, unscaled, and "
    "run dperm audit for details",
)
def check_attack(subject: Subject) -> str:
    if is_local(subject.whole):
        raise NotTried("its users' answers are looked at by dperm audit")
    told = []
    for relation in subject.whole.relations:
        budget = Budget(1.0, DELTA, relation)
        adversary = _attack_of(subject, budget)
        plan = subject.plan(adversary.first, budget, adversary.mechanism)
        if plan is None:
            continue
        claim = plan.guarantee.epsilon
        how = make_argument(adversary.kind, plan.events, claim, budget.delta, relation)
        runs = _count_runs(subject, plan.steps)
        leaf = seed_sequence(0, "contract", "attack", relation)
        bound = lower_bound(adversary, plan, how, runs, leaf)
        if bound > claim * (1 + 1e-9):
            _require_finite(subject)
        require(
            bound <= claim * (1 + 1e-9),
            f"{relation}: epsilon is at least {bound:.4g}, and the claim is {claim:.4g}",
        )
        told.append(f"{bound:.2g} of {claim:.3g} proved by 2 x {runs} releases under {relation}")
    if not told:
        raise NotTried("its pair of data sets is not supported")
    return "; ".join(told)


def _count_runs(subject: Subject, steps: int) -> int:
    if subject.whole.sampler is not None or subject.is_kernel:
        return RUNS["sampler"]
    return RUNS["many steps" if steps > _MANY_STEPS else "few steps"]
