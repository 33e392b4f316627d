# tests/python/test_to.py: Tensor.to and its methods: the right library over the right memory, or a reason.
from __future__ import annotations

import ctypes
import sys
import types
import warnings

import pytest
from awkward import address_of, memory
from isolation import SANITIZED, run_isolated
from real_support import has, need, script

import tenon
from tenon._libraries import LIBRARIES, Library

# What can share a process with TensorFlow, and the type of array each makes of a vector.
ARRAYS = {
    "numpy": "numpy.ndarray",
    "torch": "torch.Tensor",
    "jax": "jaxlib._jax.ArrayImpl",
    "pyarrow": "pyarrow.lib.FloatArray",
    "numba": "numpy.ndarray",
    "tvm_ffi": "tvm_ffi.core.Tensor",
}


def kind(made: object) -> str:
    return f"{type(made).__module__}.{type(made).__qualname__}"


@pytest.mark.parametrize("name", ARRAYS)
def test_by_name_by_method_and_by_module(name):
    module = need(name)
    t = memory()
    ways = {"name": t.to(name), "method": getattr(t, name)(), "module": t.to(module)}
    for way, made in ways.items():
        assert type(made).__name__ == ARRAYS[name].rpartition(".")[2], way
        assert address_of(made, name) == t.data_ptr, way


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tensorflow", "paddle"])
def test_the_two_that_need_a_process_of_their_own(name):
    if not has(name):
        pytest.skip(f"{name} is not installed")
    if SANITIZED and name == "paddle":
        pytest.skip("Paddle finds none of its libraries when the sanitizer opens them")
    program = f"""
import ctypes, tenon
room = (ctypes.c_char * 512)()
t = tenon.from_pointer(ctypes.addressof(room) + -ctypes.addressof(room) % 64, (8,), "float32", owner=room)
made, other = t.{name}(copy=False), t.to("{name}", copy=False)
print(type(made).__module__.partition(".")[0])
ctypes.memmove(t.data_ptr, b"\\x00\\x00\\x10A", 4)
print(made.numpy()[0], other.numpy()[0], (made + made).numpy()[0])
"""
    assert script(program).strip().splitlines()[-2:] == [name, "9.0 9.0 18.0"]


@pytest.mark.slow
def test_tensorflow_gets_a_copy_of_what_it_cannot_compute_with():
    if not has("tensorflow"):
        pytest.skip("tensorflow is not installed")
    program = """
import ctypes, tenon
room = (ctypes.c_char * 512)()
t = tenon.from_pointer(ctypes.addressof(room) + -ctypes.addressof(room) % 64 + 4, (8,), "float32", owner=room)
print((t.tensorflow() + 1).numpy().tolist() == [1.0] * 8)
try:
    t.tensorflow(copy=False)
except BufferError as e:
    print("forbids it: its memory is not aligned" in str(e))
"""
    assert script(program).split()[-2:] == ["True", "True"]


def test_every_library_whose_name_can_be_one_has_a_method():
    assert [name for name in LIBRARIES if not name.isidentifier()] == ["cuda.core"]
    for name in filter(str.isidentifier, LIBRARIES):
        method = getattr(tenon.Tensor, name)
        assert method.__doc__ == f'The same as ``to("{name}")``.'


def test_pyarrow_makes_an_array_of_a_vector_and_a_tensor_of_the_rest():
    pyarrow = need("pyarrow")
    assert isinstance(memory().pyarrow(), pyarrow.Array)
    for t in (memory(shape=(2, 3)), memory(shape=()), memory(shape=(3,), strides=(2,))):
        assert isinstance(t.pyarrow(), pyarrow.Tensor)


def test_array_api_modules():
    strict = need("array_api_strict")
    made = memory(dtype="int32").to(strict)
    assert isinstance(made, type(strict.zeros(1)))
    assert need("numpy").from_dlpack(made).ctypes.data == memory().data_ptr


# --- copies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
def test_copy_true_is_memory_of_its_own(name):
    need(name)
    t = memory()
    assert address_of(t.to(name, copy=True), name) != t.data_ptr


@pytest.mark.parametrize("name", ARRAYS)
def test_copy_false_is_the_same_memory(name):
    need(name)
    t = memory()
    assert address_of(t.to(name, copy=False), name) == t.data_ptr


def test_jax_copies_what_is_not_aligned_unless_forbidden():
    need("jax")
    t = memory(offset=4)
    assert tenon.explain(t, "jax").outcome == "copied"
    assert address_of(t.jax(), "jax") != t.data_ptr
    with pytest.raises(BufferError, match=r"jax made a copy, and copy=False forbids it: .*not aligned to 64 bytes"):
        t.jax(copy=False)


def test_copy_false_of_nothing():
    """An empty tensor has no memory to share."""
    t = memory(shape=(0, 3))
    for name in ("numpy", "torch", "jax"):
        if has(name):
            assert tuple(t.to(name, copy=False).shape) == (0, 3)


def test_copy_false_does_not_believe_the_library():
    """It is checked by address, of a library that says nothing about copying."""
    np = need("numpy")
    liar = types.ModuleType("liar")
    liar.from_dlpack = lambda t: np.from_dlpack(t).copy()
    t = memory()
    assert t.to(liar).shape == (6,)
    with pytest.raises(BufferError, match="liar made a copy, and copy=False forbids it"):
        t.to(liar, copy=False)


def test_device():
    need("numpy")
    assert memory().numpy(device="cpu").ctypes.data == memory().data_ptr
    with pytest.raises(BufferError):
        memory().numpy(device="cuda:0")


# --- refusals ---------------------------------------------------------------------------------------


def test_a_refusal_has_the_reason_the_fix_and_the_librarys_own_words():
    need("jax")
    with pytest.raises(BufferError) as caught:
        memory(shape=(3,), strides=(2,)).jax()
    assert str(caught.value) == (
        "tenon: jax does not take this tensor: its strides (2,) leave gaps, go backwards or repeat elements, and jax "
        "takes only compact memory; pass copy=True"
    )
    assert "compact" in str(caught.value.__cause__)
    assert memory(shape=(3,), strides=(2,)).jax(copy=True).shape == (3,)


def test_a_cast_is_written_for_the_tensor():
    need("torch")
    need("ml_dtypes")  # by whose name NumPy makes the cast
    with pytest.raises(BufferError, match=r'torch has no element type float8_e3m4; t\.numpy\(\)\.astype\("float32"\)'):
        memory(dtype="float8_e3m4").torch()


def test_what_would_crash_is_not_handed_over():
    """PyTorch once ended the process for negative strides: it is not even asked."""
    need("torch")
    with pytest.raises(BufferError, match="go backwards") as caught:
        memory(strides=(-1,)).torch()
    assert caught.value.__cause__ is None


def raising(exception: BaseException) -> types.ModuleType:
    module = types.ModuleType("grumpy")

    def from_dlpack(_: object) -> None:
        raise exception

    module.from_dlpack = from_dlpack
    return module


def test_an_error_nobody_foresaw_is_quoted():
    own = RuntimeError("not on Sundays\nat line 3")
    with pytest.raises(BufferError) as caught:
        memory().to(raising(own))
    assert str(caught.value) == "tenon: grumpy does not take this tensor: RuntimeError: not on Sundays"
    assert caught.value.__cause__ is own


@pytest.mark.parametrize("exception", [MemoryError(), KeyboardInterrupt(), ImportError("half installed"), SystemExit()])
def test_what_is_no_refusal_passes(exception):
    with pytest.raises(type(exception)) as caught:
        memory().to(raising(exception))
    assert caught.value is exception


def test_a_missing_library_is_named_with_what_to_install():
    for name, library in LIBRARIES.items():
        if has(library.module):
            continue
        with pytest.raises(ImportError, match=f"tenon: {name} is not installed; pip install ") as caught:
            memory().to(name, device=None)
        assert caught.value.name == library.module


@pytest.mark.parametrize(("name", "install"), [("torch", "torch"), ("tvm_ffi", "apache-tvm-ffi"), ("numpy", "numpy")])
def test_what_to_install(name, install, monkeypatch):
    """As if it were not there."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"pip install {install}$"):
        memory().to(name)


def test_a_library_that_misses_something_says_so_itself(monkeypatch, tmp_path):
    (tmp_path / "half_a_library.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(LIBRARIES, "jax", LIBRARIES["jax"]._replace(module="half_a_library"))
    with pytest.raises(ModuleNotFoundError, match="^No module named 'a_module_that_nobody_has'$"):
        memory().to("jax")


@pytest.mark.parametrize(("target", "exception"), [("nobody", ValueError), (3, TypeError), (sys, ValueError)])
def test_no_such_library(target, exception):
    with pytest.raises(exception, match="tenon: "):
        memory().to(target)


def test_advice_is_whole_where_it_is_more_than_a_keyword():
    need("pyarrow")
    every_other = tenon.from_pointer(4096, (2,), "complex64", strides=(2,), readonly=True)
    with pytest.raises(BufferError, match=r'; tenon\.asdlpack\(t, copy=True\)\.numpy\(\)\.view\("float32"\)$'):
        every_other.to("pyarrow")


# --- read-only memory -------------------------------------------------------------------------------


def lines_warned(do) -> list[tuple[str, int]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        do()
    assert all(w.category is tenon.ReadOnlyWarning and "copy=True" in str(w.message) for w in caught)
    return [(w.filename, w.lineno) for w in caught]


def test_the_warning_names_the_callers_line():
    need("torch")
    t = memory(readonly=True)

    def by_to():
        t.to("torch")

    def by_method():
        t.torch()

    for do in (by_to, by_method):
        assert lines_warned(do) == [(__file__, do.__code__.co_firstlineno + 1)]


def test_no_warning_where_nothing_can_be_written_to():
    need("torch"), need("numpy")
    assert lines_warned(lambda: memory().torch()) == []
    assert lines_warned(lambda: memory(readonly=True).torch(copy=True)) == []
    assert lines_warned(lambda: memory(readonly=True).numpy()) == []
    assert not memory(readonly=True).numpy().flags.writeable


def test_once_for_each_place():
    need("torch")
    t = memory(readonly=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(3):
            t.torch()
        t.to("torch")
    assert len(caught) == 2


def test_as_an_error_it_comes_before_anything_is_handed_over():
    t, asked = memory(readonly=True), []
    watched = Library("watched", "watched", take=asked.append, address=id, forgets_readonly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tenon.ReadOnlyWarning):
            tenon._tensor._hand_over(t, watched, None, None)
    assert asked == []


def test_what_is_handed_over_unseen_has_no_unnoticed_limit():
    """The shortcut of `to`: whatever a library takes without a look at its limits has none of the dangerous ones."""
    from tenon import _core
    from tenon._libraries import LIBRARIES

    block = (ctypes.c_char * 8192)()
    base = ctypes.addressof(block) + -ctypes.addressof(block) % 4096
    unseen: dict[str, int] = {}
    for name, _, *_ in _core.DTYPES:
        for offset in (0, 8, 16, 32, 64):
            for shape, strides in {(): None, (6,): None, (2, 3): None, (3, 2): (1, 3), (0, 2): None, (4,): (-1,), (1,): (-1,)}.items():
                for readonly in (False, True):
                    try:
                        t = tenon.from_pointer(base + 512 + offset, shape, name, strides=strides, readonly=readonly)
                    except (BufferError, ValueError):
                        continue
                    for library in LIBRARIES.values():
                        if library.is_ordinary_for(t):
                            assert library.limit_on(t, unnoticed=True) is None or library.name == "cupy", (library.name, t)
                            unseen[library.name] = unseen.get(library.name, 0) + 1
    assert unseen.keys() == LIBRARIES.keys() and min(unseen.values()) > 50


@pytest.mark.parametrize("junk", [1, 0, "yes", 1.0], ids=repr)
def test_copy_is_a_truth_value_or_none(junk):
    with pytest.raises(TypeError, match="copy must be True, False or None"):
        tenon.asdlpack(bytearray(3)).to("numpy", copy=junk)


def test_a_module_that_returns_no_array():
    """Whether it is a copy cannot be known, and who asks is told what it was."""
    module = types.ModuleType("counting")
    module.from_dlpack = lambda array: 42
    assert memory().to(module) == memory().to(module, copy=True) == 42
    with pytest.raises(BufferError, match="counting returned 'int', which does not say where its memory is"):
        memory().to(module, copy=False)


def test_an_exception_without_words():
    class Wordless(Exception):
        def __str__(self):
            raise KeyError("asked")

    def refuse(array):
        raise Wordless

    module = types.ModuleType("wordless")
    module.from_dlpack = refuse
    with pytest.raises(BufferError, match="wordless does not take this tensor: Wordless: Wordless"):
        memory().to(module)


def test_a_library_that_is_blocked_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm_ffi", None)
    with pytest.raises(ModuleNotFoundError, match="tvm_ffi is not installed; pip install apache-tvm-ffi"):
        memory().to("tvm_ffi")


def test_the_package_may_be_reloaded():
    """As notebooks do it, while Tensors are about."""
    program = """
import importlib, tenon, tenon._limits, tenon._tensor
t = tenon.asdlpack(b"abc")
for _ in range(2):
    importlib.reload(tenon._limits), importlib.reload(tenon._tensor), importlib.reload(tenon)
    assert (t.dtype, t.device, t.tolist()) == ("uint8", "cpu", [97, 98, 99])
print("reloaded")
"""
    assert "reloaded" in script(program)


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_a_mode_of_torch_that_answers_for_it_is_not_asked():
    """Nor remembered: what is in force at the first call is gone at the next."""
    run_isolated("""
import array, tenon, torch
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return 5
t = tenon.asdlpack(array.array("d", [1, 2]))
with Mode():
    assert type(t.to("torch")) is torch.Tensor
assert t.to("torch").tolist() == [1, 2]
""")
