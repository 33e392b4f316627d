# python/tenon/tests/test_pydlpack.py: everything pydlpack promises, by name: its providers, its consumers and its protocols.
"""What pydlpack promises. What only legacy consumers could write to by mistake is copied for them, and nothing else."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import tempfile
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import tenon
from tenon.tests.cells import Memory
from tenon.tests.expectations import HERE
from tenon.tests.need import need

NUMBERS = [1, 2, 3, 4, 5, 6]


def _file_with(data: bytes) -> Any:
    file = tempfile.TemporaryFile()
    file.write(data)
    file.flush()
    return file


def _mmap() -> Any:
    with _file_with(bytes(NUMBERS)) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _memmap() -> Any:
    np = need("numpy")
    with _file_with(np.array(NUMBERS, "int32").tobytes()) as file:
        return np.memmap(file, "int32", "r+")


def _jax_array() -> Any:
    jax = need("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.numpy.array(NUMBERS, "int32")


#: Each makes an array of NUMBERS.
PROVIDERS: dict[str, Callable[[], Any]] = {
    "numpy_ndarray": lambda: need("numpy").array(NUMBERS, "int32"),
    "numpy_memmap": _memmap,
    "torch_tensor": lambda: need("torch").tensor(NUMBERS, dtype=need("torch").int32),
    "jax_array": _jax_array,
    "tensorflow_tensor": lambda: need("tensorflow").constant(NUMBERS, need("tensorflow").int32),
    "bytes": lambda: bytes(NUMBERS),
    "bytearray": lambda: bytearray(NUMBERS),
    "array_array": lambda: array.array("i", NUMBERS),
    "mmap": _mmap,
}

#: Each takes a Tensor the way its users do.
TAKERS: dict[str, Callable[[tenon.Tensor], Any]] = {
    "numpy": lambda t: need("numpy").from_dlpack(t),
    "torch": lambda t: need("torch").from_dlpack(t),
    "jax": lambda t: need("jax").numpy.from_dlpack(t),
    "tensorflow": lambda t: need("tensorflow").experimental.dlpack.from_dlpack(t.__dlpack__()),
}


def _numbers(view: Any) -> Any:
    return (view.numpy() if hasattr(view, "numpy") else view).tolist()


def _knows_no_readonly(consumer: str) -> bool:
    """It asks for legacy capsules, which cannot say that memory must not be written to."""
    return consumer == "tensorflow" or (consumer == "jax" and HERE.is_before("jax", ("0", "12")))


def _is_handed_out_so(x: Any) -> bool:
    """Its own library gives its memory to everybody in legacy capsules: it leaves by a Tensor as it does from there."""
    return type(x).__module__.partition(".")[0] in {"jax", "jaxlib", "tensorflow", "pyarrow"}


class PyDLPack(unittest.TestCase):
    """Providers into consumers."""

    def hand_over(self, x: Any, consumer: str) -> tenon.Tensor:
        """What the consumer can be given: the memory itself wherever that is safe."""
        t = tenon.asdlpack(x)
        if t.readonly and _knows_no_readonly(consumer) and not _is_handed_out_so(x):
            with self.assertRaisesRegex(BufferError, "read-only"):
                TAKERS[consumer](t)
            return tenon.asdlpack(x, copy=True)
        if consumer == "tensorflow" and t.data_ptr % 64:
            return tenon.asdlpack(x, copy=True)  # it ends the process for memory that is not aligned to its liking
        return t

    def check(self, make: Callable[[], Any], consumer: str) -> None:
        """All ways to let go of an array, a Tensor and a view, in every order."""
        take = TAKERS[consumer]
        need(consumer)
        x = make()
        t = self.hand_over(x, consumer)
        view = take(t)
        self.assertEqual(_numbers(view), NUMBERS)
        self.assertEqual(_numbers(take(t)), NUMBERS, "a Tensor can be taken twice")
        del t
        gc.collect()
        self.assertEqual(_numbers(view), NUMBERS, "the Tensor is gone")
        del x
        gc.collect()
        self.assertEqual(_numbers(view), NUMBERS, "the array is gone, too")
        t = self.hand_over(make(), consumer)
        gc.collect()
        self.assertEqual(_numbers(take(t)), NUMBERS, "the array is gone before it is taken")
        unused = t.__dlpack__(max_version=(1, 0)), t.__dlpack__(max_version=(1, 0))
        del t, unused
        gc.collect()


def _test_of(provider: str, consumer: str) -> Callable[[PyDLPack], None]:
    def test(self: PyDLPack) -> None:
        self.check(PROVIDERS[provider], consumer)

    test.__name__ = f"test_pydlpack_{provider}_to_{consumer}"
    test.__qualname__ = f"PyDLPack.{test.__name__}"
    return test


for _provider in PROVIDERS:
    for _consumer in TAKERS:
        _test = _test_of(_provider, _consumer)
        setattr(PyDLPack, _test.__name__, _test)


class _Interface:
    """An object with one attribute."""

    def __init__(self, name: str, fields: dict[str, Any], keep: Any = None) -> None:
        setattr(self, name, fields)
        self.keep = keep


class Protocols(unittest.TestCase):
    """Each protocol alone is enough."""

    def is_taken(self, obj: Any, memory: Memory) -> None:
        t = tenon.asdlpack(obj)
        self.assertEqual((t.data_ptr, t.shape, str(t.dtype)), (memory.address, (24,), "int32"))
        self.assertEqual((str(t.device), t.readonly), ("cpu", False))

    def test_pydlpack_protocol_dlpack(self) -> None:
        memory = Memory("int32")
        source = tenon.from_pointer(memory.address, (24,), "int32", owner=memory)

        class Old:  # with the keyword every version had, and no other
            def __dlpack__(self, stream: int | None = None) -> Any:
                return source.__dlpack__()

            def __dlpack_device__(self) -> tuple[int, int]:
                return (1, 0)

        t = tenon.asdlpack(Old())
        self.assertEqual((t.data_ptr, t.shape, str(t.dtype)), (memory.address, (24,), "int32"))
        self.assertTrue(t.readonly, "a legacy capsule cannot say")
        self.assertFalse(tenon.asdlpack(Old(), trust_legacy=True).readonly)

    def test_pydlpack_protocol_array_interface_v3(self) -> None:
        memory = Memory("int32")
        fields = {"shape": (24,), "typestr": "<i4", "data": (memory.address, False), "version": 3}
        self.is_taken(_Interface("__array_interface__", fields, memory), memory)

    def test_pydlpack_protocol_array_interface_v2(self) -> None:
        memory = Memory("int32")

        class Old:
            __array_shape__ = (24,)
            __array_typestr__ = "<i4"
            __array_data__ = (memory.address, False)

        self.is_taken(Old(), memory)

    def test_pydlpack_protocol_buffer(self) -> None:
        memory = Memory("int32")
        self.is_taken((ctypes.c_int32 * 24).from_buffer(memory.block, memory.start), memory)

    def is_on_cuda(self, version: int, **more: Any) -> None:
        """An address that no device has: the driver is asked for it, and knows of none or is not there."""
        fields = {"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000001000, True), "version": version, "strides": (4, 8)}
        with self.assertRaisesRegex(BufferError, "no memory at this address|CUDA driver|forked|CUDA_ERROR"):
            tenon.asdlpack(_Interface("__cuda_array_interface__", {**fields, **more}))
        nothing = {**fields, "shape": (0, 3), "data": (0, True), "strides": None}
        t = tenon.asdlpack(_Interface("__cuda_array_interface__", {**nothing, **more}))
        self.assertEqual((t.shape, str(t.dtype), t.device.kind, t.readonly), ((0, 3), "float32", "cuda", True))

    def test_pydlpack_protocol_cuda_array_interface_v2(self) -> None:
        self.is_on_cuda(2)

    def test_pydlpack_protocol_cuda_array_interface_v3(self) -> None:
        self.is_on_cuda(3, stream=None)


class ReadOnly(unittest.TestCase):
    """PyTorch has no read-only tensors: it is told of them, and the user is."""

    def test_pydlpack_hello(self) -> None:
        torch = need("torch")
        self.assertEqual(torch.from_dlpack(tenon.asdlpack(b"Hello!")).tolist(), [72, 101, 108, 108, 111, 33])

    def test_to_warns_once_for_each_place(self) -> None:
        need("torch")
        t: Any = tenon.asdlpack(b"Hello!")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            for _ in range(2):
                t.to("torch")
            self.assertEqual(len(seen), 1)
            t.to("torch")
            t.to("torch")
            self.assertEqual(len(seen), 3)
        for warning in seen:
            self.assertIs(warning.category, tenon.ReadOnlyWarning)
            self.assertEqual(warning.filename, __file__)
            self.assertIn("copy=True", str(warning.message))

    def test_copies_and_writable_memory_do_not_warn(self) -> None:
        torch = need("torch")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            copied: Any = tenon.asdlpack(b"Hello!")
            view = copied.to("torch", copy=True)
            shared: Any = tenon.asdlpack(bytearray(b"Hello!"))
            shared.to("torch")
        self.assertEqual(seen, [])
        self.assertEqual(view.tolist(), list(b"Hello!"))
        self.assertIs(view.dtype, torch.uint8)


if __name__ == "__main__":
    unittest.main()
