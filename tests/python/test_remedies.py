# tests/python/test_remedies.py: what explain() says of tables, series and Arrow arrays: it is so, and helps at once.
from __future__ import annotations

import datetime

import pytest
from real_support import has, need, script

import tenon

DAYS = [datetime.date(1970, 1, 3), None]
TABLE = "it is a table, and a tensor is one array"
BITS = "its elements are single bits"
MISSING = "some of its values are missing, which a tensor cannot say"
ROWS_MISSING = "some of its rows are missing, which a tensor cannot say"
PIECES = "it is in several pieces"
TIMES = "its elements are times, which a tensor has no type for"
CODES = "its elements are numbers of entries in a list of categories"
ENTRIES = "its elements are numbers of entries in a dictionary"
DECIMALS = "its elements are decimals, which a tensor has no type for"
WIDE = "its elements are integers of 128 bits, which a tensor has no type for"
LAZY = "it is a query that has not run yet"
NOT_HANDED_OUT = "pandas hands out no memory of it"
RUNS = "it holds each run of equal elements once"
AS_FLOATS = 'obj.to_numpy("float64", na_value=float("nan"))'


def pieces(pl, *parts, dtype=None):
    return pl.concat([pl.Series(part, dtype=dtype) for part in parts], rechunk=False)


def rows(pl, values, dtype=None):
    return pl.Series(values, dtype=pl.Array(dtype or pl.Int32, 2))


def arrow_rows(pa, values, kind=None):
    return pa.array(values, pa.list_(kind or pa.int32(), 2))


def runs(pa, *values, **kind):
    return need("pyarrow.compute").run_end_encode(pa.array(values, **kind))


def runs_of_rows(pa):
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), arrow_rows(pa, [[1, 2], None]))


def entries(pa, *values):
    return pa.array(values).dictionary_encode()


# What it is, how it is made, why it is refused, what helps, and the numbers that come of it.
CASES = {
    "pandas": {
        "table": (lambda pd: pd.DataFrame({"a": [1, 2]}), TABLE, "obj.to_numpy()", "[[1], [2]]"),
        "table without names": (lambda pd: pd.DataFrame([[1.5, 2.5]]), TABLE, "obj.to_numpy()", "[[1.5, 2.5]]"),
        "table of all kinds of numbers": (
            lambda pd: pd.DataFrame({"a": [1, 2], "b": [True, False]}), TABLE, AS_FLOATS, "[[1.0, 1.0], [2.0, 0.0]]"),
        "table with gaps": (
            lambda pd: pd.DataFrame({"a": [1, None]}, dtype="Int64"), TABLE, AS_FLOATS, "[[1.0], [nan]]"),
        "bools in an index": (
            lambda pd: pd.Index([True, False]), NOT_HANDED_OUT, "obj.to_numpy()", "[True, False]"),
        "index of categories": (lambda pd: pd.CategoricalIndex(["a", "b", None]), CODES, "obj.codes", "[0, 1, -1]"),
        "array with gaps": (lambda pd: pd.array([1, None], dtype="Int64"), MISSING, AS_FLOATS, "[1.0, nan]"),
        "complex numbers": (
            lambda pd: pd.Series([1j]), NOT_HANDED_OUT, "obj.to_numpy()", "[1j]"),
    },
    "polars": {
        "table": (lambda pl: pl.DataFrame({"a": [1, 2]}), TABLE, "obj.to_numpy()", "[[1], [2]]"),
        "table of decimals": (
            lambda pl: pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Decimal(10, 2))}), TABLE,
            "obj.cast(float).to_numpy()", "[[1.0], [2.0]]"),
        "table of bools with gaps": (
            lambda pl: pl.DataFrame({"a": [True, None]}), TABLE, "obj.cast(float).to_numpy()", "[[1.0], [nan]]"),
        "query": (lambda pl: pl.LazyFrame({"a": [1]}), LAZY, "obj.collect().to_numpy()", "[[1]]"),
        "query of decimals": (
            lambda pl: pl.LazyFrame({"a": pl.Series([1], dtype=pl.Decimal(10, 2))}), LAZY,
            "obj.collect().cast(float).to_numpy()", "[[1.0]]"),
        "integers of 128 bits": (
            lambda pl: pl.Series([1, 2], dtype=pl.Int128), WIDE, "obj.cast(float)", "[1.0, 2.0]"),
        "integers of 128 bits with gaps": (
            lambda pl: pl.Series([1, None], dtype=pl.Int128), WIDE, "obj.cast(float).fill_null(0)", "[1.0, 0.0]"),
        "decimals": (
            lambda pl: pl.Series([1, 2], dtype=pl.Decimal(10, 2)), DECIMALS, "obj.cast(float)", "[1.0, 2.0]"),
        "pieces of decimals": (
            lambda pl: pieces(pl, [1, None], [2], dtype=pl.Decimal(10, 2)), DECIMALS,
            "obj.cast(float).fill_null(0).rechunk()", "[1.0, 0.0, 2.0]"),
        "pieces": (lambda pl: pieces(pl, [1, 2], [3]), PIECES, "obj.rechunk()", "[1, 2, 3]"),
        "pieces with gaps": (
            lambda pl: pieces(pl, [1, None], [3]), MISSING, "obj.fill_null(0).rechunk()", "[1, 0, 3]"),
        "pieces of bools": (lambda pl: pieces(pl, [True], [False]), BITS, "obj.to_numpy()", "[True, False]"),
        "bools": (lambda pl: pl.Series([True, False]), BITS, "obj.to_numpy()", "[True, False]"),
        "bools with gaps": (
            lambda pl: pl.Series([True, None]), BITS, "obj.fill_null(False).to_numpy()", "[True, False]"),
        "dates": (lambda pl: pl.Series(DAYS[:1]), TIMES, "obj.to_physical()", "[2]"),
        "dates with gaps": (lambda pl: pl.Series(DAYS), TIMES, "obj.to_physical().fill_null(0)", "[2, 0]"),
        "categories with gaps": (
            lambda pl: pl.Series(["a", None], dtype=pl.Enum(["a"])), CODES,
            "obj.to_physical().cast(int).fill_null(-1)", "[0, -1]"),
        "rows with gaps": (lambda pl: rows(pl, [[1, 2], None]), ROWS_MISSING, "obj.drop_nulls()", "[[1, 2]]"),
        "rows of gaps": (lambda pl: rows(pl, [[1, None]]), MISSING, "obj.to_numpy()", "[[1.0, nan]]"),
        "rows with and of gaps": (
            lambda pl: rows(pl, [[1, None], None]), MISSING, "obj.drop_nulls().to_numpy()", "[[1.0, nan]]"),
        "rows of dates with gaps": (
            lambda pl: rows(pl, [DAYS[:1] * 2, None], pl.Date), TIMES, "obj.to_physical().drop_nulls()", "[[2, 2]]"),
        "rows of bools": (
            lambda pl: rows(pl, [[True, False]], pl.Boolean), BITS, "obj.to_numpy()", "[[True, False]]"),
        "rows of bools with gaps": (
            lambda pl: rows(pl, [[True, None], None], pl.Boolean), BITS,
            "obj.cast(polars.Array(float, (2,))).drop_nulls().to_numpy()", "[[1.0, nan]]"),
        "rows of decimals with gaps": (
            lambda pl: rows(pl, [[1, 2], None], pl.Decimal(10, 2)), DECIMALS,
            "obj.cast(polars.Array(float, (2,))).drop_nulls()", "[[1.0, 2.0]]"),
        "pieces of rows": (
            lambda pl: pl.concat([rows(pl, [[1, 2]])] * 2, rechunk=False), PIECES, "obj.rechunk()", "[[1, 2], [1, 2]]"),
    },
    "pyarrow": {
        "table": (lambda pa: pa.table({"a": [1, 2]}), TABLE, "obj.column(0)", "[1, 2]"),
        "table of more than numbers": (
            lambda pa: pa.table({"a": ["x", "y"], "b": [True, None]}), TABLE,
            'obj.column(1).cast("uint8").fill_null(0)', "[1, 0]"),
        "bools with gaps": (lambda pa: pa.array([True, None]), BITS, 'obj.cast("uint8").fill_null(0)', "[1, 0]"),
        "pieces of bools": (
            lambda pa: pa.chunked_array([[True], [None]]), BITS, 'obj.cast("uint8").fill_null(0).combine_chunks()',
            "[1, 0]"),
        "dictionary": (lambda pa: entries(pa, 5, 6), ENTRIES, "obj.cast(obj.type.value_type)", "[5, 6]"),
        "dictionary with gaps": (
            lambda pa: entries(pa, 5, None), ENTRIES, "obj.cast(obj.type.value_type).fill_null(0)", "[5, 0]"),
        "dictionary of a gap": (
            lambda pa: pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([5, None])), ENTRIES,
            "obj.cast(obj.type.value_type).fill_null(0)", "[5, 0]"),
        "dictionary of bools with gaps": (
            lambda pa: entries(pa, True, None), ENTRIES,
            'obj.cast(obj.type.value_type).cast("uint8").fill_null(0)', "[1, 0]"),
        "dictionary of strings": (lambda pa: entries(pa, "a", "b"), ENTRIES, "obj.indices", "[0, 1]"),
        "dictionary of strings with gaps": (
            lambda pa: entries(pa, "a", None), ENTRIES, 'obj.indices.cast("int64").fill_null(-1)', "[0, -1]"),
        "pieces of dictionaries": (
            lambda pa: pa.chunked_array([entries(pa, 5), entries(pa, 6, None)]), ENTRIES,
            "obj.cast(obj.type.value_type).fill_null(0).combine_chunks()", "[5, 6, 0]"),
        "pieces of dictionaries of strings": (
            lambda pa: pa.chunked_array([entries(pa, "a"), entries(pa, "b")]), ENTRIES,
            "obj.combine_chunks().indices", "[0, 1]"),
        "times with gaps": (
            lambda pa: pa.array([7, None], pa.timestamp("s")), TIMES, 'obj.cast("int64").fill_null(0)', "[7, 0]"),
        "dates with gaps": (lambda pa: pa.array(DAYS), TIMES, 'obj.cast("int32").fill_null(0)', "[2, 0]"),
        "decimals with gaps": (
            lambda pa: pa.array([7, None], pa.decimal128(5)), DECIMALS, 'obj.cast("float64").fill_null(0)',
            "[7.0, 0.0]"),
        "runs with gaps": (
            lambda pa: runs(pa, 7, None), RUNS, "pyarrow.compute.run_end_decode(obj).fill_null(0)", "[7, 0]"),
        "runs of times": (
            lambda pa: runs(pa, 7, type=pa.timestamp("s")), RUNS,
            'pyarrow.compute.run_end_decode(obj).cast("int64")', "[7]"),
        "rows of gaps": (
            lambda pa: arrow_rows(pa, [[1, None], [3, 4]]), MISSING,
            "obj.flatten().fill_null(0).to_numpy().reshape(-1, 2)", "[[1, 0], [3, 4]]"),
        "rows with and of gaps": (
            lambda pa: arrow_rows(pa, [[1, None], None]), MISSING,
            "obj.flatten().fill_null(0).to_numpy().reshape(-1, 2)", "[[1, 0]]"),
        "rows of rows of gaps": (
            lambda pa: pa.array([[[1, None]], [[3, 4]]], pa.list_(pa.list_(pa.int32(), 2), 1)), MISSING,
            "obj.flatten().flatten().fill_null(0).to_numpy().reshape(-1, 1, 2)", "[[[1, 0]], [[3, 4]]]"),
        "pieces of rows of bools": (
            lambda pa: pa.chunked_array([arrow_rows(pa, [[True, False]], pa.bool_())] * 2), BITS,
            'obj.combine_chunks().flatten().cast("uint8").to_numpy().reshape(-1, 2)', "[[1, 0], [1, 0]]"),
        "rows of times with gaps": (
            lambda pa: arrow_rows(pa, [[7, 8], None], pa.timestamp("us")), TIMES,
            'obj.flatten().cast("int64").to_numpy().reshape(-1, 2)', "[[7, 8]]"),
        "pieces of rows with gaps": (
            lambda pa: pa.chunked_array([[[1, 2], None], [[3, 4]]], pa.list_(pa.int32(), 2)), ROWS_MISSING,
            "obj.drop_null().combine_chunks()", "[[1, 2], [3, 4]]"),
    },
}  # fmt: skip


def fixed(obj, library):
    """What is said of an object that is refused, and the numbers there are after the fix."""
    answer = tenon.explain(obj, "numpy")
    assert answer.outcome == "refused"
    result = eval(answer.fix, {"obj": obj, library.__name__: library})
    return answer.reason, answer.fix, repr(tenon.asdlpack(result).tolist())


@pytest.mark.parametrize(("package", "what"), [(package, what) for package in CASES for what in CASES[package]])
def test_it_is_so_and_helps_at_once(package, what):
    library = need(package)
    make, *expected = CASES[package][what]
    assert fixed(make(library), library) == tuple(expected)


def test_bools_of_pandas():
    """Which has no way to hand them out before version 3 or without PyArrow, and packs them else."""
    pd = need("pandas")
    for dtype in ("bool", "boolean"):
        series = pd.Series([True, False], dtype=dtype)
        packed = hasattr(series, "__arrow_c_stream__") and has("pyarrow")
        reason = "pandas hands its elements out as single bits" if packed else NOT_HANDED_OUT
        assert fixed(series, pd) == (reason, "obj.to_numpy()", "[True, False]")


def test_pieces_in_pandas():
    pd, pa = need("pandas"), need("pyarrow")
    series = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([[1], [2]])))
    reason = PIECES if hasattr(series, "__arrow_c_stream__") else NOT_HANDED_OUT
    assert fixed(series, pd) == (reason, "obj.to_numpy()", "[1, 2]")


def test_dates_of_arrow_in_pandas():
    pd, _ = need("pandas"), need("pyarrow")
    fix = 'obj.astype("datetime64[s]").to_numpy().view("int64")'
    assert fixed(pd.Series(DAYS, dtype="date32[pyarrow]"), pd) == (TIMES, fix, repr([2 * 86400, -(2**63)]))
    far = pd.Series([datetime.date(3000, 1, 1)], dtype="date32[pyarrow]")
    assert fixed(far, pd) == (TIMES, fix, repr([32503680000]))


@pytest.mark.parametrize(
    ("dtype", "ticks"),
    [("datetime64[s]", 1), ("datetime64[ms]", 10**3), ("datetime64[us]", 10**6), ("datetime64[us, UTC]", 10**6),
     ("timestamp[s][pyarrow]", 1), ("timestamp[us, tz=UTC][pyarrow]", 10**6)],
)  # fmt: skip
def test_times_of_pandas_keep_their_unit(dtype, ticks):
    """The year 3000 is beyond what nanoseconds can say: they wrapped around to 1830."""
    pd = need("pandas")
    if "pyarrow" in dtype:
        need("pyarrow")
    zone = datetime.timezone.utc if "UTC" in dtype else None
    for make in (pd.Series, pd.Index):
        times = make([datetime.datetime(3000, 1, 1, tzinfo=zone)]).astype(dtype)
        reason, _, numbers = fixed(times, pd)
        assert (reason, numbers) == (TIMES, repr([32503680000 * ticks]))


def test_durations_of_pandas_keep_their_unit():
    pd = need("pandas")
    seconds = need("numpy").array([2**40], "m8[s]")
    assert fixed(pd.Series(seconds), pd)[2] == repr([2**40])


def test_long_doubles_of_pandas():
    pd, np = need("pandas"), need("numpy")
    reason = "its elements are long doubles, which differ by machine"
    for kind, narrow, shown in ((np.longdouble, "float64", "[1.5]"), (np.clongdouble, "complex128", "[(1.5+0j)]")):
        assert fixed(pd.Series([1.5], dtype=kind), pd) == (reason, f'obj.to_numpy("{narrow}")', shown)
        table = pd.DataFrame({"a": np.array([1.5], kind)})
        assert fixed(table, pd) == (TABLE, f'obj.to_numpy("{narrow}")', f"[{shown}]")


def test_single_values_of_arrow():
    pa, np = need("pyarrow"), need("numpy")
    reason = "it is a single value, and no array"
    for value, shown in ((7, "7"), (1.5, "1.5"), (True, "True")):
        answer = tenon.explain(pa.scalar(value), "numpy")
        made = tenon.asdlpack(eval(answer.fix, {"obj": pa.scalar(value), "numpy": np}))
        assert (answer.reason, repr(made.item())) == (reason, shown)
    for value in (pa.scalar(None, pa.int64()), pa.scalar(datetime.datetime(2020, 1, 1)), pa.scalar([1])):
        answer = tenon.explain(value, "numpy")
        assert (answer.reason, answer.fix) == (reason, "hand over the numbers in it")


def test_arrow_rows_that_hold_no_numbers():
    pa = need("pyarrow")
    for values, reason in ((arrow_rows(pa, [["a", "b"], None], pa.string()), "its elements are no numbers"),
                           (runs_of_rows(pa), RUNS)):  # fmt: skip
        answer = tenon.explain(values, "numpy")
        assert (answer.outcome, answer.reason, answer.fix) == ("refused", reason, "hand over the numbers in it")


def test_elements_without_an_axis():
    np = need("numpy")
    for obj, numbers in (
        (np.array(b"abc"), [97, 98, 99]), (np.array("ab"), [97, 98]), (np.str_("ab"), [97, 98]), (np.void(b"ab"), [97, 98]),
        (np.array([b"ab", b"cd"]), [97, 98, 99, 100]), (np.array(["ab"])[::-1], [97, 98]),
    ):  # fmt: skip
        answer = tenon.explain(obj, "torch")
        assert answer.outcome == "refused"
        assert tenon.asdlpack(eval(answer.fix, {"obj": obj, "numpy": np})).tolist() == numbers


def test_what_numpy_refuses_for_several_reasons():
    """The first that is said is one that is so, and the fix is for all of them."""
    np = need("numpy")
    swapped = np.array(7, dtype="M8[s]").astype(">M8[s]")
    assert fixed(swapped, np) == (TIMES, 'obj.astype(obj.dtype.newbyteorder("=")).view("int64")', "7")
    unmasked = np.ma.array([1, 2], dtype=">i4")
    assert tenon.explain(unmasked, "numpy").reason == "its elements are not in this machine's byte order"
    masked = np.ma.array([1, 2], mask=[True, False])
    assert tenon.explain(masked, "numpy").reason == "some of its elements are masked, which a tensor cannot say"


def test_bits_of_torch():
    torch = need("torch")
    for numbers, bits in ((torch.int16, torch.bits16), (torch.uint8, torch.bits8)):
        for obj in (torch.tensor(7, dtype=numbers), torch.full((3, 2), 7, dtype=numbers).T):
            answer = tenon.explain(obj.view(bits), "numpy")
            made = tenon.asdlpack(eval(answer.fix, {"obj": obj.view(bits), "torch": torch}))
            assert (made.dtype, made.tolist()) == (str(numbers).removeprefix("torch."), obj.tolist())


def test_types_without_end():
    """What stands in for a library may always have something more in it: it is asked 64 times, not for ever."""
    code = """
import sys, types, tenon
class Kind:
    shape, list_size = (2,), 2
    inner = value_type = property(lambda self: self)
    def __str__(self): return "fixed_size_list"
class Series:
    dtype = type = Kind()
    null_count = n_chunks = num_chunks = lambda self: 0
    drop_nulls = explode = flatten = lambda self: self
for package in ("polars", "pyarrow"):
    sys.modules[package] = types.ModuleType(package)
    Series.__module__ = package + ".x"
    assert tenon.explain(Series(), "numpy").outcome == "refused"
print("done")
"""
    assert script(code) == "done\n"


def test_what_has_no_numbers():
    pl, pa = need("polars"), need("pyarrow")
    for table in (pa.table({"a": ["x"]}), pl.DataFrame({"a": ["x"]})):
        assert tenon.explain(table, "numpy").fix == "hand over a column of numbers"
    query = pl.LazyFrame({"a": ["x"]})
    assert tenon.explain(query, "numpy").fix == "hand over a column of numbers of obj.collect()"
    runs_of_strings = tenon.explain(runs(pa, "x"), "numpy")
    assert (runs_of_strings.reason, runs_of_strings.fix) == (RUNS, "hand over the numbers in it")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_tables_of_more_than_numbers(package):
    """One array of all their columns would be of Python objects."""
    table = need(package).DataFrame({"a": [1, 2], "b": ["x", "y"]})
    answer = tenon.explain(table, "numpy")
    assert (answer.outcome, answer.reason, answer.fix) == ("refused", TABLE, "hand over a column of numbers")
    assert tenon.asdlpack(table["a"].to_numpy()).tolist() == [1, 2]


def test_an_expression_of_polars():
    answer = tenon.explain(need("polars").col("a"), "numpy")
    assert answer.outcome == "refused" and "expression" in answer.reason and "table" in answer.fix
