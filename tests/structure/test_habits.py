"""Events asked for their class, sets and losses by their names, attributes by a literal name.

Each on small packages made up for it: what counts, what does not, and what surprises.
"""

from __future__ import annotations

import pytest

from tests.structure.conftest import EVENTS, PLUGINS


class TestEvents:
    """Questions for the class of an event."""

    IMPORTS = "from house.privacy.events import Gaussian as G, Laplace\n"

    @pytest.mark.parametrize(
        "line",
        [
            "isinstance(e, G)",
            "isinstance(e, G | Laplace)",
            "isinstance(e, (int, Laplace))",
            "issubclass(type(e), G)",
            "type(e) is G",
            "type(e) in (int, Laplace)",
            "type(e).__name__ == 'Gaussian'",
            "{G: 1}",
            "[one for one in e if isinstance(one, G)]",
        ],
    )
    def test_questions(self, find, line):
        modules = {"privacy/events.py": EVENTS, "audit/a.py": f"{self.IMPORTS}e = []\n{line}\n"}
        assert find("events", modules) == ["audit/a.py:3"]

    @pytest.mark.parametrize(
        "line",
        [
            "isinstance(e, int)",
            "G()",
            "def f(event: G) -> Laplace: ...",
            "'isinstance(e, G)'",
            "e = 1  # isinstance(e, G)",
            "def f(e, G): return isinstance(e, G)",
            "e.isinstance(e, G)",
            "kind == 'Gaussian'",
        ],
    )
    def test_no_questions(self, find, line):
        modules = {"privacy/events.py": EVENTS, "audit/a.py": f"{self.IMPORTS}{line}\n"}
        assert find("events", modules) == []

    def test_each_class_pattern_of_a_match(self, find):
        text = (
            "from house.privacy import events as ev\n"
            "def f(e):\n"
            "    match e:\n"
            "        case ev.Gaussian() | ev.Laplace():\n"
            "            return 1\n"
            "        case int() | [ev.Gaussian(), *_]:\n"
            "            return 2\n"
        )
        found = find("events", {"privacy/events.py": EVENTS, "audit/a.py": text})
        assert found == ["audit/a.py:4", "audit/a.py:4", "audit/a.py:6"]

    def test_through_aliases_tuples_reexports_and_subclasses(self, find):
        modules = {
            "privacy/events/base.py": "class Event: ...\n",
            "privacy/events/sums.py": "from .base import Event as E\nclass Gaussian(E): ...\n",
            "privacy/events/__init__.py": "from .sums import *\n",
            "mechanisms/mine.py": "import house.privacy.events as p\nclass Own(p.Gaussian): ...\n",
            "runner/kinds.py": (
                "from house.privacy.events import Gaussian\n"
                "from house.mechanisms.mine import Own\nask = isinstance\nKINDS = (int, Gaussian)\n"
            ),
            "runner/a.py": (
                "from .kinds import KINDS as K, Own, ask\ndef f(e):\n    return ask(e, tuple(K))\n"
                "def g(e):\n    return isinstance(e, Own)\n"
            ),
        }
        assert find("events", modules) == ["runner/a.py:3", "runner/a.py:5"]

    def test_a_dispatcher_asks_too(self, find):
        text = (
            f"{self.IMPORTS}from functools import singledispatch\n"
            "@singledispatch\ndef show(e): ...\n"
            "@show.register\ndef _(e: G): ...\n"
            "@show.register(Laplace)\ndef _(e): ...\n"
            "@show.register\ndef _(e: int): ...\n"
        )
        found = find("events", {"privacy/events.py": EVENTS, "audit/a.py": text})
        assert found == ["audit/a.py:5", "audit/a.py:7"]

    def test_events_may_ask_each_other_and_a_namesake_is_no_event(self, find):
        modules = {
            "privacy/events.py": EVENTS + "isinstance(1, Gaussian)\n",
            "samplers/a.py": "class Gaussian: ...\nisinstance(1, Gaussian)\n",
        }
        assert find("events", modules) == []

    def test_without_events_there_is_nothing_to_measure(self, find):
        with pytest.raises(ValueError, match="no class Event"):
            find("events", {"core/a.py": ""})


class TestPlugins:
    """Names of sets and losses outside their rooms."""

    @pytest.mark.parametrize(
        "line",
        [
            "x = y == 'l2_ball'",
            "TABLE = {'hinge': 1, 'l2_ball': 2}",
            "x = 'loss=hinge,linear'",
            "x = f'constraint=l2_ball,{y}'",
            "x = 'l2_' + 'ball'",
            "x = 'hinge squared'.split()",
            "x = dict(hinge=1)",
            "from house.losses.hinge import Hinge",
            "from house.losses.hinge import Hinge as H",
            "from ..losses import hinge as h",
            "import house.losses.hinge",
            "import importlib; importlib.import_module('house.losses.hinge')",
            "class L2Ball: ...",
            "def f(loss): return loss == 'linear'",
            "def f(x, loss='linear'): return x",
        ],
    )
    def test_names(self, find, line):
        assert find("plugins", {**PLUGINS, "audit/a.py": f"{line}\n"}) == ["audit/a.py:1"]

    @pytest.mark.parametrize(
        "line",
        [
            '"""The hinge loss on an l2_ball."""',
            "x = 1  # 'l2_ball'",
            "x = 'the loss hinge has no curvature'",
            "x = 'l2_balls'",
            "x = 'image/box'",
            "hinge = Hinge = 3",
            "def hinge(): ...",
            "KERNELS = ('linear', 'rbf')",
            "axis.set_yscale('linear')",
            "shape = 'box'",
        ],
    )
    def test_no_names(self, find, line):
        assert find("plugins", {**PLUGINS, "audit/a.py": f"{line}\n"}) == []

    def test_each_use_under_whatever_alias(self, find):
        text = (
            "from house.losses.hinge import Hinge as H\n"
            "from house import sets\n"
            "Ball = sets.l2_ball.L2Ball\n"
            "def f(loss):\n    return isinstance(loss, H)\n"
            "def g():\n    return Ball(1)\n"
        )
        found = find("plugins", {**PLUGINS, "audit/a.py": text})
        assert found == [f"audit/a.py:{line}" for line in (1, 3, 5, 7)]

    def test_a_line_counts_once_and_a_literal_where_it_stands(self, find):
        text = "TABLE = {\n    'hinge': 'linear',\n    'other': 1,\n    'box': 2,\n}\n"
        found = find("plugins", {**PLUGINS, "audit/a.py": text})
        assert found == ["audit/a.py:2", "audit/a.py:4"]

    def test_a_room_names_its_own_but_not_the_other(self, find):
        modules = {**PLUGINS, "losses/pairs.py": "PAIR = ('hinge', 'linear')\nX = 'l2_ball'\n"}
        assert find("plugins", modules) == ["losses/pairs.py:2"]

    def test_a_loss_named_unlike_its_file(self, find):
        modules = {**PLUGINS, "losses/soft.py": "class Smoothed:\n    name = 'soft_hinge'\n"}
        modules["audit/a.py"] = "X = 'soft_hinge'\nY = 'soft'\n"
        assert find("plugins", modules) == ["audit/a.py:1"]

    def test_without_plugins_there_is_nothing_to_measure(self, find):
        with pytest.raises(ValueError, match="no plug-in in"):
            find("plugins", {"losses/base.py": "", "core/a.py": ""})


class TestGetattr:
    """Attributes asked for by a literal name."""

    @pytest.mark.parametrize(
        "line",
        [
            "getattr(x, 'name', None)",
            "hasattr(x, 'name')",
            "setattr(x, 'na' 'me', 1)",
            "import builtins as b; b.getattr(x, 'name')",
            "ask = getattr; ask(x, 'name')",
            "KEY = 'name'; getattr(x, KEY)",
            "getattr(x, 'one' if x else 'two')",
            "f'{getattr(x, \"name\")}'",
        ],
    )
    def test_literal(self, find, line):
        assert find("getattr", {"core/a.py": f"{line}\n"}) == ["core/a.py:1"]

    @pytest.mark.parametrize(
        "line",
        [
            "for key in y: getattr(x, key)",
            "def f(key): return getattr(x, key)",
            "getattr(x, f'{y}_name')",
            "object.__setattr__(x, 'name', 1)",
            "x.getattr(y, 'name')",
            "'getattr(x, \"name\")'",
            "def f(getattr): return getattr(x, 'name')",
        ],
    )
    def test_not_literal(self, find, line):
        assert find("getattr", {"core/a.py": f"{line}\n"}) == []
