# tests/python/test_one_tensor.py: what C++ code hands out is `tenon.Tensor`, whoever compiled it; and what stands in for
# it where the package cannot be imported.
from __future__ import annotations

import gc
import pickle
import shutil
import subprocess
import sys
import sysconfig
import weakref
from pathlib import Path

import pytest
from isolation import NO_PACKAGE, NOT_FOUND, SANITIZED, run_isolated

import tenon
import tenon_exports

np = pytest.importorskip("numpy")

ROOT = Path(__file__).parents[2]


def made(**fields):
    """A Tensor that a module made of memory of C++'s, and the counter of its releases."""
    counter = tenon_exports.Counter()
    return tenon_exports.produce(counter, **{"shape": (2, 3), "dtype": "float32", **fields}), counter


# --- it is the package's ----------------------------------------------------------------------------------------------


def test_it_is_the_package_s_with_every_method():
    tensor, counter = made()
    assert type(tensor) is tenon.Tensor and repr(tensor).startswith("tenon.Tensor(shape=(2, 3), dtype=float32")
    assert tensor.numpy().shape == (2, 3) and tenon.asdlpack(tensor) is tensor
    copy = pickle.loads(pickle.dumps(tensor))
    assert type(copy) is tenon.Tensor and np.array_equal(copy.numpy(), tensor.numpy())
    assert counter.releases == 0
    del tensor
    assert counter.releases == 1


def test_it_says_whose_the_memory_is():
    """Also by the module's own type of owners, which the package knows nothing of."""
    array = np.arange(6.0)
    tensor = tenon_exports.there_and_back(array, None)
    assert type(tensor) is tenon.Tensor and tensor.owner is array and tensor.data_ptr == array.ctypes.data
    assert tenon.inspect(tensor).owner == "numpy.ndarray" and "owner=numpy.ndarray" in repr(tensor)
    memory = bytearray(8)
    assert tenon_exports.there_and_back(memory, None).owner is memory


def test_what_dlpack_has_no_flag_for_comes_along():
    jax = pytest.importorskip("jax.numpy")
    array = jax.arange(4.0)
    tensor = tenon_exports.there_and_back(array, None)
    assert tensor.readonly and tensor.version == tenon.asdlpack(array).version
    tensor.__dlpack__()  # legacy, as from JAX itself
    torch = pytest.importorskip("torch")
    weights = torch.zeros(3, requires_grad=True)
    tensor = tenon_exports.there_and_back(weights, None)
    assert tensor.readonly
    with pytest.warns(tenon.ReadOnlyWarning, match="requires grad"):
        torch.from_dlpack(tensor)


class Holder:
    """Memory that holds on to whatever looks at it."""

    def __init__(self):
        self.memory = np.zeros(3)
        self.seen = None

    @property
    def __array_interface__(self):
        return self.memory.__array_interface__


def test_the_object_behind_an_array_interface_is_the_owner():
    holder = Holder()
    tensor = tenon.asdlpack(holder)
    assert tensor.owner is holder and tenon_exports.there_and_back(holder, None).owner is holder
    assert tenon.inspect(holder).owner == tenon.inspect(tensor).owner == f"{__name__}.Holder"
    assert f"owner={__name__}.Holder" in repr(tensor)


def test_cycles_through_it_are_collected():
    holder = Holder()
    holder.seen = tenon_exports.there_and_back(holder, None)
    assert type(holder.seen) is tenon.Tensor and holder.seen.owner is holder
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_like_a_tensor_is_a_tensor():
    tensor, _ = made()
    assert type(tenon_exports.like(tenon_exports.Counter(), tensor, shape=(2,), dtype="int32")) is tenon.Tensor


# --- the package is not there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [NOT_FOUND, "ImportError('built for another interpreter')", "RuntimeError('broken')"])
def test_a_type_of_the_module_s_own_stands_in(error):
    run_isolated(NO_PACKAGE.format(error=error) + """
import numpy as np
counter = tenon_exports.Counter()
tensor = tenon_exports.produce(counter, shape=(2, 3), dtype="float32")
assert type(tensor).__module__ == "tenon_stand_in" and type(tensor).__name__ == "Tensor", type(tensor)
assert repr(tensor).startswith("tenon_stand_in.Tensor(shape=(2, 3), dtype=float32, device=cpu"), repr(tensor)
assert np.from_dlpack(tensor).shape == memoryview(tensor).shape == np.asarray(tensor).shape == (2, 3)
assert tensor.__dlpack_device__() == (1, 0)
array = np.arange(3.0)
assert tenon_exports.there_and_back(array, None).owner is array
import copy, pickle
for take_apart in (copy.copy, *(lambda t, n=n: pickle.dumps(t, n) for n in range(pickle.HIGHEST_PROTOCOL + 1))):
    try:
        take_apart(tensor)
    except TypeError as refusal:
        assert "install the package tenon" in str(refusal), refusal
    else:
        raise AssertionError("it was taken apart")
del tensor
assert counter.releases == 1, counter.releases
# It may come later.
sys.meta_path.pop(0)
import tenon
assert type(tenon_exports.produce(counter, shape=(2,), dtype="float32")) is tenon.Tensor
""")


def test_an_interrupt_while_it_is_imported_is_one():
    run_isolated(NO_PACKAGE.format(error="KeyboardInterrupt()") + """
counter = tenon_exports.Counter()
try:
    tenon_exports.produce(counter, shape=(2,), dtype="float32")
except KeyboardInterrupt:
    assert counter.releases == 1, counter.releases
else:
    raise AssertionError("swallowed")
""")


@pytest.mark.parametrize(
    "tensor",
    [
        "type('Tensor', (), {})",
        "type('Tensor', (), {'__dlpack_c_exchange_api__': 3})",
        "None",
        # Somebody else's table is none of the package's.
        "type('Tensor', (), {'__dlpack_c_exchange_api__': fakes.Table().capsule()})",
    ],
)
def test_another_package_of_that_name_is_not_it(tensor):
    run_isolated(f"""
import sys, types, fakes
package, core = types.ModuleType("tenon"), types.ModuleType("tenon._core")
package._core, package.Tensor = core, {tensor}
core.Tensor = package.Tensor
sys.modules.update({{"tenon": package, "tenon._core": core}})
import tenon_exports
tensor = tenon_exports.produce(tenon_exports.Counter(), shape=(2,), dtype="float32")
assert repr(tensor).startswith("tenon_stand_in.Tensor("), repr(tensor)
""")


def test_a_class_that_has_its_table_gets_the_real_ones():
    run_isolated("""
import sys, types
import tenon
real = tenon.Tensor
fake = types.ModuleType("tenon._core")
fake.Tensor = type("Tensor", (), {"__dlpack_c_exchange_api__": real.__dlpack_c_exchange_api__})
sys.modules["tenon._core"] = fake
import tenon_exports
assert type(tenon_exports.produce(tenon_exports.Counter(), shape=(2,), dtype="float32")) is real
""")


# --- any two builds ---------------------------------------------------------------------------------------------------

MODULE = """
#include <tenon/py.hpp>
#include <vector>

namespace {
PyObject* make(PyObject*, PyObject*) {
    return tenon::py::to_python(tenon::tensor::own(std::vector<float>{1, 2, 3}, {3}));
}
PyObject* keep(PyObject*, PyObject* obj) {  // through this module, and out again
    auto t = tenon::py::from_python(obj);
    return t ? tenon::py::to_python(std::move(*t)) : nullptr;
}
PyObject* version(PyObject*, PyObject*) { return PyUnicode_FromString(tenon::version); }
PyMethodDef functions[] = {{"make", make, METH_NOARGS, nullptr},
                           {"keep", keep, METH_O, nullptr},
                           {"version", version, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, NAME, nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
}  // namespace

PyMODINIT_FUNC INIT() { return PyModule_Create(&definition); }
"""


def build(compiler: str, name: str, sources: Path, folder: Path) -> None:
    """A module called ``name``, of the Tenon in ``sources``, its symbols for all to see."""
    (folder / "module.cpp").write_text(MODULE)
    command = [compiler, "-std=c++20", "-O0", "-shared", "-fPIC", f"-DNAME=\"{name}\"", f"-DINIT=PyInit_{name}"]
    command += [f"-I{sources / 'include'}", f"-I{sysconfig.get_paths()['include']}", str(folder / "module.cpp")]
    made_file = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    done = subprocess.run(
        [*command, str(sources / "src" / "tenon.cpp"), "-o", str(made_file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the modules are built without sanitizers")
@pytest.mark.skipif(sys.platform != "linux", reason="builds modules by hand")
def test_modules_of_two_compilers_and_two_versions_share_it(tmp_path):
    compilers = [c for c in ("g++", "clang++") if shutil.which(c)]
    if not compilers:
        pytest.skip("no C++ compiler on PATH")
    other = tmp_path / "other"
    for part in ("include", "src"):
        shutil.copytree(ROOT / part, other / part)
    header = other / "include" / "tenon" / "version.hpp"
    changed = header.read_text().replace("TENON_VERSION_MINOR 1", "TENON_VERSION_MINOR 77")
    assert changed != header.read_text()
    header.write_text(changed)
    names = []
    for i, compiler in enumerate(compilers):
        for version, sources in (("this", ROOT), ("other", other)):
            if (i, version) == (1, "this"):
                continue  # three of the four show it
            names.append(f"built_{version}_{i}")
            build(compiler, names[-1], sources, tmp_path)
    run_isolated(
        f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import importlib, pickle, numpy as np, tenon
modules = [importlib.import_module(name) for name in {names!r}]
assert len({{m.version() for m in modules}}) == 2, "two versions"
array = np.arange(3.0)
for m in modules:
    tensor = m.make()
    assert type(tensor) is tenon.Tensor and tensor.numpy().tolist() == [1, 2, 3]
    assert pickle.loads(pickle.dumps(tensor)).numpy().tolist() == [1, 2, 3]
    for other in modules:
        kept = other.keep(tensor)
        assert type(kept) is tenon.Tensor and kept.data_ptr == tensor.data_ptr
    assert m.keep(array).owner is array
"""
    )
