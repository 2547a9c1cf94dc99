"""What the code does by name where a contract should say it.

Functions with a bare participle for a name, questions for an event's class, attributes asked for by
a literal name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.structure import rooms, words
from tests.structure.names import Names, find_home
from tests.structure.source import FUNCTIONS, Module, Place, read_text

_ATTRIBUTE_CALLS = {f"builtins.{name}" for name in ("getattr", "hasattr", "setattr", "delattr")}
_CLASS_CALLS = {"builtins.isinstance", "builtins.issubclass"}
_MAKERS = {
    "builtins.property", "builtins.staticmethod", "builtins.classmethod",
    "functools.cached_property", "functools.partial", "functools.cache", "functools.lru_cache",
}  # fmt: skip
_COMPARISONS = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def find_participles(names: Names) -> list[Place]:
    """Functions, methods and properties whose name is a bare participle.

    Args:
        names: The package's names.

    Returns:
        Their definitions; also names given by ``opened = lambda: ...``, ``= property(...)``,
        ``= another_function`` and ``import open_cell as opened``.
    """
    places = []
    for module in names.package:
        for node in module.nodes:
            for name in _list_function_names(names, module, node):
                if words.is_bare_participle(name):
                    places.append(module.make_place(node, name))
    return places


def find_attribute_calls(names: Names) -> list[Place]:
    """Calls of getattr, hasattr, setattr and delattr with a literal name.

    A name held in a constant is literal too. ``object.__setattr__`` in a frozen dataclass and
    ``operator.attrgetter`` do not count.
    """
    places = []
    for module in names.package:
        for node in module.nodes:
            if isinstance(node, ast.Call) and len(node.args) > 1:
                text = _read_constant(names, module, node.args[1])
                calls = text and names.find_meanings(module, node.func, False) & _ATTRIBUTE_CALLS
                if calls:
                    places.append(module.make_place(node, f"{min(calls)[9:]} {text!r}"))
    return places


def find_event_questions(names: Names) -> list[Place]:
    """Places outside the room of events that ask an event for its class.

    Args:
        names: The package's names.

    Returns:
        One place for each ``isinstance`` and ``issubclass`` with an event's class among those
        asked for, each class pattern of a ``match``, each comparison with the class or with its
        name as a string, each key of a table by classes and each ``register`` of a dispatcher.

    Raises:
        ValueError: There is no class of events where the table of rooms says.
    """
    home = f"{names.package.name}.{rooms.EVENT_ROOM}."
    roots = {n for n in names.classes if n.startswith(home) and n.endswith(f".{rooms.EVENT_BASE}")}
    if not roots:
        raise ValueError(f"no class {rooms.EVENT_BASE} in the room {rooms.EVENT_ROOM}")
    events = names.find_family(roots)
    places = []
    for module in names.package:
        if module.room == rooms.EVENT_ROOM:
            continue
        for node in module.nodes:
            for one, what in _list_questions(names, module, node, events):
                places.append(module.make_place(one, f"asks for {what}"))
    return places


def _list_function_names(names: Names, module: Module, node: ast.AST) -> Iterator[str]:
    if isinstance(node, FUNCTIONS):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign) and _is_function(names, module, node.value):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                dotted = f"{find_home(module, node)}.{alias.name}"
                if names.resolve(dotted) & names.functions:
                    yield alias.asname


def _is_function(names: Names, module: Module, value: ast.AST | None) -> bool:
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call):
        return bool(names.find_meanings(module, value.func, False) & _MAKERS)
    if isinstance(value, ast.Name | ast.Attribute):
        return bool(names.find_meanings(module, value, False) & names.functions)
    return False


def _read_constant(names: Names, module: Module, node: ast.AST) -> str | None:
    """A literal, a choice between literals, or a name that is bound to one literal."""
    if isinstance(node, ast.IfExp):
        both = [_read_constant(names, module, one) for one in (node.body, node.orelse)]
        return None if None in both else " or ".join(map(str, both))
    if isinstance(node, ast.Name):
        bindings = names.find_bindings(module, node)
        texts = [read_text(one) for one in bindings if isinstance(one, ast.AST)]
        return texts[0] if len(texts) == len(bindings) == 1 else None
    text = read_text(node)
    return None if text is None or "\0" in text else text


def _list_questions(
    names: Names, module: Module, node: ast.AST, events: set[str]
) -> Iterator[tuple[ast.AST, str]]:
    """Nodes that ask for an event's class, with the classes' names."""

    def spell(*nodes: ast.AST | None) -> str:
        found = set().union(*(names.find_meanings(module, one) for one in nodes)) & events
        return ", ".join(sorted(name.rpartition(".")[2] for name in found))

    if isinstance(node, ast.Call) and len(node.args) > 1:
        if names.find_meanings(module, node.func, False) & _CLASS_CALLS and spell(node.args[1]):
            yield node, spell(node.args[1])
    elif isinstance(node, ast.MatchClass) and spell(node.cls):
        yield node, spell(node.cls)
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], _COMPARISONS):
        sides = (node.left, *node.comparators)
        if what := spell(*sides) or _spell_class_names(sides, events):
            yield node, what
    elif isinstance(node, ast.Match) and _reads_class_name(node.subject):
        patterns = [one for case in node.cases for one in ast.walk(case.pattern)]
        values = [one.value for one in patterns if isinstance(one, ast.MatchValue)]
        yield from ((one, text) for one in values if (text := _spell_texts([one], events)))
    elif isinstance(node, ast.Dict):
        yield from ((key, spell(key)) for key in node.keys if key is not None and spell(key))
    elif isinstance(node, FUNCTIONS):
        for one in node.decorator_list:
            if what := spell(*_list_registered(node, one)):
                yield one, what


def _list_registered(function: ast.AST, decorator: ast.AST) -> list[ast.AST | None]:
    """The classes for which ``@show.register`` or ``@show.register(Class)`` stands."""
    if isinstance(decorator, ast.Call):
        return list(decorator.args) if _is_register(decorator.func) else []
    arguments = getattr(function, "args", None)
    first = (*arguments.posonlyargs, *arguments.args)[:1] if arguments else ()
    return [one.annotation for one in first] if _is_register(decorator) else []


def _is_register(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "register"


def _spell_class_names(sides: Iterable[ast.AST], events: set[str]) -> str:
    sides = list(sides)
    return _spell_texts(sides, events) if any(map(_reads_class_name, sides)) else ""


def _reads_class_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__")


def _spell_texts(nodes: Iterable[ast.AST], events: set[str]) -> str:
    known = {name.rpartition(".")[2] for name in events}
    texts = {read_text(one) for node in nodes for one in ast.walk(node)}
    return ", ".join(sorted(text for text in texts if text in known))
