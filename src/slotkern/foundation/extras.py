"""Optional dependencies, and the extra of the package that installs each."""

from __future__ import annotations

__all__ = ["EXTRAS", "extra"]

#: The extra that installs each optional module.
EXTRAS = {
    "numba": "numba",
    "llvmlite": "numba",
    "pyarrow": "io",
    "pandas": "pandas",
    "narwhals": "tables",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "plot",
    "joblib": "studies",
    "dask": "studies",
    "distributed": "studies",
    "psycopg": "postgres",
    "anyio": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "mcp": "mcp",
    "icalendar": "calendars",
    "dateutil": "calendars",
    "highspy": "optimal",
}


class extra:
    """Context manager for imports of optional modules.

    Raises
    ------
    ModuleNotFoundError
        If a module is missing; the message contains the command that installs it.

    Examples
    --------
    >>> from slotkern.foundation.extras import extra
    >>> with extra():
    ...     import matplotlib
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if not isinstance(error, ModuleNotFoundError):
            return
        missing = (error.name or "").partition(".")[0]
        if missing in EXTRAS:
            cure = f"pip install 'slotkern[{EXTRAS[missing]}]'"
            message = f"this needs {missing}: {cure}"
            raise ModuleNotFoundError(message, name=missing) from None
