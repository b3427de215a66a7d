# Rows of a log as columns: Python spends as long on it as on booking their windows.


cdef object cell(tuple row, Py_ssize_t column):
    if not 0 <= column < len(row):
        raise IndexError(f"a row has no column {column}")
    return row[column]


def run_of_rows(list rows, Py_ssize_t begin, Py_ssize_t one, Py_ssize_t other):
    """Return the end of the rows from `begin` that are equal in two columns.

    O(rows). All rows are tuples; IndexError for a column that one lacks.
    """
    cdef Py_ssize_t end = begin
    cdef tuple row
    if not 0 <= begin < len(rows):
        raise IndexError(f"there is no row {begin}")
    first, second = cell(rows[begin], one), cell(rows[begin], other)
    for end in range(begin + 1, len(rows)):
        row = rows[end]
        if cell(row, one) != first or cell(row, other) != second:
            return end
    return len(rows)


def columns_of_rows(list rows, Py_ssize_t begin, Py_ssize_t end, tuple columns):
    """Return columns of the rows from `begin` to `end` as lists.

    O(rows x columns). All rows are tuples; IndexError for a column that one lacks.
    """
    cdef list found = [], values
    cdef Py_ssize_t column, i
    if not 0 <= begin <= end <= len(rows):
        raise IndexError(f"there are no rows {begin} to {end}")
    for column in columns:
        values = []
        for i in range(begin, end):
            values.append(cell(rows[i], column))
        found.append(values)
    return found
