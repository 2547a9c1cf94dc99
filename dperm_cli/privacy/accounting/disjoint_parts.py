"""What releases from two disjoint parts of the records cost together: a fit and its evaluation.

Proofs: ``docs/proofs/_evaluation.md``, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting.accountant import Accounted, account
from dperm_cli.privacy.events import PARTITIONS, Event


def account_parts(
    fit: Sequence[Event],
    evaluation: Sequence[Event],
    *,
    partition: str,
    delta: float,
    relation: str,
) -> Accounted:
    """The epsilon at ``delta`` of a fit on one part and an evaluation on the other.

    Args:
        fit: events on the training part.
        evaluation: events on the held-out part; they may depend on what the fit released.
        partition: ``place`` where a record's position decides its part, ``content`` where its own
            content does.
        delta: of the whole.
        relation: between sets of all records of both parts.

    Returns:
        The certified level.

    Raises:
        InputError: for another partition.
        Unsupported: for add_remove by place, and where an event has no proof that is needed.

    >>> from dperm_cli.privacy.events import Laplace
    >>> parts = [Laplace(1.0, 0.5)], [Laplace(2.0, 0.5)]
    >>> account_parts(*parts, partition="place", delta=0.0, relation="replace_one").epsilon
    1.0
    """
    if partition not in PARTITIONS:
        raise InputError("partition", partition, f"one of {', '.join(PARTITIONS)}", PARTITIONS)
    if partition == "place" and relation == "add_remove":
        raise Unsupported(
            "parts by place are not private under add_remove: a record that comes or goes moves "
            "others to another part"
        )
    ways = [account(part, delta=delta, relation=relation) for part in (fit, evaluation)]
    if partition == "content" and relation == "replace_one":
        moved = account([*fit, *evaluation], delta=delta, relation="add_remove")
        ways.append(replace(moved, relation=relation))
    return max(ways, key=lambda level: level.epsilon)
