# tests/python/test_interfaces_out.py: what `__array_interface__` and `__cuda_array_interface__` of our objects say, and that it is enough to come back by.
from __future__ import annotations

import gc

import pytest
import tenon
import tenon_exports
from fake_cuda import Driver
from isolation import isolated
from producers import CPU, CUDA, CUDA_HOST, NOWHERE, ROCM, exactly_once, refuse
from tenon_exports import Counter, Matrix

np = pytest.importorskip("numpy")

MANAGED, ROCM_HOST, METAL = (13, 0), (11, 0), (8, 0)
HOST, DEVICE = "__array_interface__", "__cuda_array_interface__"


def produced(**fields):
    return tenon_exports.produce(Counter(), **fields)


class Shim:
    """Shows one interface of an object, and keeps the object."""

    def __init__(self, obj, name):
        self.kept = obj
        self.said = getattr(obj, name)

    @classmethod
    def of(cls, obj, name):
        return type("Shim", (cls,), {name: property(lambda self: self.said)})(obj, name)


def test_host_interface_says_everything():
    obj, matrix = produced(), Matrix(2, 3)
    for said, address in ((obj, obj.data_ptr), (matrix, matrix.address)):
        assert said.__array_interface__ == dict(version=3, shape=(2, 3), typestr="<f4", strides=None,
                                                data=(address, False))


def test_cuda_interface_says_everything():
    obj = produced(device=CUDA, address=NOWHERE, byte_offset=64)
    assert obj.__cuda_array_interface__ == dict(version=3, shape=(2, 3), typestr="<f4", strides=None, stream=1,
                                                data=(NOWHERE + 64, False))


@pytest.mark.parametrize(("device", "names"), [
    (CPU, {HOST}), (CUDA_HOST, {HOST}), (ROCM_HOST, {HOST}), (CUDA, {DEVICE}), (MANAGED, {HOST, DEVICE}), (ROCM, set()),
    (METAL, set()), ((99, 0), set()),
], ids=lambda value: str(sorted(value) if isinstance(value, set) else value))
def test_which_memory_has_which_interface(device, names):
    obj = produced(device=device, address=NOWHERE)
    assert {name for name in (HOST, DEVICE) if hasattr(obj, name)} == names
    for name in {HOST, DEVICE} - names:
        assert getattr(obj, name, "absent") == "absent"
        refuse(obj, AttributeError, name, lambda o: getattr(o, name))


@pytest.mark.parametrize(("name", "device"), [(HOST, CPU), (DEVICE, CUDA)])
def test_fields_of_either_interface(name, device):
    def said(**fields):
        return getattr(produced(device=device, address=NOWHERE, **fields), name)

    assert said(readonly=True)["data"] == (NOWHERE, True)
    assert said(shape=())["shape"] == () and said(shape=())["strides"] is None
    assert said(strides=(1, 2))["strides"] == (4, 8)
    assert said(strides=(-3, 1), byte_offset=1024)["strides"] == (-12, 4)
    assert said(strides=(0, 0))["strides"] == (0, 0)
    empty = said(shape=(3, 0))
    assert empty["shape"] == (3, 0) and (empty["data"][0] == 0) == (name == DEVICE)
    for dtype, typestr in (("bool", "|b1"), ("int8", "|i1"), ("uint8", "|u1"), ("int64", "<i8"), ("uint16", "<u2"),
                           ("float16", "<f2"), ("float64", "<f8"), ("complex64", "<c8"), ("complex128", "<c16")):
        assert said(dtype=dtype)["typestr"] == typestr
    for dtype in ("bfloat16", "float8_e5m2", "float4_e2m1fn", "complex32", (2, 32, 4), (200, 8, 1)):
        refuse(dtype, AttributeError, "typestr", lambda d: said(dtype=d))


FIELDS = [
    dict(), dict(readonly=True), dict(shape=(3,), strides=(2,), dtype="int16"), dict(shape=()), dict(shape=(2, 0)),
    dict(shape=(2, 3), strides=(-3, 1), byte_offset=12), dict(dtype="complex128"), dict(dtype="bool"),
]


@isolated
def test_there_and_back_by_the_cuda_interface_alone():
    driver = Driver()
    for device in (CUDA, MANAGED):
        driver.place(managed=device == MANAGED)
        for fields in FIELDS:
            there_and_back(DEVICE, device, fields)
    assert driver.all_closed()


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("device", [CPU, CUDA_HOST], ids=str)
def test_there_and_back_by_the_interface_alone(device, fields):
    there_and_back(HOST, device, fields)


def there_and_back(name, device, fields):
    counter = Counter()
    with exactly_once(counter):
        obj = tenon_exports.produce(counter, device=device, **fields)
        back = tenon.asdlpack(Shim.of(obj, name))
        for field in ("shape", "dtype", "readonly", "size", "nbytes"):
            assert getattr(back, field) == getattr(obj, field), field
        if obj.size:
            assert (back.data_ptr, back.strides) == (obj.data_ptr, obj.strides)
        known = obj.size or name == HOST
        assert back.device == ("cpu" if name == HOST else tenon.device(device if known else CUDA))
        del obj
        gc.collect()
        assert counter.releases == 0, "the shim keeps it"
        del back


@pytest.mark.parametrize("fields", [dict(), dict(readonly=True), dict(shape=(2, 3), strides=(1, 2)), dict(shape=()),
                                    dict(shape=(0, 4)), dict(dtype="complex64")], ids=str)
def test_numpy_reads_the_interface_alone(fields):
    obj = produced(**fields)
    array = np.asarray(Shim.of(obj, HOST))
    assert array.tobytes() == bytes(obj) and array.flags.writeable != obj.readonly
    assert not obj.size or array.__array_interface__["data"][0] == obj.data_ptr


def test_interfaces_cannot_be_set():
    for obj in (produced(), Matrix(2, 3)):
        for name in (HOST, DEVICE):
            refuse(obj, AttributeError, None, lambda o: setattr(o, name, {}))


def test_every_reading_is_a_dictionary_of_its_own():
    obj = produced()
    obj.__array_interface__.clear()
    assert obj.__array_interface__["shape"] == (2, 3)
