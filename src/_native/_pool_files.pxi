# Part of _pool.pyx: pools as files, and states as arrays, checked when they come from one.

cdef int save_pool(SlotPool pool, str path) except -1:
    """Write a draft beside `path`, flush it to the disk, rename it."""
    if pool.table.dtype.hasobject:
        raise TypeError(f"slots of type {pool.table.dtype} hold objects: cannot be saved")
    import tempfile  # here and in load_pool: a search does not need them
    state = pool._state()
    folder = os.path.dirname(os.path.abspath(path))
    handle, draft = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, format=np.array(FORMAT), origin=pool.table,
                     now=np.array(pool.now), **state)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    if os.name == "posix":
        folder_handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_handle)
        finally:
            os.close(folder_handle)


cdef SlotPool load_pool(str path):
    """The pool in this file, or one ValueError that says what is wrong with it."""
    import zipfile
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no zip archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        if str(arrays.pop("format")) != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        origin, now = arrays.pop("origin"), float(arrays.pop("now"))
        check_state(origin, arrays, now)
        return restored(origin, arrays, now)
    except KeyError as error:
        raise ValueError(f"{path}: not a whole slotkern pool: it has no {error}") from None
    except (ValueError, TypeError, IndexError, EOFError, zipfile.BadZipFile,
            AttributeError, NotImplementedError) as error:
        raise ValueError(f"{path}: not a whole slotkern pool: {error}") from None


def restored(origin, state, now):
    """The pool of these arrays."""
    fresh = SlotPool(origin[np.lexsort((origin["node"], origin["start"]))])._state()
    if now == -np.inf and all([np.array_equal(fresh[name], state[name]) for name in fresh]):
        return SlotPool(origin)  # nothing has changed yet
    pool = SlotPool(origin[:0])
    pool._restore(origin, state, now, len(state["free"]))
    return pool


def check_state(origin, state, now):
    """Raise ValueError unless these arrays can be a pool."""
    check_slots(origin[np.lexsort((origin["node"], origin["start"]))])
    if np.isnan(now):
        raise ValueError("now is nan")
    if not np.isin(state["gone"], origin["node"]).all():
        raise ValueError("a removed node is unknown")
    for name in ("free", "booked"):
        spans = state[name]
        if spans.dtype.names != SPAN.names or spans.ndim != 1:
            raise ValueError(f"{name} has the type {spans.dtype}")
        state[name] = spans.astype(SPAN)
    spans = np.concatenate([state["free"], state["booked"]])
    if not ((spans["row"] >= 0) & (spans["row"] < len(origin))).all():
        raise ValueError("a span is of no row")
    slots = origin[spans["row"]]
    inside = (
        (spans["node"] == slots["node"]) & (slots["start"] <= spans["start"])
        & (spans["start"] < spans["end"]) & (spans["end"] <= slots["end"])
    )
    if not inside.all():
        raise ValueError("a span lies outside its slot")
    ordered = spans[np.lexsort((spans["start"], spans["node"]))]
    b = ordered[1:]
    a = ordered[:len(b)]
    if ((a["node"] == b["node"]) & (a["end"] > b["start"])).any():
        raise ValueError("spans overlap")


cdef object failure(Status status):
    cdef Query query
    return search_error(status, query)


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise failure(status)
    return 0


cdef vector[double] prices_of(object table) except *:
    cdef vector[double] prices
    cdef const double[::1] column = np.ascontiguousarray(table["price"])
    if column.shape[0]:
        prices.assign(&column[0], &column[0] + column.shape[0])
    return prices


cdef int fill_spans(object table, vector[int32_t]& nodes, vector[Span]& spans) except -1:
    cdef Span span
    for row, node, start, end in table.tolist():
        span.row, span.start, span.end = row, start, end
        spans.push_back(span)
        nodes.push_back(node)
    return 0


cdef object span_table(const vector[int32_t]& nodes, const vector[Span]& spans):
    cdef size_t k, size = spans.size()
    cdef int64_t[::1] rows = np.empty(size, np.int64)
    cdef int32_t[::1] ids = np.empty(size, np.int32)
    cdef double[:, ::1] times = np.empty((2, size))
    for k in range(size):
        rows[k] = spans[k].row
        ids[k] = nodes[k]
        times[0, k] = spans[k].start
        times[1, k] = spans[k].end
    out = np.empty(size, SPAN)
    out["row"], out["node"] = rows, ids
    out["start"], out["end"] = times
    return out


cdef str part_text(Window window, size_t bad):
    cdef Part part = window.parts[bad]
    return f"node {part.node} from {window.start} to {window.start + part.length}"
