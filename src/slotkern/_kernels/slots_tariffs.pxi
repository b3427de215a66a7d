# Tariffs of slots: the column `tariff` names the tariff of each node, and the context has them.

cdef extern from "slotkern/tariff/prepared_tariffs.hpp" namespace "slotkern" nogil:
    cdef cppclass Tariff:
        pass
    Status add_tariff(vector[Tariff]&, const vector[double]&, const vector[double]&) noexcept
    Status set_tariffs(CPreparedSlots&, const vector[Tariff]&, const vector[int32_t]&,
                       double) noexcept


cdef str TARIFFS_REFUSED = (
    " not support slots with tariffs, whose prices change while a part runs")


def tariffs_of_nodes(slots):
    """Return the node ids of a slot array, ascending, and the name of the tariff of each.

    None: the slots have no column `tariff`. An empty name: the node has no tariff.

    Raises
    ------
    SlotError
        If slots of one node differ in their tariff; for the first such row.
    TypeError
        If the column is not text.
    """
    if "tariff" not in slots.dtype.names:
        return None
    column = slots["tariff"]
    if column.dtype.kind not in "UT":
        raise TypeError(f"the column tariff of slots must be text, got {column.dtype}")
    ids, first, which = np.unique(slots["node"], return_index=True, return_inverse=True)
    names = column[first]
    differs = np.flatnonzero(column != names[which])
    if len(differs):
        row = int(differs[0])
        other = int(first[which[row]])
        raise SlotError(
            f"tariff {str(column[row])!r} differs from {str(column[other])!r} "
            f"(node {slots['node'][row]})", row, "tariff", other)
    return ids, names


cdef int attach_tariffs(PreparedSlots self, object slots) except -1:
    """Give prepared slots the tariffs that the column `tariff` of their array names."""
    cdef object found = tariffs_of_nodes(slots)
    if found is None:
        return 0
    ids, names = found
    given = None if self.context is None else self.context.tariffs
    cdef dict number = {"": -1}
    cdef vector[Tariff] tariffs
    cdef vector[double] breakpoints, factors
    cdef Status status
    for name in np.unique(names).tolist():
        if not name:
            continue
        if given is None:
            raise ValueError(
                f"slots have a column tariff, which names {name!r}, but no tariffs: give them, "
                "as in SlotPool(slots, tariffs=...)")
        if name not in given:
            raise ValueError(f"slots name the tariff {name!r}, which the tariffs lack"
                             f"{meant(name, list(given))}")
        breakpoints, factors = given[name].breakpoints.tolist(), given[name].factors.tolist()
        number[name] = tariffs.size()
        status = add_tariff(tariffs, breakpoints, factors)
        if status != Status.ok:
            raise ValueError(f"tariff {name!r} is not valid: breakpoints must ascend, factors must "
                             "be finite and at least 0")
    cdef dict by_node = {node: number[name] for node, name in zip(ids.tolist(), names.tolist())}
    cdef vector[int32_t] tariff_of
    cdef size_t k
    tariff_of.reserve(self.prepared.nodes.size())
    for k in range(self.prepared.nodes.size()):
        tariff_of.push_back(by_node[self.prepared.nodes[k].id])
    clock = self.context.clock if self.context is not None else None
    status = set_tariffs(self.prepared, tariffs, tariff_of, 0 if clock is None else clock._per)
    if status != Status.ok:
        raise status_error(status, "prepare the slots")
    return 0


cdef int refuse_under_tariffs(PreparedSlots self, object what) except -1:
    """Raise ValueError if these slots have tariffs, which `what` does not support."""
    if self.prepared.has_tariffs():
        raise ValueError(f"{what}{TARIFFS_REFUSED}")
    return 0


def has_tariffs(slots):
    """Return True if some node of the slots has a tariff."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).prepared.has_tariffs()
    slots = as_slot_array(slots)
    if not isinstance(slots, np.ndarray) or slots.dtype.fields is None:
        return False
    found = tariffs_of_nodes(slots)
    return found is not None and any(found[1].tolist())


def refuse_tariffs(slots, what):
    """Raise ValueError if slots have tariffs; `what` as in "limits on sums do"."""
    if has_tariffs(slots):
        raise ValueError(f"{what}{TARIFFS_REFUSED}")
