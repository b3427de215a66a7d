"""``slotkern caps``: the capacities and quotas of a pool file, listed and changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import slotkern as sk
from slotkern.foundation.extras import extra
from slotkern.machine.files import TABLE_FORMATS, TABLES, read_columns

from .bookings import PoolFile, Target
from .pools import Force, load_pool, lock_for_update, number_or_text, store_pool
from .tables import listing_table
from .terminal import show

with extra():
    import typer

__all__ = ["register"]

_QUOTA = re.compile(
    r"(?P<what>[^=\s]+)\s*=\s*(?P<amount>\S+)(?P<each>\s+each)?"
    r"(?:\s+account=(?P<account>\S+))?(?:\s+when=(?P<when>.+))?"
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("caps")(caps)


def caps(
    pool: PoolFile,
    cap: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a capacity, such as matlab=10; or matlab=FILE, a table: "
            f"{TABLES} with columns start, end, amount. Repeat for several.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Set only from this time on: a date or a number."),
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="Set only until this time: a date or a number.")
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            help="Set a quota on nodes or on a capacity: WHAT=AMOUNT, then each (every "
            "account by itself) or account=NAME, then when=HOURS, as in 'nodes=64 each "
            "when=Mon-Fri 08:00-18:00'. WHAT=none removes it. Repeat for several."
        ),
    ] = None,
    output: Target = None,
    force: Force = False,
) -> None:
    """List or change the capacities and quotas of a pool, such as licences.

    Jobs name what they use with --uses and --account, or in columns of a
    table of jobs: uses.matlab, account. With --set or --quota the pool file
    is replaced atomically.
    """
    if not cap and not quota:
        for option, value in (("--start", start), ("--end", end), ("--output", output)):
            if value is not None:
                raise ValueError(f"{option} {value} needs --set or --quota")
        _show(load_pool(pool), pool)
        return
    target = pool if output is None else output
    with lock_for_update(pool, [target]):
        found = load_pool(pool, target)
        for text in cap or ():
            _set_cap(found, text, (number_or_text(start), number_or_text(end)))
        for text in quota or ():
            _set_quota(found, text)
        store_pool(found, pool, target, force)
    _show(found, target)


def _set_cap(pool: sk.SlotPool, text: str, span: Sequence[Any]) -> None:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not name or not equals or not value:
        raise ValueError(f"--set: {text!r} is no capacity such as matlab=10")
    amount: Any = number_or_text(value)
    if isinstance(amount, str):
        path = Path(amount)
        if path.suffix.lower() not in TABLE_FORMATS:
            raise ValueError(
                f"--set: {value!r} is no whole number and no {TABLES} file"
            )
        amount = read_columns(path, ("start", "end"))
    pool.set_cap(name, amount, *span)


def _set_quota(pool: sk.SlotPool, text: str) -> None:
    found = _QUOTA.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"--quota: {text!r} is no quota such as 'nodes=64 each when=Mon-Fri "
            "08:00-18:00'"
        )
    amount: Any = number_or_text(found["amount"])
    if isinstance(amount, str):
        if amount != "none":
            raise ValueError(f"--quota: {amount!r} is no whole number")
        amount = None
    pool.quota(
        found["what"],
        amount,
        account=found["account"] or "*",
        each=bool(found["each"]),
        when=found["when"],
    )


def _show(pool: sk.SlotPool, path: Path) -> None:
    table = pool.caps
    if not table.size:
        show(f"{path}: no capacities and no quotas")
        return
    names = [
        name
        for name in table.dtype.names or ()
        if name not in ("account", "when", "each") or table[name].any()
    ]
    columns = {name: table[name] for name in names}
    amounts = ["no limit" if np.isinf(x) else f"{x:.0f}" for x in table["amount"]]
    columns["amount"] = np.array(amounts)
    listing = np.empty(len(table), [(name, c.dtype) for name, c in columns.items()])
    for name, column in columns.items():
        listing[name] = column
    show(listing_table(listing, pool.clock))
