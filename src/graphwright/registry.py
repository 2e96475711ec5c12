"""Names of things that can be chosen by name, the built-in ones and those of other packages.

Something new is one class or function and its registration:

    @encoders.register("mine")
    class MyEncoder(nn.Module): ...

Another package says in its pyproject.toml which module registers what it adds; the module is imported when a name
is first looked up:

    [project.entry-points.graphwright]
    mine = "my_package.my_module"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

T = TypeVar("T")
Registered = TypeVar("Registered")

GROUP = "graphwright"
"""The group of entry points that other packages name their modules in."""


class UnknownNameError(ValueError):
    """A name that nothing is registered under."""


class PluginError(ImportError):
    """An installed package says that it adds to this one, and cannot be imported."""


class Registry(Generic[T]):
    """What is registered under each name, built-in things first, each package's in the order of registration.

    what: the noun of error messages, such as "encoder". modules: whose import registers the built-in things. They
    are given by name and imported when first needed, so that a registry may lie below what registers in it.
    """

    def __init__(self, what: str, modules: tuple[str, ...] = ()) -> None:
        self.what = what
        self._modules = list(modules)
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """A decorator that gives a class or function its name; a name stands for one thing only."""

        def registered(entry: Registered) -> Registered:
            known = self._entries.get(name)
            # A module that failed halfway is imported anew, and registers the same things again.
            if known is not None and _origin(known) != _origin(entry):
                raise ValueError(
                    f"the {self.what} {name!r} is {_origin(known)}; {_origin(entry)} needs another name"
                )
            self._entries[name] = entry  # type: ignore[assignment]  # what a name stands for, its user checks
            return entry

        return registered

    def names(self) -> tuple[str, ...]:
        self._load()
        return tuple(self._entries)

    def registered(self) -> dict[str, T]:
        """What is registered so far, without a look for more."""
        return dict(self._entries)

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._entries:
            near = get_close_matches(name, self._entries, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UnknownNameError(f"there is no {self.what} {name!r}, only {', '.join(self._entries)}{hint}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _load(self) -> None:
        while self._modules:
            # Removed first: the module may look something up itself.
            module = self._modules.pop(0)
            try:
                import_module(module)
            except BaseException:
                self._modules.insert(0, module)
                raise
        load_plugins()


def load_plugins() -> None:
    """Import what installed packages add; once in a process, and again only what could not be imported."""
    if _waiting is None:
        _find_plugins()
    assert _waiting is not None
    while _waiting:
        plugin = _waiting.pop(0)
        try:
            plugin.load()
        except Exception as error:
            _waiting.insert(0, plugin)
            package = f" of the package {plugin.dist.name}" if plugin.dist else ""
            raise PluginError(
                f"the plugin {plugin.name!r}{package} cannot be loaded: import of {plugin.value} failed with "
                f"{type(error).__name__}: {error}; mend or uninstall it"
            ) from error


_waiting: list[EntryPoint] | None = None
"""Plugins not imported yet; None before anybody has looked for them. One of a process, as `sys.modules` is."""


def _find_plugins() -> None:
    global _waiting
    # A package may be on the path twice, as its source and as installed.
    unique = {(plugin.name, plugin.value): plugin for plugin in entry_points(group=GROUP)}
    _waiting = list(unique.values())


def _origin(entry: object) -> str:
    of = entry if hasattr(entry, "__qualname__") else type(entry)
    return f"{of.__module__}.{of.__qualname__}"
