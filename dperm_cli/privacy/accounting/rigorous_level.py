"""The door to proved epsilons: no float64 between the events and the number that is printed.

``accountant`` computes in float64. Its bounds are right up to rounding errors that are estimated
and moved to the safe side. Here the same bounds are computed in ball arithmetic: every number is an
interval that is proved to hold the exact one. The epsilon that comes back is a double which is
proved to be large enough, and so are its decimal digits as Python prints them. Proofs:
docs/proofs, accounting page. Needs the package python-flint.
"""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.core.errors import InputError
from dperm_cli.core.extras import say_how_to_install
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.proved_level import NotRigorous, ProvedLevel
from dperm_cli.privacy.events import Event


def require_flint() -> None:
    """Refuse where the package of ball arithmetic is not installed.

    Raises:
        InputError: python-flint cannot be imported; the line names the extra that has it.
    """
    try:
        import flint  # noqa: F401
    except ImportError:
        allowed = f"needs the package python-flint: {say_how_to_install('rigorous')}"
        raise InputError("rigorous", True, allowed) from None


def prove_level(events: Sequence[Event], *, delta: float, relation: str) -> ProvedLevel:
    """Compute an epsilon of the events at delta that is proved.

    The numbers in the events and delta are taken as exactly what they are: doubles, and whole
    numbers. Of delta the lesser of the double and of its decimal digits counts.

    Args:
        events: What is done to the records.
        delta: Of the guarantee, at least 0 and below 1.
        relation: ``replace_one`` or ``add_remove``.

    Returns:
        The proved epsilon, inf where there is none; or why nothing is proved.

    Raises:
        InputError: python-flint is not installed.
        Unsupported: the events have no known guarantee under the relation.

    >>> from dperm_cli.privacy.events import Laplace
    >>> prove_level([Laplace(3.0, 0.5)], delta=0.0, relation="replace_one").epsilon
    0.33333333333333337
    """
    require_flint()
    from dperm_cli.privacy.accounting import rigorous_accountant

    guess = account(events, delta=delta, relation=relation).epsilon
    try:
        return rigorous_accountant.prove(events, delta, relation, guess)
    except NotRigorous as error:
        return ProvedLevel(None, reason=str(error))
