"""Commands whose help shows no type for flags, which take no value."""

from __future__ import annotations

from typing import Any

from slotkern.extras import extra

with extra():
    import typer
    from typer.core import TyperCommand, TyperGroup

__all__ = ["Application", "Group"]


class _HidesFlagTypes:
    """What has parameters, and flags among them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, also those that typer adds."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_HidesFlagTypes, TyperCommand):
    """A command with such flags."""


class Group(_HidesFlagTypes, TyperGroup):
    """A group of commands with such flags."""


class Application(typer.Typer):
    """An application of such commands."""

    def __init__(self, *, cls: type[Group] = Group, **settings: Any) -> None:
        super().__init__(cls=cls, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return what makes a function a command."""
        return super().command(name, cls=Command, **settings)
