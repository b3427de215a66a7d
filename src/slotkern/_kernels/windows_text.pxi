# The JSON of a window, for responses of few windows: Python spends longer on it than on a search.

cdef extern from "Python.h":
    char* PyOS_double_to_string(double, char, int, int, int*) except NULL
    const int Py_DTSF_ADD_DOT_0

cdef tuple OWN_COLUMNS = ("row", "node", "start", "end", "length", "cost")


cdef int append_number(string& out, double x) except -1:
    """Append a float as Python writes it; null if it is not finite."""
    cdef char* text
    if not isfinite(x):
        out.append(b"null")
    elif fabs(x) < 1e15 and x == <double><long long>x and not signbit(x):
        out.append(to_string(<long long>x)).append(b".0")
    else:
        text = PyOS_double_to_string(x, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
        out.append(text)
        PyMem_Free(text)
    return 0


cdef int append_member(string& out, const char* key, double x) except -1:
    out.append(key)
    return append_number(out, x)


def json_from_window(Window window not None, bytes more, dict columns):
    """Return a window as JSON: its totals and an object for each part.

    Parameters
    ----------
    window : Window
    more : bytes
        Members that follow the totals, with a comma before each.
    columns : dict of bytes
        The members of a part in order, by their names in JSON: None for row, node, start, end,
        length and cost of the window itself, an array of float64 by the rows of the searched
        slots, or a list of JSON as bytes for the parts.

    Notes
    -----
    O(parts x columns). The text has no special fields but those in `more`.

    Raises
    ------
    ValueError
        If there are no columns, or one has another length than the window.
    TypeError
        If an item of a list is not bytes.
    """
    cdef string out
    cdef Py_ssize_t n = window.count, count = len(columns), i, k
    cdef vector[string] keys
    cdef vector[int] kinds
    cdef vector[double] numbers  # the values of all arrays, column by column
    cdef size_t at
    cdef const double[:] values
    cdef list texts = []
    cdef const Part* part
    cdef double end
    if not count:
        raise ValueError("the parts of a window need columns")
    for name, column in columns.items():
        keys.push_back(b"%b%b:" % (b"," if keys.size() else b"{", name))
        if column is None:
            kinds.push_back(OWN_COLUMNS.index(name[1:len(name) - 1].decode()))
        elif isinstance(column, list):
            if len(column) != n:
                raise ValueError(f"{name.decode()} has {len(column)} values for {n} parts")
            kinds.push_back(7)
        else:
            values = column
            for i in range(n):
                if not 0 <= window.parts[i].row < values.shape[0]:
                    raise ValueError(f"{name.decode()} has no row {window.parts[i].row}")
                numbers.push_back(values[window.parts[i].row])
            kinds.push_back(6)
        texts.append(column)
    append_member(out, b'{"start":', window.start)
    append_member(out, b',"finish":', window.finish)
    append_member(out, b',"runtime":', window.runtime)
    append_member(out, b',"cost":', window.cost)
    append_member(out, b',"processor_time":', window.processor_time)
    append_member(out, b',"value":', window.value)
    out.append(b',"proven":true' if window.proven else b',"proven":false')
    out.append(b',"proven_over":"').append(<bytes>window.proven_over.encode()).append(b'"')
    append_member(out, b',"bound":', window.bound)
    out.append(more).append(b',"slots":[')
    for i in range(n):
        part, at = &window.parts[i], i
        end = window.start + part.length
        if i:
            out.append(b",")
        for k in range(count):
            out.append(keys[k])
            if kinds[k] == 0:
                out.append(to_string(<long long>part.row))
            elif kinds[k] == 1:
                out.append(to_string(<long long>part.node))
            elif kinds[k] == 2:
                append_number(out, window.start)
            elif kinds[k] == 3:
                append_number(out, end)
            elif kinds[k] == 4:
                append_number(out, end - window.start)
            elif kinds[k] == 5:
                append_number(out, part.cost)
            elif kinds[k] == 6:
                append_number(out, numbers[at])
                at += n
            else:
                out.append(<bytes?>(<list>texts[k])[i])
        out.append(b"}")
    out.append(b"]}")
    return PyUnicode_DecodeUTF8(out.data(), out.size(), NULL)
