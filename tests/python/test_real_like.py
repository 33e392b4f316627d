# tests/python/test_real_like.py: tensors go back as the caller's own library has them, over the same memory, and new ones come from that library.
from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import itertools
import mmap
import sys
import types
import weakref

import fakes
import fakes_ctypes
import pytest
import tenon_exports
from producers import exactly_once, exchange_class
from real_consumers import CONSUMERS, DTYPES, FIELDS, LAYOUTS, PATTERN, attempt, fields_of, try_out, wide_types
from real_support import READ_ONLY, ExchangeTable, need, nothing_kept, raw, reference_to, references, settle

import tenon

OWN = type(tenon_exports.produce(tenon_exports.Counter()))  # the type this extension module makes
np = need("numpy")


def torch():
    return need("torch")


def on_cpu(jax):
    """An array of JAX's in host memory, where its default may be another."""
    return jax.device_put(jax.numpy.ones(2), jax.devices("cpu")[0])


def subclass_of(base, **members):
    return type("Derived", (base,), members)


def refuses(self, **keywords):
    raise AssertionError("asked for a capsule")


# Each: the library to have, the column of the tables that says what it takes, an array of it, the exact type to get.
LIKES = {
    "torch": ("torch", "torch", lambda: torch().ones(2), lambda: torch().Tensor),
    "torch, parameter": ("torch", "torch", lambda: torch().nn.Parameter(torch().ones(2)), lambda: torch().Tensor),
    "torch, grad": ("torch", "torch", lambda: torch().ones(2, requires_grad=True), lambda: torch().Tensor),
    "torch, conjugate": (
        "torch", "torch", lambda: torch().ones(2, dtype=torch().complex64).conj(), lambda: torch().Tensor
    ),
    "torch, meta": ("torch", "torch", lambda: torch().ones(2, device="meta"), lambda: torch().Tensor),
    "torch, subclass": (
        "torch", "torch", lambda: torch().ones(2).as_subclass(subclass_of(torch().Tensor)), lambda: torch().Tensor
    ),
    "torch, closed subclass": (
        "torch", "torch",
        lambda: torch().ones(2).as_subclass(subclass_of(torch().Tensor, __dlpack__=refuses)), lambda: torch().Tensor,
    ),
    "numpy": ("numpy", "np.asarray", lambda: np.ones(2), lambda: np.ndarray),
    "numpy, 0-d": ("numpy", "np.asarray", lambda: np.ones(()), lambda: np.ndarray),
    "numpy, read-only": ("numpy", "np.asarray", lambda: np.broadcast_to(1.0, (2, 2)), lambda: np.ndarray),
    "numpy, big-endian": ("numpy", "np.asarray", lambda: np.ones(2, ">f4"), lambda: np.ndarray),
    "numpy, objects": ("numpy", "np.asarray", lambda: np.array([None]), lambda: np.ndarray),
    "numpy, scalar": ("numpy", "np.asarray", lambda: np.float32(1), lambda: np.ndarray),
    "numpy, subclass": (
        "numpy", "np.asarray", lambda: np.ones(2).view(subclass_of(np.ndarray)), lambda: np.ndarray
    ),
    "numpy, matrix": ("numpy", "np.asarray", lambda: np.ones((2, 2)).view(np.matrix), lambda: np.ndarray),
    "numpy, masked": ("numpy", "np.asarray", lambda: np.ma.ones(3), lambda: np.ndarray),
    "jax": ("jax", "jax", lambda: on_cpu(need("jax")), lambda: type(need("jax").numpy.ones(2))),
    "tensorflow": (
        "tensorflow", "tensorflow", lambda: need("tensorflow").constant([1.0]),
        lambda: type(need("tensorflow").constant([1.0])),
    ),
    "tensorflow, variable": (
        "tensorflow", "tensorflow", lambda: need("tensorflow").Variable([1.0]),
        lambda: type(need("tensorflow").constant([1.0])),
    ),
    "pyarrow": ("pyarrow", "pa.Array", lambda: need("pyarrow").array([1, 2]), None),  # a class for each type
    "pyarrow, tensor": (
        "pyarrow", "pa.Tensor", lambda: need("pyarrow").Tensor.from_numpy(np.ones(2)), lambda: need("pyarrow").Tensor
    ),
    "tvm_ffi": (
        "tvm_ffi", "tvm_ffi", lambda: need("tvm_ffi").from_dlpack(np.ones(2)), lambda: need("tvm_ffi").Tensor
    ),
}  # fmt: skip
# One of each library is enough for the large tables.
PLAIN = ["torch", "torch, closed subclass", "numpy", "jax", "tensorflow", "pyarrow", "pyarrow, tensor", "tvm_ffi"]

OF_NO_LIBRARY = {
    "None": None, "int": 1, "list": [1.0], "object": object(),
    "class": np.ndarray, "module": sys, "own": tenon_exports.produce(tenon_exports.Counter()),
    "imported": tenon.asdlpack(b"a"), "user class": tenon_exports.Matrix(2, 2),
}  # fmt: skip

# Memory to look at, and no library: who passes it expects NumPy's arrays.
MEMORY_ALONE = {
    "bytes": lambda: b"a", "bytearray": lambda: bytearray(1), "memoryview": lambda: memoryview(b"a"),
    "array": lambda: array.array("f", [1]), "ctypes": lambda: (ctypes.c_float * 2)(), "mmap": lambda: mmap.mmap(-1, 8),
    "pandas": lambda: need("pandas").Series([1.0]),
    "polars": lambda: need("polars").Series([1.0]),
    "PIL": lambda: need("PIL.Image").new("L", (2, 2)),
    "array interface": lambda: types.new_class("Shown", (), {}, lambda members: members.update(__array_interface__={}))(),
}  # fmt: skip


def model_of(like):
    library, column, make, _ = LIKES[like]
    need(library)
    CONSUMERS[column].need()
    return make()


def settings_of(like):
    """JAX makes 64-bit types narrow, in a copy, unless it is told not to."""
    return wide_types() if like == "jax" else contextlib.nullcontext()


def aligned(size=512):
    """Memory that any library likes, filled."""
    store = (ctypes.c_char * (size + 64))()
    start = -ctypes.addressof(store) % 64
    store[start : start + size] = PATTERN[:size]
    return store, ctypes.addressof(store) + start


def send(like, letter, **fields):
    """to_python(t, like) over memory of this test: what came of it, checked, and released exactly once."""
    model = model_of(like)
    _, column, _, kind = LIKES[like]
    store, address = aligned()
    start = address - ctypes.addressof(store)
    data = fields.pop("data", PATTERN)
    store[start : start + len(data)] = data
    said = tenon_exports.produce(tenon_exports.Counter(), address=address, **fields)
    counter = tenon_exports.Counter()

    def make(_):
        return tenon_exports.like(counter, model, address=address, **fields)

    def check():
        # An exchange table that refuses says RuntimeError where `from_dlpack` says BufferError.
        letter_here = {"B": "r"}.get(letter, letter) if column == "torch" else letter
        # Its own function shares what it cannot compute with.
        if column == "tensorflow" and letter == "=" and said.size and said.data_ptr % 64 != 0:
            letter_here = "c"
        view, look = try_out(CONSUMERS[column], None, said, letter_here, said.dtype, make)
        if view is None:
            return
        assert type(view) is kind() if kind else isinstance(view, need("pyarrow").Array)
        assert look.data in (said_bytes(said), None)
        if said.size and look.address == address:
            assert counter.releases == 0
            assert look.writable in (not said.readonly, None)

    with exactly_once(counter), nothing_kept(model), settings_of(like):
        check()
        settle(counter)


def said_bytes(t):
    return ctypes.string_at(t.data_ptr, t.nbytes) if t.is_contiguous and t.size else raw(t)


@pytest.mark.parametrize("like", LIKES)
def test_in_and_out(like):
    send(like, "=", shape=(6,), dtype="float32")


@pytest.mark.parametrize("like", PLAIN)
@pytest.mark.parametrize("row", DTYPES)
def test_dtype(row, like):
    _, _, fields = fields_of(row)
    send(like, DTYPES[row][LIKES[like][1]], **fields)


@pytest.mark.parametrize("like", PLAIN)
@pytest.mark.parametrize("row", LAYOUTS)
def test_layout(row, like):
    column = LIKES[like][1]
    # TensorFlow's own function takes no read-only memory, because nobody can tell that it is TensorFlow's; we can.
    shown = {"read-only": "1-d"}.get(row, row.removeprefix("read-only, ")) if column == "tensorflow" else row
    send(like, LAYOUTS[shown][column], dtype="float32", **FIELDS[row])


@pytest.mark.parametrize("offset", [4, 16, 32])
def test_memory_that_tensorflow_cannot_compute_with_is_copied(offset):
    """It would share it, and end the process with "Check failed: IsAligned()" at the first sum (a std::vector's is so)."""
    tf = need("tensorflow")
    store, address = aligned()
    expected = sum(np.frombuffer((ctypes.c_char * 64).from_address(address + offset), np.uint8).tolist())
    for make in (tenon_exports.like, tenon_exports.described_like):
        counter = tenon_exports.Counter()
        with exactly_once(counter):
            made = make(counter, tf.constant([1.0]), address=address + offset, shape=(64,), dtype="uint8")
            assert counter.releases == 1  # the copy is what it holds
            assert int(tf.reduce_sum(tf.cast(made, tf.int64))) == expected
            assert int(tf.reduce_max(tf.reverse(made, [0]))) == max(PATTERN[offset : offset + 64])
    kept = tenon_exports.Counter()
    with exactly_once(kept):
        shared = tenon_exports.like(kept, tf.constant([1.0]), address=address, shape=(64,), dtype="uint8")
        assert kept.releases == 0
        del shared
    del store


@pytest.mark.parametrize("like", PLAIN)
def test_memory_lives_as_long_as_the_array(like):
    model = model_of(like)
    counter = tenon_exports.Counter()
    x = tenon_exports.like(counter, model, shape=(6,), data=PATTERN)
    del model
    gc.collect()
    assert counter.releases == 0
    assert CONSUMERS[LIKES[like][1]].look(x).data == PATTERN[:24]
    del x
    settle(counter)
    assert counter.releases == 1


@pytest.mark.parametrize("name", OF_NO_LIBRARY)
def test_what_belongs_to_no_library_gives_a_tensor(name):
    counter = tenon_exports.Counter()

    def check():
        x = tenon_exports.like(counter, OF_NO_LIBRARY[name], shape=(6,), data=PATTERN, readonly=True)
        assert type(x) in (OWN, tenon.Tensor)
        assert (raw(x), x.shape, x.dtype, x.flags) == (PATTERN[:24], (6,), "float32", READ_ONLY)

    with exactly_once(counter):
        check()


@pytest.mark.parametrize("name", MEMORY_ALONE)
def test_memory_alone_gives_an_array_of_numpy(name):
    counter = tenon_exports.Counter()

    def check():
        x = tenon_exports.like(counter, MEMORY_ALONE[name](), shape=(6,), data=PATTERN, readonly=True)
        assert type(x) is np.ndarray
        assert (x.tobytes(), x.shape, x.dtype, x.flags.writeable) == (PATTERN[:24], (6,), "float32", False)

    with exactly_once(counter, exports=2):
        for _ in range(2):
            check()


def test_memory_alone_and_what_numpy_cannot_hold():
    """Memory of a GPU: nobody has named NumPy, so it is not refused."""
    counter = tenon_exports.Counter()
    with exactly_once(counter):
        x = tenon_exports.like(counter, b"a", shape=(6,), device=(2, 0), address=0x7F00_0000_0000)
        assert type(x) in (OWN, tenon.Tensor)
        del x


def test_numpy_memmap(tmp_path):
    mapped = np.memmap(tmp_path / "values", dtype="f4", mode="w+", shape=(3,))
    assert tenon_exports.there_and_back(mapped) is mapped
    assert type(tenon_exports.like(tenon_exports.Counter(), mapped)) is np.ndarray


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_jax_without_wide_types(dtype):
    """JAX's own choice: a copy, and half as wide."""
    model = model_of("jax")
    if need("jax").config.jax_enable_x64:
        pytest.skip("JAX has been told to keep 64 bits")
    a = np.arange(3).astype(dtype)
    x = tenon_exports.like(tenon_exports.Counter(), model, shape=(3,), dtype=dtype, data=a.tobytes())
    assert x.dtype.itemsize * 2 == a.itemsize
    assert np.asarray(x).tolist() == a.tolist()


def test_torch_gives_no_gradient():
    x = tenon_exports.like(tenon_exports.Counter(), model_of("torch, grad"), shape=(6,))
    assert (x.requires_grad, x.is_leaf, x.grad_fn) == (False, True, None)


# --- imported, and back -----------------------------------------------------------------------------

THE_SAME = {
    "plain": lambda: np.arange(6.0).reshape(2, 3),
    "0-d": lambda: np.array(1.0),
    "empty": lambda: np.zeros((0, 3)),
    "sliced": lambda: np.arange(12)[::-2],
    "transposed": lambda: np.arange(6).reshape(2, 3).T,
    "broadcast": lambda: np.broadcast_to(np.arange(3), (4, 3)),
    "read-only": lambda: np.frombuffer(b"abcd", "u1"),
    "bool": lambda: np.array([True, False]),
    "complex": lambda: np.ones(3, "c16"),
    "subclass": lambda: np.ones(3).view(subclass_of(np.ndarray)),
    "matrix": lambda: np.ones((2, 2)).view(np.matrix),
    "long": lambda: np.ones(3, "l"),
    "long long": lambda: np.ones(3, "q"),
}


@pytest.mark.parametrize("name", THE_SAME)
def test_an_array_of_numpy_comes_back_as_itself(name):
    a = THE_SAME[name]()
    with nothing_kept(a):
        back = tenon_exports.there_and_back(a)
        same_type = np.dtype(a.dtype.name).num == a.dtype.num  # of two C types of one size, one is DLPack's
        assert (back is a) is same_type
        assert (back.shape, back.dtype, back.ctypes.data) == (a.shape, a.dtype, a.ctypes.data)
        del back


def test_an_array_that_is_not_the_models_type_comes_back_as_the_models():
    a, derived = np.ones(3), np.ones(3).view(subclass_of(np.ndarray))
    for one, other in itertools.permutations([a, derived]):
        back = tenon_exports.there_and_back(one, other)
        assert back is not one
        assert (type(back), back.ctypes.data) == (np.ndarray, one.ctypes.data)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex32"])
def test_ml_dtypes_there_and_back(dtype):
    ml_dtypes = need("ml_dtypes")
    if not hasattr(ml_dtypes, dtype):
        pytest.skip(f"this ml_dtypes has no {dtype}")
    a = np.arange(3).astype(getattr(ml_dtypes, dtype))
    back = tenon_exports.there_and_back(a)
    assert (type(back), back.dtype, back.ctypes.data) == (np.ndarray, a.dtype, a.ctypes.data)
    assert back.tobytes() == a.tobytes()


@pytest.mark.parametrize("like", [n for n in PLAIN if n != "torch, closed subclass"])  # which cannot be imported
def test_there_and_back(like):
    """Its own array again, over the same memory."""
    model, door = model_of(like), CONSUMERS[LIKES[like][1]]
    before = door.look(model)
    back = tenon_exports.there_and_back(model)
    assert type(back) is type(model)
    assert door.look(back)[:5] == before[:5]
    if before.writable is False:
        assert door.look(back).writable is False


# --- libraries nobody has heard of ------------------------------------------------------------------

numbers = itertools.count()


class Library(types.ModuleType):
    """A package with arrays over NumPy's; remembers how often each of its functions was looked for and called."""

    def __init__(self, *functions, arrays=(), **members):
        super().__init__(f"library{next(numbers)}")
        self.looked, self.made = [], []
        made = self.made

        def from_dlpack(x):
            made.append(("from_dlpack", type(x)))
            a = self.Array()
            a.inside = np.from_dlpack(x)
            return a

        def empty(shape, *, dtype):
            made.append(("empty", shape, dtype))
            a = self.Array()
            a.inside = np.empty(shape, dtype if isinstance(dtype, str) else dtype.name)
            return a

        known = {"from_dlpack": from_dlpack, "empty": empty}
        self.__dict__.update({name: known[name] for name in functions}, **members)
        self.Array = type("Array", (), {
            "__module__": f"{self.__name__}.arrays", "__dlpack__": lambda self, **k: self.inside.__dlpack__(**k),
            "__dlpack_device__": lambda self: (1, 0), "inside": np.ones(1), **dict(arrays),
        })  # fmt: skip

    def __getattribute__(self, name):
        if name in ("from_dlpack", "empty"):
            self.looked.append(name)
        return super().__getattribute__(name)

    def __enter__(self):
        sys.modules[self.__name__] = self
        return self

    def __exit__(self, *_):
        del sys.modules[self.__name__]


def test_package_with_from_dlpack():
    counter = tenon_exports.Counter()
    with Library("from_dlpack") as library, exactly_once(counter, exports=5):
        for _ in range(5):
            x = tenon_exports.like(counter, library.Array(), shape=(6,), data=PATTERN)
            assert type(x) is library.Array
            assert x.inside.tobytes() == PATTERN[:24]
        del x
        assert library.made == [("from_dlpack", OWN)] * 5
        assert library.looked.count("from_dlpack") == 1  # once for each type


def test_function_is_found_once_for_each_type():
    with Library("from_dlpack", "empty") as library:
        models = [library.Array(), subclass_of(library.Array, __module__=library.__name__)()]
        for model in models:
            for _ in range(3):
                tenon_exports.like(tenon_exports.Counter(), model)
        assert library.looked.count("from_dlpack") == 2


def namespace(**members):
    return types.SimpleNamespace(__name__=f"namespace{next(numbers)}", **members)


def test_standard_namespace_comes_first():
    """`__array_namespace__()` is asked before the package, once."""
    asked = []
    space = namespace(from_dlpack=lambda x: ("made", np.from_dlpack(x)))

    def ask(self, **keywords):
        asked.append(keywords)
        return space

    with Library("from_dlpack", arrays={"__array_namespace__": ask}) as library:
        for _ in range(3):
            said, a = tenon_exports.like(tenon_exports.Counter(), library.Array(), shape=(6,), data=PATTERN)
            assert (said, a.tobytes()) == ("made", PATTERN[:24])
        assert library.made == []
        assert len(asked) <= 2  # for `from_dlpack` and for `empty`


def test_two_namespaces_of_one_name_are_two():
    name = f"namespace{next(numbers)}"
    made = []
    for word in ("one", "other"):
        space = types.SimpleNamespace(__name__=name, from_dlpack=lambda x, word=word: word)
        with Library(arrays={"__array_namespace__": lambda self, space=space: space}) as library:
            made.append(tenon_exports.like(tenon_exports.Counter(), library.Array()))
    assert made == ["one", "other"]


def test_function_of_the_class_comes_first():
    with Library("from_dlpack", arrays={"from_dlpack": classmethod(lambda cls, x: (cls, np.from_dlpack(x)))}) as library:
        cls, a = tenon_exports.like(tenon_exports.Counter(), library.Array(), shape=(6,), data=PATTERN)
        assert (cls, a.tobytes(), library.made) == (library.Array, PATTERN[:24], [])


BARREN = {
    "nothing": {},
    "namespace without": {"__array_namespace__": lambda self: namespace()},
    "namespace without a name": {"__array_namespace__": lambda self: types.SimpleNamespace(from_dlpack=repr)},
    "namespace that raises": {"__array_namespace__": lambda self: 1 / 0},
    "namespace is None": {"__array_namespace__": None},
    "namespace on the instance": {},
}


@pytest.mark.parametrize("name", BARREN)
def test_library_without_a_maker_gives_a_tensor(name):
    counter = tenon_exports.Counter()
    with Library(arrays=BARREN[name]) as library, exactly_once(counter):
        model = library.Array()
        model.from_dlpack = lambda x: 1 / 0
        if name == "namespace on the instance":
            model.__array_namespace__ = lambda: namespace(from_dlpack=lambda x: 1 / 0)
        x = tenon_exports.like(counter, model, shape=(6,), data=PATTERN)
        assert (type(x), raw(x)) == (OWN, PATTERN[:24])
        del x


def test_package_that_is_gone_gives_a_tensor():
    library = Library("from_dlpack")
    assert type(tenon_exports.like(tenon_exports.Counter(), library.Array())) is OWN


RAISED = [ZeroDivisionError("nothing"), TypeError("a type"), BufferError("no"), KeyboardInterrupt(), MemoryError()]


@pytest.mark.parametrize("exception", RAISED, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("where", ["package", "namespace", "class"])
def test_maker_that_raises(where, exception):
    """The library's own exception, as it is; the memory is released once."""

    def from_dlpack(x):
        raise exception

    arrays = {
        "package": {},
        "namespace": {"__array_namespace__": lambda self: namespace(from_dlpack=from_dlpack)},
        "class": {"from_dlpack": staticmethod(from_dlpack)},
    }[where]
    counter = tenon_exports.Counter()
    with Library(arrays=arrays, **({"from_dlpack": from_dlpack} if where == "package" else {})) as library:
        model = library.Array()
        for n in (1, 2):
            with pytest.raises(type(exception)) as caught:
                tenon_exports.like(counter, model)
            assert caught.value is exception
            exception.__traceback__ = None
            del caught
            gc.collect()
            assert (counter.exports, counter.releases) == (n, n)


def test_namespace_that_is_interrupted():
    def ask(self):
        raise KeyboardInterrupt

    counter = tenon_exports.Counter()
    with Library("from_dlpack", arrays={"__array_namespace__": ask}) as library:
        with exactly_once(counter), pytest.raises(KeyboardInterrupt):
            tenon_exports.like(counter, library.Array())


def test_a_failure_is_not_remembered():
    works = []

    def from_dlpack(x):
        if not works:
            raise RuntimeError("not yet")
        return works[0]

    with Library(from_dlpack=from_dlpack) as library:
        model = library.Array()
        with pytest.raises(RuntimeError, match="not yet"):
            tenon_exports.like(tenon_exports.Counter(), model)
        works.append("made")
        assert tenon_exports.like(tenon_exports.Counter(), model) == "made"


def test_array_api_strict():
    strict = need("array_api_strict")
    x = tenon_exports.like(tenon_exports.Counter(), strict.ones(2), shape=(6,), data=PATTERN)
    assert type(x) is type(strict.ones(2))
    assert np.asarray(x).tobytes() == PATTERN[:24]


# --- exchange tables that fail ----------------------------------------------------------------------

TABLE_NAME = b"dlpack_exchange_api"
kept = []  # tables live as long as the process


def scripted_table(**functions):
    """A class whose table has these functions in place of the fakes' own."""
    table = ExchangeTable()
    ctypes.memmove(ctypes.addressof(table), fakes.Table().address, ctypes.sizeof(table))
    for name, function in functions.items():
        setattr(table, name, dict(ExchangeTable._fields_)[name](function))
    kept.append((table, functions))
    capsule = fakes_ctypes._new(ctypes.addressof(table), TABLE_NAME, fakes_ctypes.Destructor())
    return exchange_class(value=capsule)


def release(managed):
    fakes_ctypes.Versioned.from_address(managed).deleter(managed)


def wrap_released(managed, out):
    release(managed)
    return -1


def wrap_kept(managed, out):
    return -1


def wrap_no_object(managed, out):
    release(managed)
    out[0] = None
    return 0


def wrap_failed_with_object(managed, out):
    out[0] = 0x10  # not to be looked at after a failure
    return -1


@pytest.mark.parametrize(
    ("wrap", "said"),
    [
        (wrap_released, "gave no reason"),
        (wrap_kept, "gave no reason"),
        (wrap_no_object, "gave no reason"),
        (wrap_failed_with_object, "gave no reason"),
        (None, "fakes: never"),  # with an exception, and the struct kept
    ],
    ids=["released", "kept", "no object", "failed with an object", "raised"],
)
def test_table_that_fails(wrap, said):
    counter = tenon_exports.Counter()
    model = (scripted_table(wrap=wrap) if wrap else exchange_class())()
    for n in (1, 2):
        with pytest.raises(BufferError, match=said):
            tenon_exports.like(counter, model)
        gc.collect()
        assert (counter.exports, counter.releases, counter.had_error) == (n, n, False)


def test_table_that_works_is_given_the_whole_struct():
    seen = {}

    def wrap(managed, out):
        struct = fakes_ctypes.Versioned.from_address(managed)
        t = struct.dl_tensor
        seen.update(version=(struct.version.major, struct.version.minor), flags=struct.flags, shape=t.shape[: t.ndim],
                    strides=t.strides[: t.ndim], dtype=(t.dtype.code, t.dtype.bits, t.dtype.lanes),
                    device=(t.device.device_type, t.device.device_id), offset=t.byte_offset,
                    data=ctypes.string_at(t.data, 4))  # fmt: skip
        release(managed)
        out[0] = reference_to(seen)
        return 0

    counter = tenon_exports.Counter()
    before = references(seen)
    with exactly_once(counter):
        model = scripted_table(wrap=wrap)()
        assert tenon_exports.like(counter, model, shape=(2, 3), dtype="int8", data=PATTERN, readonly=True) is seen
    assert references(seen) == before
    assert seen == {
        "version": (1, 3), "flags": READ_ONLY, "shape": [2, 3], "strides": [3, 1], "dtype": (0, 8, 1),
        "device": (1, 0), "offset": 0, "data": PATTERN[:4],
    }  # fmt: skip


def test_table_without_that_function_is_no_maker():
    model = exchange_class(fakes.Table(null=("to_python",)))()
    x, refusal = attempt(lambda _: tenon_exports.like(tenon_exports.Counter(), model), None)
    assert refusal is not None or type(x) is OWN


# --- empty_like -------------------------------------------------------------------------------------


@pytest.mark.parametrize("like", [n for n in LIKES if n not in ("torch, conjugate", "torch, meta")])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (), (0, 2)], ids=str)
def test_empty_like(like, shape):
    """Of the library's own type, and what C++ writes into it is there."""
    model = model_of(like)
    if LIKES[like][1] == "pa.Array" and len(shape) != 1:
        shape = (5,)
    if like == "tensorflow, variable":
        with pytest.raises(TypeError):  # no tensor: it does not say on which device it is
            tenon_exports.empty_like(model, shape, "float32")
        return
    x = tenon_exports.empty_like(model, shape, "float32")
    _, column, _, kind = LIKES[like]
    look = CONSUMERS[column].look(x)
    size = int(np.prod(shape))
    assert type(x) is kind() if kind else isinstance(x, need("pyarrow").Array)
    assert (look.dtype, look.shape, look.data) == ("float32", shape, b"\x07" * 4 * size)
    if size:
        assert look.writable in (True, None)
        if column in ("jax", "tensorflow"):
            assert look.address % 64 == 0  # or they would have copied it


@pytest.mark.parametrize("name", OF_NO_LIBRARY)
def test_empty_like_what_belongs_to_no_library(name):
    x = tenon_exports.empty_like(OF_NO_LIBRARY[name], (2, 3), "bfloat16")
    assert type(x) in (OWN, tenon.Tensor)
    assert (x.shape, x.dtype, x.readonly, x.data_ptr % 64, raw(x)) == ((2, 3), "bfloat16", False, 0, b"\x07" * 12)


@pytest.mark.parametrize("name", MEMORY_ALONE)
def test_empty_like_memory_alone(name):
    x = tenon_exports.empty_like(MEMORY_ALONE[name](), (2, 3), "float32")
    assert (type(x), x.dtype, x.shape, x.flags.writeable, x.tobytes()) == (np.ndarray, "float32", (2, 3), True, b"\x07" * 24)


def test_empty_like_torch_is_memory_of_torch():
    """It grows, which memory of others does not."""
    x = tenon_exports.empty_like(torch().ones(1), (3,), "int16")
    assert type(x) is torch().Tensor
    assert x.untyped_storage().nbytes() >= 6
    y = tenon.asdlpack(x)
    assert (y.data_ptr, raw(y)) == (x.data_ptr(), b"\x07" * 6)
    x += 1
    assert x.tolist() == [0x0708] * 3


def test_empty_like_numpy_is_memory_of_numpy():
    a = tenon_exports.empty_like(np.ones(1), (2, 3), "int16")
    assert (a.flags.owndata, a.flags.writeable, a.base) == (True, True, None)
    alone = np.ones((2, 3))  # how many references one local name counts for, Python 3.14 changed
    assert sys.getrefcount(a) == sys.getrefcount(alone)
    a.resize((4, 3), refcheck=False)
    assert a.tolist()[:2] == [[0x0707] * 3] * 2


@pytest.mark.parametrize("like", ["torch", "numpy", "tvm_ffi", "pyarrow, tensor"])
def test_empty_like_as_a_tensor(like):
    t = tenon_exports.empty_like(model_of(like), (2, 3), "float64", False)
    assert (type(t), t.shape, t.dtype, t.readonly, raw(t)) == (OWN, (2, 3), "float64", False, b"\x07" * 48)


@pytest.mark.parametrize("like", PLAIN)
@pytest.mark.parametrize("row", [r for r in DTYPES if "+" not in r])
def test_empty_like_dtype(row, like):
    """Every type a library has, and an exception for every other."""
    model = model_of(like)
    column = LIKES[like][1]
    letter = DTYPES[row][column]
    if column == "np.asarray" and DTYPES.get(f"{row}+pad"):
        letter = "m"  # NumPy's own have a byte for each
    with settings_of(like):
        x, refusal = attempt(lambda _: tenon_exports.empty_like(model, (4,), row), None)
    if refusal is not None:
        assert letter not in "=", refusal
        assert not set(refusal) & {"SystemError", "AssertionError"}
        return
    assert letter in "=m~", x
    look = CONSUMERS[column].look(x)
    assert (look.dtype, look.shape) == (row, (4,))
    assert set(look.data or b"\x07") == {7}


BAD = {
    "negative": ((-1,), "float32", (ValueError, BufferError)),
    "negative, empty": ((0, -2), "float32", (ValueError, BufferError)),
    "overflow": ((2**62, 4), "float32", (ValueError, BufferError, MemoryError)),
    "overflow in bytes": ((2**61,), "float64", (ValueError, BufferError, MemoryError)),
    "more than there is": ((2**46,), "float32", (MemoryError, RuntimeError)),
    "too many axes": ((1,) * 65, "float32", (ValueError, BufferError)),
    "no such type": ((2,), "float33", (ValueError, BufferError, TypeError)),
    "no name": ((2,), "", (ValueError, BufferError, TypeError)),
    "not a type": ((2,), "float32 ", (ValueError, BufferError, TypeError)),
}


@pytest.mark.parametrize("like", [*PLAIN, None])
@pytest.mark.parametrize("name", BAD)
def test_empty_like_what_cannot_be(name, like):
    shape, dtype, exceptions = BAD[name]
    model = model_of(like) if like else None
    with nothing_kept(model) if like else contextlib.nullcontext():
        for _ in range(3):
            with pytest.raises(exceptions):
                tenon_exports.empty_like(model, shape, dtype)
        gc.collect()
    fits = (2,) if like != "pyarrow" else (3,)
    assert tenon_exports.empty_like(model, fits, "float32") is not None


@pytest.mark.parametrize("like", ["torch, meta", "torch, conjugate"])
def test_empty_like_what_is_nowhere(like):
    with pytest.raises((BufferError, RuntimeError)):
        tenon_exports.empty_like(model_of(like), (2,), "float32")


FLOAT32 = types.SimpleNamespace(name="float32")  # a library's own word


def test_empty_like_by_the_library():
    """`empty(shape, dtype=)` of the package: by its own object of the type's name, or else by the name."""
    with Library("from_dlpack", "empty", float32=FLOAT32) as library:
        x = tenon_exports.empty_like(library.Array(), (2, 3), "float32")
        assert (type(x), x.inside.tobytes()) == (library.Array, b"\x07" * 24)
        tenon_exports.empty_like(library.Array(), (2,), "int16")
        assert [m[1:] for m in library.made if m[0] == "empty"] == [((2, 3), FLOAT32), ((2,), "int16")]
        assert library.looked.count("empty") == 1


def test_empty_like_a_subclass_made_elsewhere():
    """A subclass is defined in the user's module, its element types are still the library's."""
    with Library("from_dlpack", "empty", float32=FLOAT32) as library:
        model = subclass_of(library.Array, __array_namespace__=lambda self: library)()
        tenon_exports.empty_like(model, (2,), "float32")
        assert library.made[0] == ("empty", (2,), FLOAT32)


WRONG = {
    "shape": lambda: np.empty((3, 2), "f4"),
    "rank": lambda: np.empty(6, "f4"),
    "type": lambda: np.empty((2, 3), "i4"),
    "read-only": lambda: np.broadcast_to(np.float32(0), (2, 3)),
    "no array": lambda: None,
}


@pytest.mark.parametrize("name", WRONG)
def test_empty_like_by_a_library_that_gives_something_else(name):
    with Library("from_dlpack", empty=lambda shape, dtype: WRONG[name]()) as library:
        with pytest.raises((BufferError, TypeError)):
            tenon_exports.empty_like(library.Array(), (2, 3), "float32")


def allocate_by(**fields):
    """An allocator that hands out the struct of a fake whatever it is asked for."""
    source = exchange_class()(**fields)
    own = ExchangeTable.from_address(fakes.Table().address).own
    kept.append(own)

    def allocate(prototype, out, context, set_error):
        return own(source, out)

    return allocate, source.struct


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": (3, 2)}, {"shape": (6,)}, {"shape": (2, 3), "dtype": (0, 32, 1)}, {"shape": (2, 3), "flags": 1},
        {"shape": (-2, 3)}, {"shape": (2, 3), "version": (2, 0)}, {"shape": (2, 3), "device": (1, -1)},
    ],
    ids=repr,
)  # fmt: skip
def test_table_that_allocates_something_else(fields):
    allocate, struct = allocate_by(**fields)
    model = scripted_table(allocate=allocate)(shape=(2, 3))
    x, refusal = attempt(lambda _: tenon_exports.empty_like(model, (2, 3), "float32"), None)
    assert x is None
    assert "BufferError" in refusal
    assert (struct.exports, struct.releases) == (1, 1)


def test_table_that_allocates():
    allocate, struct = allocate_by(shape=(2, 3), data=bytes(24))
    model = scripted_table(allocate=allocate, wrap=wrap_kept)(shape=(2, 3))
    t = tenon_exports.empty_like(model, (2, 3), "float32", False)
    assert (type(t), t.data_ptr, raw(t)) == (OWN, struct.address, b"\x07" * 24)
    del t
    gc.collect()
    assert (struct.exports, struct.releases) == (1, 1)
    with pytest.raises(BufferError, match="gave no reason"):  # it cannot be given back as the library's own
        tenon_exports.empty_like(model, (2, 3), "float32")
    gc.collect()
    assert (struct.exports, struct.releases) == (2, 2)


def test_table_whose_allocator_fails():
    with pytest.raises(MemoryError, match="fakes: never"):
        tenon_exports.empty_like(exchange_class()(), (2, 3), "float32")
    for answer in (-1, 0):  # without a word; and nothing given although it says so
        model = scripted_table(allocate=lambda prototype, out, context, set_error, answer=answer: answer)()
        with pytest.raises(BufferError, match="no tensor"):
            tenon_exports.empty_like(model, (2, 3), "float32")


def test_table_is_told_where_the_model_is():
    asked = []

    def allocate(prototype, out, context, set_error):
        p = prototype[0]
        asked.append((p.device.device_type, p.device.device_id, p.shape[: p.ndim], p.dtype.code, p.dtype.bits, p.data))
        return -1

    model = scripted_table(allocate=allocate)(shape=(2, 3), device=(2, 1), data=0x7F00_0000_0000)
    with pytest.raises(BufferError, match="no tensor"):
        tenon_exports.empty_like(model, (4, 5), "int16")
    assert asked == [(2, 1, [4, 5], 0, 16, None)]


def test_namespaces_without_number_are_not_kept():
    """What a library makes arrays by is remembered for good; a namespace made for each array would be so, too."""
    alive = []

    def use(number):
        class Space:
            __name__ = f"space{number}"

            def from_dlpack(self, x):
                return x

            def empty(self, shape, dtype=None):
                return np.empty(shape, dtype)

        space = Space()

        class Array:
            def __array_namespace__(self):
                return space

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **keywords):
                return np.ones(4).__dlpack__(**keywords)

        assert tenon_exports.twin(Array()) is not None
        alive.append(weakref.ref(space))

    for number in range(300):
        use(number)
    gc.collect()
    assert sum(space() is not None for space in alive) <= 128


def test_nothing_is_lost_over_many():
    models = [model_of("torch"), model_of("numpy"), None]
    counter = tenon_exports.Counter()
    with nothing_kept(*models[:2]):
        for model in models * 200:
            tenon_exports.like(counter, model)
            tenon_exports.empty_like(model, (3,), "float32")
    assert counter.exports == counter.releases == 600
