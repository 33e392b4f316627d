# python/tenon/tests/test_bad_input.py: what is no array, or none that a tensor can express, is refused with the reason; and nothing is half consumed.
"""Bad input."""

from __future__ import annotations

import array
import importlib
import unittest
from typing import Any

import tenon
from tenon.tests.need import need

PROTOCOLS = (
    "__dlpack_c_exchange_api__", "__dlpack__", "__cuda_array_interface__", "buffer protocol", "__array_interface__",
    "Arrow",
)  # fmt: skip


class NoArray(unittest.TestCase):
    """TypeError, which names every protocol that was looked for."""

    def test_objects_without_any_protocol(self) -> None:
        for obj in (object(), None, 3, 2.5, "text", [1, 2], (1, 2), {}, range(3), lambda: None):
            with self.subTest(type(obj).__name__), self.assertRaises(TypeError) as caught:
                tenon.asdlpack(obj)
            said = str(caught.exception)
            self.assertIn(f"'{type(obj).__name__}' object", said)
            self.assertIn("pass an array, a DLPack capsule or a buffer", said)
            for protocol in PROTOCOLS:
                self.assertIn(protocol, said)

    def test_a_class_instead_of_an_instance(self) -> None:
        with self.assertRaisesRegex(TypeError, "pass an instance of it"):
            tenon.asdlpack(bytearray)


class NotExpressible(unittest.TestCase):
    """BufferError, with the reason and a way out."""

    def is_refused(self, obj: Any, *words: str) -> None:
        for _ in range(2):  # what is remembered of the type changes nothing
            with self.assertRaises(BufferError) as caught:
                tenon.asdlpack(obj)
            for word in words:
                self.assertIn(word, str(caught.exception))

    def test_masked_array(self) -> None:
        np = need("numpy")
        self.is_refused(np.ma.array([1, 2, 3], mask=[0, 1, 0]), "masked elements", ".filled()")
        self.assertEqual(tenon.asdlpack(np.ma.array([1, 2, 3], mask=[0, 1, 0]).filled(9)).shape, (3,))

    def test_structured_dtype(self) -> None:
        np = need("numpy")
        both = np.zeros(3, [("a", "i4"), ("b", "f4")])
        self.is_refused(both, "dtype: the elements are structures", "hand over one field (a['name'])")
        self.assertEqual(tenon.asdlpack(both["b"]).strides, (2,))

    def test_object_array(self) -> None:
        objects = need("numpy").array([2, 1], dtype=object)
        self.is_refused(objects, "dtype: the elements are Python objects", "a.astype('float64')")
        self.assertEqual(tenon.asdlpack(objects.astype("float64")).tolist(), [2.0, 1.0])

    def test_big_endian(self) -> None:
        np = need("numpy")
        swapped = np.arange(3, dtype=np.dtype("i4").newbyteorder())
        self.is_refused(swapped, "dtype: ", "not in this machine's byte order", "a.astype(a.dtype.newbyteorder('='))")
        self.assertEqual(tenon.asdlpack(swapped.astype(swapped.dtype.newbyteorder("="))).tolist(), [0, 1, 2])

    def test_big_endian_buffer(self) -> None:
        np = need("numpy")
        swapped = memoryview(np.arange(3, dtype=np.dtype("i4").newbyteorder()))
        self.is_refused(swapped, "byte order", "a.astype(a.dtype.newbyteorder('='))")

    def test_characters(self) -> None:
        letters = array.array("u" if "w" not in array.typecodes else "w", "abc")
        self.is_refused(letters, "format", "strings", "convert to numbers first")

    def test_pointers(self) -> None:
        self.is_refused(memoryview(bytearray(16)).cast("P"), "format", "pointers", "convert to numbers first")

    def test_suboffsets(self) -> None:
        try:
            testbuffer = importlib.import_module("_testbuffer")
        except ImportError:
            self.skipTest("this Python was built without _testbuffer, the only exporter of suboffsets")
        indirect = testbuffer.ndarray(list(range(6)), shape=[2, 3], format="i", flags=testbuffer.ND_PIL)
        self.is_refused(indirect, "suboffsets", "behind pointers", "memoryview(obj).tobytes()")
        self.assertEqual(tenon.asdlpack(memoryview(indirect).tobytes()).nbytes, 6 * memoryview(indirect).itemsize)


class NothingIsHalfConsumed(unittest.TestCase):
    """A capsule that was refused is as good as before."""

    def test_a_refused_capsule_can_be_taken_by_another(self) -> None:
        memory = bytearray(b"abcdef")
        capsule = tenon.asdlpack(memory).__dlpack__()
        with self.assertRaises(BufferError):
            tenon.asdlpack(capsule, readonly=False)  # a legacy capsule cannot say that it is writable
        self.assertIn('"dltensor"', repr(capsule))
        taken = tenon.asdlpack(capsule)
        self.assertEqual(bytes(memoryview(taken)), b"abcdef")
        self.assertIn('"used_dltensor"', repr(capsule))
        with self.assertRaises(BufferError):
            tenon.asdlpack(capsule)

    def test_a_refused_versioned_capsule_can_be_taken_by_another(self) -> None:
        capsule = tenon.asdlpack(b"abcdef").__dlpack__(max_version=(1, 0))
        with self.assertRaises(BufferError):
            tenon.asdlpack(capsule, readonly=False)
        self.assertEqual(need("numpy").asarray(tenon.asdlpack(capsule)).tolist(), list(b"abcdef"))

    def test_a_refused_array_is_let_go_of(self) -> None:
        memory = bytearray(8)
        view = memoryview(memory).cast("P")
        with self.assertRaises(BufferError):
            tenon.asdlpack(view)
        view.release()
        memory.append(0)  # nobody holds it


if __name__ == "__main__":
    unittest.main()
