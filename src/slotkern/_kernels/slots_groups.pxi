# Group rules of requests, compiled for the nodes of prepared slots.

cdef tuple RULE_KINDS = ("max_groups", "min_groups", "max_parts")  # in the order of GroupRuleKind


cdef class CompiledRules:
    """The group rules of a request, compiled for the nodes of prepared slots."""


cdef CompiledRules compiled_rules(PreparedSlots self, tuple rules, object table):
    """Return the compiled rules, cached for the table.

    Raises ValueError for a level that is no column of nodes, and for levels that cross.
    """
    cached = self.cached_column(rules, table)
    if cached is not None:
        return <CompiledRules>cached
    cdef CompiledRules compiled = CompiledRules.__new__(CompiledRules)
    cdef vector[GroupRule] given
    cdef GroupRule one
    cdef size_t crossed = 0, crossing
    cdef list columns = []  # keeps their memory
    for rule in rules:
        groups = groups_of_places(self, rule.level, table)
        columns.append(groups)
        one.kind = <GroupRuleKind><int>RULE_KINDS.index(rule.kind)
        one.group = <const int32_t*>cnp.PyArray_DATA(<cnp.ndarray>groups)
        one.bound = rule.bound
        given.push_back(one)
    crossing = compiled.rules.compile(given, self.prepared.nodes.size(), crossed)
    if crossing != kNested:
        from slotkern.expressions.groups import check_nesting
        check_nesting([rules[crossed].level, rules[crossing].level], table, "slots")
        raise ValueError(
            f"the levels {rules[crossed].level!r} and {rules[crossing].level!r} cross: each group "
            "of one must lie in one group of the other")
    self.cache_column(rules, compiled, table)
    return compiled


cdef cnp.ndarray groups_of_places(PreparedSlots self, str level, object table):
    """Return the group of each node by a level, in the order of the prepared nodes."""
    key = "level", level
    groups = self.cached_column(key, table)
    if groups is None:
        from slotkern.expressions.groups import groups_of
        groups = np.ascontiguousarray(
            groups_of(level, table).of_row[first_rows(self, table)], dtype=np.int32)
        self.cache_column(key, groups, table)
    return groups


cdef object first_rows(PreparedSlots self, object table):
    """Return the first row of each node in the table, in the order of the prepared nodes."""
    ids, rows = np.unique(table["node"], return_index=True)
    return rows[np.searchsorted(ids, place_ids(self))]


cdef object place_ids(PreparedSlots self):
    ids = np.empty(self.prepared.nodes.size(), np.int32)
    cdef int32_t[::1] view = ids
    cdef size_t k
    for k in range(self.prepared.nodes.size()):
        view[k] = self.prepared.nodes[k].id
    return ids


cdef object division_of_rows(PreparedSlots self, const CGroupRules& rules):
    """Return the division of the node of each row of the table."""
    divisions = np.zeros(self.prepared.nodes.size(), np.int32)
    cdef int32_t[::1] view = divisions
    cdef size_t k
    for k in range(rules.division.size()):
        view[k] = rules.division[k]
    ids = place_ids(self)
    order = np.argsort(ids)
    return divisions[order[np.searchsorted(ids[order], self.table["node"])]]
