"""The requested privacy (Budget) and the delivered one (Guarantee)."""

from __future__ import annotations

from collections.abc import Iterable

from dperm_cli.core.dataclass import dataclass

RELATIONS = ("replace_one", "add_remove")
KINDS = ("pure", "approx", "local", "none")


def weakest_kind(kinds: Iterable[str]) -> str:
    """The kind of a composition: ``local`` only when every part is, else the weakest part's.

    A local guarantee bounds what the curator's output says at least as well as a central one of
    the same numbers; composed with others it counts as its (epsilon, delta).
    """
    found = set(kinds)
    if found == {"local"}:
        return "local"
    return max(found - {"local"}, key=KINDS.index, default="pure")


@dataclass(frozen=True)
class Budget:
    """A privacy level asked for: (epsilon, delta) under one neighbouring relation.

    Under ``replace_one`` the number of records n is public; under ``add_remove`` the n that
    mechanisms see is a public constant that does not follow the data set. With ``trust`` local
    nobody but the user sees a record. ``information`` bounds what a user's messages tell about it,
    in nats; where it alone is asked for, epsilon is inf.

    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06, relation='replace_one', trust='central', information=None)
    """

    epsilon: float
    delta: float
    relation: str = "replace_one"
    trust: str = "central"
    information: float | None = None


@dataclass(frozen=True)
class Guarantee:
    """A privacy level delivered, with where it comes from.

    ``kind`` is ``pure``, ``approx``, ``local`` or ``none``; ``source`` names the theorem or the
    accountant; ``certificate`` carries what a sampler proved about its law. ``information``, of
    local guarantees, bounds in nats what one user's messages tell about the record.

    >>> found = Guarantee("pure", 0.9, 0.0, "replace_one", source="one Laplace release")
    >>> found.within(Budget(1.0, 1e-6)), found.within(Budget(1.0, 1e-6, "add_remove"))
    (True, False)
    """

    kind: str
    epsilon: float
    delta: float
    relation: str
    source: str
    trust: str = "central"
    certificate: str | None = None
    information: float | None = None

    def within(self, budget: Budget) -> bool:
        """True when this guarantee implies the budget; another relation never does.

        A local guarantee implies the central one of the same numbers: what is released is made of
        the messages.
        """
        if self.relation != budget.relation or self.kind == "none":
            return False
        if self.trust != budget.trust and self.trust != "local":
            return False
        if budget.information is not None and (
            self.information is None or not self.information <= budget.information
        ):
            return False
        if self.kind == "approx" and not budget.delta > 0:
            return False
        return bool(self.epsilon <= budget.epsilon and self.delta <= budget.delta)
