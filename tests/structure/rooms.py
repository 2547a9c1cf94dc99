"""Which rooms the package has, who is above whom, and where sets and losses live.

A room is the first part of a module's name after the package: ``losses`` for
``dperm_cli.losses.hinge``. Move a room and these tables are all there is to change.
"""

from __future__ import annotations

PACKAGE = "dperm_cli"

# From the door to the ground floor. A room may import rooms below its own line only; rooms on one
# line do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    ("estimators",),
    ("api",),
    ("runner",),
    ("audit", "results"),
    ("mechanisms",),
    ("bounds",),
    ("views",),
    ("samplers",),
    ("kernels",),
    ("solvers",),
    ("datasets",),
    ("losses", "sets"),
    ("problem",),
    ("privacy",),
    ("loops",),
    ("core",),
)

# The room of the names that the package itself offers, ``from dperm_cli import run``.
FRONT = "api"

# Where privacy events are declared, and the name of the class that all of them extend.
EVENT_ROOM, EVENT_BASE = "privacy", "Event"

# Folders of plug-ins: every public module in them that holds a
# class of its own name, or a class with a ``name``, is a plug-in.
SET_FOLDERS = ("sets",)
LOSS_FOLDERS = ("losses",)
# programs for other environments: they import nothing of dperm, and have no room to ask
FOREIGN = "/runner/peers/adapters/"
OTHER_FOLDERS = ("kernels", "datasets", "mechanisms")
# A folder in a room with what several plug-ins share: no plug-ins.
SHARED_FOLDER = "shared"

# Words that a set or a loss shares with something else: a literal means the other thing where one
# of these words stands on the same line and none of OWN_WORDS does.
SHARED_WORDS = {
    "linear": ("kernel", "kernels", "rbf", "polynomial", "scale", "scales", "yscale", "xscale"),
    "polytope": ("shape", "shapes", "channel", "channels"),
    "box": ("shape", "shapes"),
}
OWN_WORDS = ("constraint", "constraints", "body", "loss", "losses")


def find_level(room: str) -> int | None:
    """How many floors a room is below the door; None for a room that the table does not know."""
    return next((level for level, rooms in enumerate(LAYERS) if room in rooms), None)


def points_upward(source: str, target: str) -> bool:
    """Whether an import of ``target`` by ``source`` breaks the order.

    Args:
        source: The room that imports.
        target: The room that is imported.

    Returns:
        True for a higher room, for another room on the same line, and for a room without a line.
    """
    if source == target:
        return False
    above, below = find_level(source), find_level(target)
    return above is None or below is None or below <= above
