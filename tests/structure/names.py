"""What a name in the code stands for, through imports, aliases, tuples and re-exports."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from tests.structure.source import FUNCTIONS, Module, Package

_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COLLECTIONS = {"builtins.tuple", "builtins.list", "builtins.set", "builtins.frozenset"}
_DEPTH = 20

Binding = ast.AST | str | None  # an expression, a dotted name, or something unknown
Scope = dict[str, list[Binding]]


class Names:
    """Looks names up in the scopes of a package's modules.

    A meaning is a set of dotted names: ``{"dperm_cli.privacy.events.sums.Gaussian"}``. What only
    running the program would tell has no meaning: the empty set.
    """

    def __init__(self, package: Package) -> None:
        self.package = package
        self._scopes: dict[ast.AST, Scope] = {}
        self._meanings: dict[tuple[ast.AST, bool, int], set[str]] = {}
        self._stars: dict[str, list[str]] = {module.name: [] for module in package}
        self.classes: dict[str, tuple[Module, ast.ClassDef]] = {}
        self.functions: set[str] = set()
        for module in package:
            self._read_scopes(module)

    def find_meanings(
        self, module: Module, node: ast.AST | None, inside: bool = True, depth: int = _DEPTH
    ) -> set[str]:
        """What an expression can stand for.

        Args:
            module: The module that the expression stands in.
            node: The expression.
            inside: Whether a tuple, a union or a table stands for what is in it.
            depth: How many aliases are followed.

        Returns:
            Dotted names: of a class where it is defined, of builtins as ``builtins.isinstance``.
        """
        if node is None or depth == 0:
            return set()
        key = (node, inside, depth)
        if key not in self._meanings:
            self._meanings[key] = self._find_meanings(module, node, inside, depth)
        return set(self._meanings[key])

    def _find_meanings(self, module: Module, node: ast.AST, inside: bool, depth: int) -> set[str]:
        if isinstance(node, ast.Name):
            return self._look_up(module, node, inside, depth - 1)
        if isinstance(node, ast.Attribute):
            bases = self.find_meanings(module, node.value, False, depth - 1)
            return self._merge(self.resolve(f"{base}.{node.attr}", inside) for base in bases)
        if isinstance(node, ast.IfExp):
            return self._find_all(module, (node.body, node.orelse), inside, depth)
        return self._find_all(module, self._open(module, node), True, depth) if inside else set()

    def resolve(self, dotted: str, inside: bool = False, depth: int = _DEPTH) -> set[str]:
        """Where a dotted name is defined, through re-exports; itself outside the package."""
        home = self.package.trim_to_module(dotted)
        if home is None or depth == 0 or dotted == home:
            return {dotted}
        first, _, rest = dotted[len(home) + 1 :].partition(".")
        module = self.package.modules[home]
        bindings = self._scopes[module.tree].get(first)
        if bindings is None:
            return self._look_through_stars(dotted, home, inside, depth)
        found = self._merge(self._follow(module, one, inside, depth - 1) for one in bindings)
        return {name for one in found for name in self._append(one, rest, depth)} or {dotted}

    def find_family(self, roots: Iterable[str]) -> set[str]:
        """Classes and all that extend them, at any distance.

        Args:
            roots: Dotted names of classes.

        Returns:
            The roots and their subclasses anywhere in the package.
        """
        bases = {
            name: self._find_all(module, node.bases, True, _DEPTH)
            for name, (module, node) in self.classes.items()
        }
        family = set(roots)
        while True:
            more = {name for name, above in bases.items() if above & family} - family
            if not more:
                return family
            family |= more

    def find_bindings(self, module: Module, name: ast.Name) -> list[Binding]:
        """What the nearest scope that knows a name binds it to; empty where none does."""
        direct = True
        for node in module.climb(name):
            if isinstance(node, _COMPREHENSIONS) and _binds(node, name.id):
                return [None]
            if isinstance(node, _SCOPES) and (direct or not isinstance(node, ast.ClassDef)):
                bindings = self._scopes.get(node, {}).get(name.id)
                if bindings is not None:
                    return bindings
            direct = direct and not isinstance(node, _SCOPES)
        return []

    def _look_up(self, module: Module, name: ast.Name, inside: bool, depth: int) -> set[str]:
        bindings = self.find_bindings(module, name)
        if bindings:
            return self._merge(self._follow(module, one, inside, depth) for one in bindings)
        if self._stars[module.name]:
            found = self.resolve(f"{module.name}.{name.id}", inside) - {f"{module.name}.{name.id}"}
            if found:
                return found
        return {f"builtins.{name.id}"} if hasattr(builtins, name.id) else set()

    def _follow(self, module: Module, one: Binding, inside: bool, depth: int) -> set[str]:
        if one is None:
            return set()
        if isinstance(one, str):
            return {one} if self._is_definition(one) else self.resolve(one, inside, depth)
        return self.find_meanings(module, one, inside, depth)

    def _look_through_stars(self, dotted: str, home: str, inside: bool, depth: int) -> set[str]:
        rest = dotted[len(home) + 1 :]
        for other in self._stars[home]:
            candidate = f"{other}.{rest}"
            found = self.resolve(candidate, inside, depth - 1)
            known = self._scopes[self.package.modules[other].tree]
            if rest.partition(".")[0] in known or found != {candidate}:
                return found
        return {dotted}

    def _append(self, name: str, rest: str, depth: int) -> set[str]:
        return self.resolve(f"{name}.{rest}", False, depth - 1) if rest else {name}

    def _is_definition(self, name: str) -> bool:
        return name in self.classes or name in self.functions

    def _open(self, module: Module, node: ast.AST) -> Iterable[ast.AST | None]:
        """What is in a collection, a union or a table."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return node.elts
        if isinstance(node, ast.BinOp):
            return (node.left, node.right)
        if isinstance(node, ast.Starred):
            return (node.value,)
        if isinstance(node, ast.Dict):
            return (*node.keys, *node.values)
        if isinstance(node, ast.Subscript):
            return (node.value, node.slice)
        if isinstance(node, ast.Call) and node.args:
            makes = self.find_meanings(module, node.func, False)
            return node.args[:1] if makes & _COLLECTIONS else ()
        return ()

    def _find_all(
        self, module: Module, nodes: Iterable[ast.AST | None], inside: bool, depth: int
    ) -> set[str]:
        return self._merge(self.find_meanings(module, one, inside, depth - 1) for one in nodes)

    @staticmethod
    def _merge(sets: Iterable[set[str]]) -> set[str]:
        return set().union(*sets)

    def _read_scopes(self, module: Module) -> None:
        self._scopes[module.tree] = {}
        for node in module.nodes:
            for name, binding in self._list_bindings(module, node):
                scope = _find_scope(module, node)
                self._scopes.setdefault(scope, {}).setdefault(name, []).append(binding)
            if isinstance(node, (*FUNCTIONS, ast.Lambda)):
                parameters = self._scopes.setdefault(node, {})
                for one in ast.walk(node.args):
                    if isinstance(one, ast.arg):
                        parameters.setdefault(one.arg, []).append(None)

    def _list_bindings(self, module: Module, node: ast.AST) -> Iterator[tuple[str, Binding]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or first, first
        elif isinstance(node, ast.ImportFrom):
            home = find_home(module, node)
            for alias in node.names:
                if alias.name == "*":
                    self._stars[module.name].extend({home} & set(self.package.modules))
                else:
                    yield alias.asname or alias.name, f"{home}.{alias.name}"
        elif isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            name = _qualify(module, node)
            if isinstance(node, ast.ClassDef):
                self.classes[name] = (module, node)
            else:
                self.functions.add(name)
            yield node.name, name
        else:
            yield from _list_assignments(node)


def find_home(module: Module, node: ast.ImportFrom) -> str:
    """The dotted name between ``from`` and ``import``, with leading dots filled in."""
    if not node.level:
        return node.module or ""
    base = module.folder.split(".")
    base = base[: len(base) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _list_assignments(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                yield from ((one.id, value) for one, value in pairs if isinstance(one, ast.Name))
            else:
                yield from ((name, None) for name in _list_targets(target))
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield from ((name, None) for name in _list_targets(node.target))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from ((name, None) for name in _list_targets(node.optional_vars))
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, None


def _list_targets(node: ast.AST) -> list[str]:
    stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return [one.id for one in stored if isinstance(one.ctx, ast.Store)]


def _binds(node: ast.AST, name: str) -> bool:
    generators = getattr(node, "generators", ())
    return any(name in _list_targets(one.target) for one in generators)


def _find_scope(module: Module, node: ast.AST) -> ast.AST:
    return next((one for one in module.climb(node) if isinstance(one, _SCOPES)), module.tree)


def _qualify(module: Module, node: ast.AST) -> str:
    around = [one for one in module.climb(node) if isinstance(one, (ast.ClassDef, *FUNCTIONS))]
    parts = [getattr(one, "name", "") for one in (*reversed(around), node)]
    return ".".join((module.name, *parts))
