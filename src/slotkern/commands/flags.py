"""Typer classes whose help prints no type for flags, since flags take no value."""

from __future__ import annotations

from typing import Any

from slotkern.foundation.extras import extra

with extra():
    import typer
    from typer.core import TyperCommand, TyperGroup

__all__ = ["Application", "Group"]


class _HidesFlagTypes:
    """Mix-in for click commands: removes the type of flags from the help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, including those that typer adds."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_HidesFlagTypes, TyperCommand):
    """A command whose help prints no type for flags."""


class Group(_HidesFlagTypes, TyperGroup):
    """A group of commands whose help prints no type for flags."""


class Application(typer.Typer):
    """A typer application that creates `Command` and `Group` objects."""

    def __init__(self, *, cls: type[Group] = Group, **settings: Any) -> None:
        super().__init__(cls=cls, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return the decorator that registers a function as a `Command`."""
        return super().command(name, cls=Command, **settings)
