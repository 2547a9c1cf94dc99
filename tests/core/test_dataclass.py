"""Classes of ``core.dataclass`` are what Python's own decorator makes of them."""

from __future__ import annotations

import abc
import copy
import dataclasses
import inspect
import json
import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, InitVar, field
from typing import Any, ClassVar

import pytest

from dperm_cli.core.dataclass import dataclass

DESCRIBE = """
import dataclasses, inspect, json, pkgutil, sys
from dperm_cli.core import dataclass as own
if sys.argv[1] == "python":
    own.dataclass = dataclasses.dataclass
import dperm_cli

def tell_value(value):
    return None if value is dataclasses.MISSING else [type(value).__name__, getattr(
        value, "__qualname__", repr(value) if "object at" not in repr(value) else "")]

def describe(cls):
    fields = [[f.name, str(f.type), tell_value(f.default), tell_value(f.default_factory), f.init,
               f.repr, f.hash, f.compare, bool(f.kw_only)] for f in dataclasses.fields(cls)]
    params = cls.__dataclass_params__
    parts = inspect.signature(cls.__init__).parameters.values()
    kinds = [[p.name, str(p.kind), p.default is p.empty, str(p.annotation)] for p in parts]
    made = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")
    return {"fields": fields, "params": [params.frozen, params.eq], "init": kinds,
            "match": list(cls.__match_args__), "none": [vars(cls).get(n, 0) is None for n in made],
            "own": [n in vars(cls) for n in made],
            "left": sorted(n for n in vars(cls) if n in {f.name for f in dataclasses.fields(cls)})}

found = {}
for module in pkgutil.walk_packages(dperm_cli.__path__, "dperm_cli."):
    if ".adapters" in module.name or module.name.endswith("__main__"):
        continue
    try:
        __import__(module.name)
    except ImportError:  # an extra that is not installed
        continue
    for cls in vars(sys.modules[module.name]).values():
        if isinstance(cls, type) and cls.__module__ == module.name:
            if "__dataclass_fields__" in vars(cls):
                found[f"{cls.__module__}.{cls.__qualname__}"] = describe(cls)
print(json.dumps(found))
"""


def test_every_class_of_the_project_is_as_python_would_make_it():
    told = []
    for who in ("python", "own"):
        done = subprocess.run([sys.executable, "-c", DESCRIBE, who], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    theirs, ours = told
    assert len(ours) > 400
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


MAKERS = pytest.mark.parametrize("make", [dataclasses.dataclass, dataclass])


def build(make: Any) -> tuple[Any, Any]:
    @make(frozen=True)
    class Base:
        """With all kinds of fields."""

        a: int
        b: list = field(default_factory=list)
        shown: ClassVar[int] = 7
        secret: float = field(default=2.0, repr=False)
        aside: str = field(default="x", compare=False)
        late: int = field(default=0, kw_only=True)

        def __post_init__(self):
            object.__setattr__(self, "seen", self.a)

    @make(frozen=True, kw_only=True)
    class Child(Base):
        """Fields by name."""

        c: int
        a: int = 5

    return Base, Child


@MAKERS
def test_objects_are_made_shown_and_compared(make):
    base, child = build(make)
    one = base(1, [2], late=4)
    assert repr(one).endswith("Base(a=1, b=[2], aside='x', late=4)")
    assert one == base(1, [2], aside="y", late=4)
    assert one != base(1, [3], late=4)
    assert one != child(a=1, b=[2], late=4, c=0)
    assert (one == 3) is False
    assert (base(1).b, base(1).secret, base.secret, hasattr(base, "b")) == ([], 2.0, 2.0, False)
    assert base(1).b is not base(1).b
    assert one.seen == 1
    assert str(inspect.signature(child)).startswith("(b: 'list' = <") or make is dataclass
    assert [p.name for p in inspect.signature(child).parameters.values()] == [
        "b", "secret", "aside", "a", "late", "c"
    ]  # fmt: skip
    assert base.__match_args__ == ("a", "b", "secret", "aside")
    with pytest.raises(TypeError):
        child(c=1, b=[], unknown=3)
    with pytest.raises(TypeError):
        base()


@MAKERS
def test_frozen_objects_do_not_change(make):
    base, _ = build(make)
    one = base(1)
    for change in (lambda: setattr(one, "a", 2), lambda: setattr(one, "new", 2)):
        with pytest.raises(FrozenInstanceError):
            change()
    with pytest.raises(FrozenInstanceError):
        del one.a

    class Open(base):
        pass

    opened = Open(3)
    opened.new = 4
    with pytest.raises(FrozenInstanceError):
        opened.a = 5
    with pytest.raises(TypeError):  # its list has no hash
        hash(one)
    assert vars(one) == {"a": 1, "b": [], "secret": 2.0, "aside": "x", "late": 0, "seen": 1}


@MAKERS
def test_hashes_and_own_methods(make):
    @make(frozen=True)
    class Pair:
        """Two numbers."""

        a: int
        b: int = 2

    @make(frozen=True)
    class Single:
        """One number."""

        a: int

    @make
    class Changing:
        """Not frozen."""

        a: int = 1

    @make(frozen=True, eq=False)
    class Same:
        """Equal to itself alone."""

        a: int

    @make(frozen=True)
    class Own:
        """With its own methods."""

        a: int

        def __eq__(self, other):
            return True

        def __repr__(self):
            return "own"

    @make(frozen=True)
    class OwnHash(Own):
        """With its own hash."""

        def __hash__(self):
            return 11

    assert hash(Pair(1)) == hash((1, 2))
    assert hash(Single(4)) == hash((4,))
    assert Changing.__hash__ is None
    changing = Changing()
    changing.a = 3
    assert changing == Changing(3)
    assert Same(1) != Same(1)
    assert isinstance(hash(Same(1)), int)
    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1)), hash(OwnHash(1))) == (
        "own", True, hash((1,)), 11
    )  # fmt: skip


@MAKERS
def test_what_is_refused(make):
    base, _ = build(make)
    with pytest.raises(TypeError):

        @make
        class Thawed(base):
            """A frozen class's child that is not."""

    with pytest.raises(ValueError, match="mutable default"):

        @make
        class Shared:
            """A default that all would share."""

            a: list = []  # noqa: RUF012


def test_a_child_of_pythons_own_decorator_fits():
    base, _ = build(dataclass)

    @dataclasses.dataclass(frozen=True)
    class Mine(base):
        """Of a plug-in."""

        mine: int = 3

    other = dataclasses.replace(Mine(1), mine=4)
    assert repr(other).endswith("Mine(a=1, b=[], aside='x', late=0, mine=4)")
    assert dataclasses.asdict(Mine(1, mine=9))["mine"] == 9


def test_a_field_that_is_made_by_the_class_and_an_init_variable():
    @dataclass
    class Counted:
        """Its list is not an argument."""

        a: int
        made: list = field(default_factory=list, init=False)

    assert Counted(1).made == []
    with pytest.raises(TypeError):
        Counted(1, [2])
    with pytest.raises(TypeError, match="InitVar"):

        @dataclass
        class Given:
            """With what Python's decorator hands to __post_init__."""

            a: InitVar[int]


@dataclass(frozen=True)
class Plain:
    """At the top of a module, so that it can be pickled."""

    a: int
    b: Any = None


def test_copies_and_pickles_and_circles():
    one = Plain(1, (2,))
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert hash(other) == hash(one)
    circle = Plain(1, [])
    circle.b.append(circle)
    assert repr(circle) == "Plain(a=1, b=[...])"
    match one:
        case Plain(a, b):
            assert (a, b) == (1, (2,))


def test_threads_that_make_the_first_objects():
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            """Nothing of it is compiled yet."""

            a: int
            b: int = 2

        begin, made = threading.Barrier(4), []

        def work(cls=Fresh, begin=begin, made=made):
            begin.wait()
            made.append(cls(1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == 4 * [Fresh(1)]
        assert inspect.isfunction(vars(Fresh)["__init__"])


def test_what_python_takes_is_taken():
    class Shown(abc.ABC):
        @abc.abstractmethod
        def __repr__(self): ...

    @dataclass(frozen=True)
    class Named(Shown):
        """Its fields are called as the words of a constructor."""

        self: int
        _set: int = 1
        made: list = field(default_factory=list)
        _make_made: int = 2

    one = Named(5)
    assert (one.self, one._set, one.made, one._make_made) == (5, 1, [], 2)
    assert "<factory>" in str(inspect.signature(Named))

    @dataclass(frozen=True)
    class Unhashed:
        """It says that it has no hash."""

        a: int
        __hash__ = None

    with pytest.raises(TypeError, match="unhashable"):
        hash(Unhashed(1))


def test_what_python_refuses_is_refused_at_once():
    with pytest.raises(TypeError, match="'b' follows default"):

        @dataclass
        class Late:
            """A field without a default after one that has one."""

            a: int = 1
            b: int

    with pytest.raises(TypeError, match="sets no attributes"):

        @dataclass(frozen=True)
        class Setting:
            """Frozen, with a way to set attributes."""

            a: int

            def __setattr__(self, name, value):
                pass

    with pytest.raises(TypeError, match="KW_ONLY"):

        @dataclass
        class Marked:
            """With Python's mark, which these classes do without."""

            a: int
            _: dataclasses.KW_ONLY
            b: int = 1


def test_a_class_that_is_pickled_by_its_value_takes_its_constructor_with_it():
    cloudpickle = pytest.importorskip("cloudpickle")
    program = (
        "import cloudpickle, dataclasses, sys\n"
        "from dperm_cli.core.dataclass import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Own:\n"
        "    a: int\n"
        "    b: list = dataclasses.field(default_factory=list)\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(Own))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    own = cloudpickle.loads(done.stdout)
    assert (own(1).a, own(1).b) == (1, [])
    assert own(1) == own(a=1)
