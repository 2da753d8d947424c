"""Forms in which the same numbers may arrive: layouts, types and flags of dense and sparse arrays.

A form is a function of an array, or of a canonical CSR array, which returns equal numbers.
"""

import numpy as np
import scipy.sparse


def _read_only(array):
    copy = array.copy(order="K")
    copy.setflags(write=False)
    return copy


def _strided(array):
    wide = np.zeros(tuple(2 * size for size in array.shape), array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def _swapped(array):
    return array.astype(array.dtype.newbyteorder())


#: Layouts, which change no number and no type of the machine.
LAYOUTS = {
    "read-only": _read_only,
    "Fortran-ordered": np.asfortranarray,
    "non-contiguous": _strided,
    "reversed twice": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "read-only, non-contiguous": lambda array: _read_only_view(_strided(array)),
}
#: Types of floats and of whole numbers that hold small ones exactly.
FLOATS = ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]
INTEGERS = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i4", ">i8", ">u8"]


def _read_only_view(array):
    view = array.view()
    view.setflags(write=False)
    return view


def dense_forms(array):
    """Yield (name, the same numbers in another form) for an array of floats or whole numbers."""
    for name, layout in LAYOUTS.items():
        yield name, layout(array)
    if array.dtype.kind in "fiu":
        for dtype in FLOATS if array.dtype.kind == "f" else INTEGERS:
            yield np.dtype(dtype).str, array.astype(dtype)
            yield f"{np.dtype(dtype).str}, Fortran-ordered", np.asfortranarray(array.astype(dtype))


def unsorted(rows):
    """Return a CSR array with the entries of each row from the last to the first."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in _rows(rows)])
    return scipy.sparse.csr_array(
        (rows.data[order], rows.indices[order], rows.indptr.copy()), shape=rows.shape
    )


def duplicated(rows):
    """Return a CSR array in which each entry is stored as the sum of two."""
    order = np.concatenate([np.tile(np.arange(a, b), 2) for a, b in _rows(rows)])
    data = rows.data[order]
    is_first = np.concatenate([np.arange(2 * (b - a)) < b - a for a, b in _rows(rows)])
    data = np.where(is_first, 2 * data, -data).astype(rows.dtype)
    return scipy.sparse.csr_array((data, rows.indices[order], 2 * rows.indptr), shape=rows.shape)


def with_zeros(rows):
    """Return a CSR array that stores zeros, too, one in each row."""
    free = [np.setdiff1d(np.arange(rows.shape[1]), rows.indices[a:b])[:1] for a, b in _rows(rows)]
    data = [np.r_[rows.data[a:b], 0 * f] for (a, b), f in zip(_rows(rows), free, strict=True)]
    index = [np.r_[rows.indices[a:b], f] for (a, b), f in zip(_rows(rows), free, strict=True)]
    start = np.r_[0, np.cumsum([len(part) for part in index])]
    content = np.concatenate(data).astype(rows.dtype), np.concatenate(index), start
    return scipy.sparse.csr_array(content, shape=rows.shape)


def _rows(rows):
    return list(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True))


def _frozen(rows):
    for array in stored_arrays(rows):
        array.setflags(write=False)
    return rows


def _wide_indices(rows):
    rows = rows.copy()
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def _called_sorted(rows):
    rows = unsorted(rows)
    rows.has_sorted_indices = rows.has_canonical_format = True
    return rows


def _with_dtype(dtype):
    def converted(rows):
        rows = rows.copy()
        rows.data = rows.data.astype(dtype)
        return rows

    return converted


def _coo_with_duplicates(rows):
    coo = duplicated(rows).tocoo()
    order = np.random.default_rng(0).permutation(coo.nnz)
    content = coo.data[order], (coo.row[order], coo.col[order])
    return scipy.sparse.coo_array(content, shape=coo.shape)


#: Forms of a CSR array that keep its type.
SPARSE = {
    "unsorted": unsorted,
    "duplicated": duplicated,
    "with zeros": with_zeros,
    "read-only": lambda rows: _frozen(rows.copy()),
    "read-only, unsorted": lambda rows: _frozen(unsorted(rows)),
    "read-only, duplicated": lambda rows: _frozen(duplicated(rows)),
    "read-only, with zeros": lambda rows: _frozen(with_zeros(rows)),
    "int64 indices": _wide_indices,
    "unsorted, called sorted": _called_sorted,
    "coo, duplicated": _coo_with_duplicates,
    "csc": lambda rows: rows.tocsc(),
}


def sparse_forms(rows):
    """Yield (name, the same numbers in another form) for a canonical CSR array."""
    for name, form in SPARSE.items():
        yield name, form(rows)
    for dtype in FLOATS if rows.dtype.kind == "f" else INTEGERS:
        yield np.dtype(dtype).str, _with_dtype(dtype)(rows)
        if np.dtype(dtype).kind != "u":
            yield f"{np.dtype(dtype).str}, duplicated", _with_dtype(dtype)(duplicated(rows))


def stored_arrays(value):
    """Return the arrays in which a dense or sparse array keeps its numbers."""
    if not scipy.sparse.issparse(value):
        return [value]
    names = "data", "indices", "indptr", "row", "col", "rows"
    parts = (getattr(value, name, None) for name in names)
    return [part for part in parts if isinstance(part, np.ndarray)]


def snapshot(value):
    """Return all that a function may change of an array: its numbers, its layout, its flags."""
    parts = [
        (array.tobytes(), array.dtype.str, array.shape, array.strides, str(array.flags))
        for array in stored_arrays(value)
    ]
    if not scipy.sparse.issparse(value):
        return parts
    flags = vars(value).get("_has_sorted_indices"), vars(value).get("_has_canonical_format")
    # Both become known when SciPy looks; a known one must stay
    return parts, value.shape, value.dtype.str, value.nnz, [f for f in flags if f is not None]
