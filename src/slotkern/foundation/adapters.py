"""Functions of higher layers that lower layers call by name.

Results and pools have methods that belong to higher layers, such as ``plot`` or
``save``. The package `slotkern` registers where their functions are; `adapter` imports
a module at the first call of its function. So no layer names a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["adapter", "register"]

_places: dict[str, str] = {}
_functions: dict[str, Callable[..., Any]] = {}


def register(places: Mapping[str, str]) -> None:
    """Register the place of functions: ``"module:function"`` for each name."""
    _places.update(places)


def adapter(name: str) -> Callable[..., Any]:
    """Return a registered function, importing its module at the first call.

    Raises
    ------
    ModuleNotFoundError
        If the module needs an optional package that is missing; the message contains
        the command that installs it.
    """
    found = _functions.get(name)
    if found is None:
        from slotkern.foundation.extras import extra

        module, _, function = _places[name].partition(":")
        with extra():
            found = _functions[name] = getattr(import_module(module), function)
    return found
