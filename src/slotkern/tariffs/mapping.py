"""Tariffs by name, as the column ``tariff`` of nodes and slots refers to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.files.atomic import AnyPath
from slotkern.foundation.checks import hint_keywords, meant, quote, visible

from .tariff import Tariff, spans_of

__all__ = ["Tariffs"]


class Tariffs(HasTable, Mapping[str, Tariff]):
    """Tariffs(tariffs)

    Tariffs by name. The column ``tariff`` of nodes and slots refers to these names;
    nodes without a tariff have an empty text there.

    Parameters
    ----------
    tariffs : mapping of str to Tariff

    Raises
    ------
    TypeError, ValueError
        For a name that is not a text or is empty, and a value that is not a `Tariff`.

    Examples
    --------
    >>> import slotkern as sk
    >>> tariffs = sk.Tariffs({"night": sk.Tariff([6, 22], [0.5, 1, 0.5])})
    >>> tariffs.cost(["night", ""], 2, 20, 6).tolist()
    [8.0, 12.0]
    >>> tariffs.to_table().tolist()
    [('night', -inf, 0.5), ('night', 6.0, 1.0), ('night', 22.0, 0.5)]
    """

    __slots__ = ("_tariffs",)

    def __init__(self, tariffs: Mapping[str, Tariff]) -> None:
        if not isinstance(tariffs, Mapping):
            raise TypeError(
                f"tariffs must be a mapping of names to Tariff, got {quote(tariffs)}"
            )
        self._tariffs: dict[str, Tariff] = {}
        for name, tariff in tariffs.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"tariffs: the name of a tariff must be text, got {quote(name)}"
                )
            if not name:
                raise ValueError("tariffs: an empty name means no tariff")
            if name.endswith("\0"):  # arrays of numpy drop it
                raise ValueError(f"tariffs: the name {quote(name)} ends in a NUL")
            if not isinstance(tariff, Tariff):
                raise TypeError(
                    f"tariffs: {quote(name)} must be a Tariff, got {quote(tariff)}"
                )
            self._tariffs[str(name)] = tariff

    @classmethod
    @hint_keywords
    def read(
        cls, path: AnyPath, *, clock: Any = None, outside: float | None = None
    ) -> Tariffs:
        """Read tariffs from a file: ``.csv``, ``.json`` or ``.parquet``.

        Parameters
        ----------
        path : path
            A table as for `from_table`.
        clock : Clock, optional
            Converts the dates of the file.
        outside : float, optional
            The factor at times for which the file has none.

        Raises
        ------
        ValueError, TypeError
            As `from_table`; the message names the file and the line.
        OSError
            If the file cannot be read.
        """
        from .tables import read_tariffs

        return cls.from_table(read_tariffs(path), clock=clock, outside=outside)

    @classmethod
    @hint_keywords
    def from_table(
        cls, table: Any, *, clock: Any = None, outside: float | None = None
    ) -> Tariffs:
        """Return the tariffs of a table, such as that of `to_table`.

        Parameters
        ----------
        table : table
            As for `Machine`: ``tariff`` (the name), ``start``, ``factor`` (or
            ``price``) and, optionally, ``end``; see `Tariff.of_prices`.
        clock : Clock, optional
            Converts the dates of the table.
        outside : float, optional
            The factor at times for which the table has none.

        Raises
        ------
        ValueError, TypeError
            As `Tariff.of_prices`.
        """
        from .tables import tariffs_of_table

        changes = tariffs_of_table(table, "tariffs", clock, outside)
        return cls({name: Tariff(*pair) for name, pair in changes.items()})

    def to_table(self) -> NDArray[np.void]:
        """Return a structured array ``tariff``, ``start``, ``factor``.

        Each factor holds from its start until that of the next row of the tariff; the
        first start of each tariff is -inf.
        """
        names = np.array([*self] or [""])
        sizes = [len(tariff.factors) for tariff in self.values()]
        fields = [("tariff", names.dtype), ("start", "f8"), ("factor", "f8")]
        table = np.empty(sum(sizes), fields)
        if sizes:
            table["tariff"] = np.repeat(names, sizes)
            each = [t._as_table().columns for t in self.values()]
            for field in ("start", "factor"):
                table[field] = np.concatenate([np.asarray(c[field]) for c in each])
        return table

    def write(self, path: AnyPath) -> None:
        """Write `to_table` to a file, ``.csv``, ``.json`` or ``.parquet``, for `read`.

        Raises
        ------
        ValueError
            For another suffix.
        OSError
            If the file cannot be written; an existing file is unchanged.
        """
        from .tables import write_tariffs

        write_tariffs(path, self.to_table())

    def to_dict(self) -> dict[str, dict[str, list[float]]]:
        """Return the tariffs as a dict for JSON; `from_dict` is the inverse."""
        return {
            name: {
                "breakpoints": tariff.breakpoints.tolist(),
                "factors": tariff.factors.tolist(),
            }
            for name, tariff in self.items()
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Mapping[str, list[float]]]) -> Tariffs:
        """Return the tariffs of a dict that `to_dict` returned."""
        found = {}
        for name, each in given.items():
            if not isinstance(each, Mapping) or each.keys() != {
                "breakpoints",
                "factors",
            }:
                raise ValueError(
                    f"tariffs: {quote(name)} has no breakpoints and factors"
                )
            found[name] = Tariff(each["breakpoints"], each["factors"])
        return cls(found)

    def cost(
        self,
        names: str | ArrayLike,
        price: ArrayLike,
        start: ArrayLike,
        length: ArrayLike,
    ) -> Any:
        """Return the amounts that parts cost, from their start for their length.

        Parameters
        ----------
        names : str or array_like of str
            The tariff of each part; "" for none.
        price : float or array_like of float
            The base price of each part.
        start, length : float or array_like of float
            In time units.

        Returns
        -------
        float or ndarray of float64
            ``price * tariff.integral(start, length)``; without a tariff, ``price *
            length``.

        Raises
        ------
        ValueError
            For a name that no tariff has, and as `Tariff.integral`.
        """
        code, prices, starts, lengths = np.broadcast_arrays(
            self.codes(names),
            np.asarray(price, np.float64),
            *spans_of(start, length),
        )
        with np.errstate(over="ignore"):  # a cost beyond float64 is infinite
            found = np.array(prices * lengths)
            for k, tariff in enumerate(self.values()):
                rows = code == k
                if rows.any():
                    amount = tariff.integral(starts[rows], lengths[rows])
                    found[rows] = prices[rows] * amount
        return found if found.ndim else float(found)

    def codes(self, names: str | ArrayLike, what: str = "tariff") -> NDArray[np.int32]:
        """Convert names of tariffs to their places in this mapping; -1 for "".

        Parameters
        ----------
        names : str or array_like of str
        what : str
            The name of the column in errors.

        Raises
        ------
        ValueError, TypeError
            For a name that no tariff has, and names that are not text; the message
            contains the first such row and name.
        """
        given = np.asarray(names)
        if given.dtype.kind not in "UO" and given.size:
            raise TypeError(f"{what} must be names of tariffs, got {given.dtype}")
        place = {name: k for k, name in enumerate(self)} | {"": -1}
        unique, inverse = np.unique(given.astype(np.str_), return_inverse=True)
        known = np.array([place.get(name, -2) for name in unique.tolist()], np.int32)
        found: NDArray[np.int32] = known[inverse].reshape(given.shape)
        if (found == -2).any():
            row = int((found == -2).argmax())
            name = str(given.ravel()[row])
            at = f"{what}, row {row}" if given.ndim else what
            raise ValueError(
                f"{at}: there is no tariff {quote(name)}; there "
                f"{_listed([*self])}{meant(name, self)}"
            )
        return found

    def __getitem__(self, name: str) -> Tariff:
        return self._tariffs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tariffs)

    def __len__(self) -> int:
        return len(self._tariffs)

    def __reduce__(self) -> Any:
        return Tariffs, (self._tariffs,)

    def __repr__(self) -> str:
        names = ", ".join(self) if len(self) <= 8 else f"{len(self):,} tariffs"
        return visible(f"Tariffs({names})")

    def _as_table(self) -> Table:
        """Return `to_table` for display."""
        table = self.to_table()
        return Table.from_array(repr(self), table)


def _listed(names: list[str]) -> str:
    if not names:
        return "are none"
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{'is' if len(names) == 1 else 'are'} {shown}"
