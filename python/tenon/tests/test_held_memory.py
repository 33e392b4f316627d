# python/tenon/tests/test_held_memory.py: memory that is held stays where it is, and memory that must not be written to is not.
"""What holding memory means for its owner, and what read-only means for everybody."""

from __future__ import annotations

import gc
import mmap
import unittest

import tenon
from tenon.tests.cells import flags_of
from tenon.tests.expectations import HERE
from tenon.tests.need import need


class Held(unittest.TestCase):
    """The owner cannot take the memory away while anybody looks at it, and can afterwards."""

    def test_bytearray_cannot_be_resized(self) -> None:
        memory = bytearray(b"abcdef")
        t = tenon.asdlpack(memory)
        with self.assertRaises(BufferError):
            memory.append(1)
        with self.assertRaises(BufferError):
            memory.clear()
        with self.assertRaises(BufferError):
            memory.extend(b"x" * 100)
        memory[0] = ord("z")
        self.assertEqual(bytes(memoryview(t)), b"zbcdef")
        del t
        gc.collect()
        memory.append(1)
        self.assertEqual(len(memory), 7)

    def test_bytearray_is_held_by_the_view_alone(self) -> None:
        np = need("numpy")
        memory = bytearray(b"abcdef")
        view = np.from_dlpack(tenon.asdlpack(memory))
        gc.collect()
        with self.assertRaises(BufferError):
            memory.append(1)
        self.assertEqual(view.tolist(), list(b"abcdef"))
        del view
        gc.collect()
        memory.append(1)

    def test_mmap_cannot_be_closed(self) -> None:
        memory = mmap.mmap(-1, 4096)
        t = tenon.asdlpack(memory)
        with self.assertRaises(BufferError):
            memory.close()
        memory[:3] = b"abc"
        self.assertEqual(bytes(memoryview(t))[:3], b"abc")
        del t
        gc.collect()
        memory.close()
        self.assertTrue(memory.closed)

    def test_memoryview_cannot_be_released(self) -> None:
        view = memoryview(bytearray(4))
        t = tenon.asdlpack(view)
        with self.assertRaises(BufferError):
            view.release()
        del t
        gc.collect()
        view.release()


class ReadOnly(unittest.TestCase):
    """Bytes are never written to."""

    def setUp(self) -> None:
        self.data = b"immutable"
        self.tensor = tenon.asdlpack(self.data)

    def tearDown(self) -> None:
        self.assertEqual(self.data, b"immutable")

    def test_every_protocol_says_so(self) -> None:
        self.assertTrue(self.tensor.readonly)
        self.assertEqual(flags_of(self.tensor.__dlpack__(max_version=(1, 0))) & 1, 1)
        self.assertTrue(self.tensor.__array_interface__["data"][1])
        with self.assertRaisesRegex(BufferError, "read-only"):
            self.tensor.__dlpack__()

    def test_numpy(self) -> None:
        np = need("numpy")
        for view in (np.from_dlpack(self.tensor), np.asarray(self.tensor)):
            self.assertFalse(view.flags.writeable)
            with self.assertRaisesRegex(ValueError, "read-only"):
                view[0] = 0

    def test_memoryview(self) -> None:
        view = memoryview(self.tensor)
        self.assertTrue(view.readonly)
        with self.assertRaises(TypeError):
            view[0] = 0

    def test_jax(self) -> None:
        jnp = need("jax").numpy
        if HERE.is_before("jax", ("0", "12")):
            with self.assertRaisesRegex(BufferError, "read-only"):
                jnp.from_dlpack(self.tensor)
        else:
            view = jnp.from_dlpack(self.tensor)
            with self.assertRaises(TypeError):
                view[0] = 0
            self.assertEqual(bytes(view.tolist()), self.data)
        copy = jnp.from_dlpack(tenon.asdlpack(self.data, copy=True))
        self.assertEqual(bytes(copy.at[0].set(0).tolist()), b"\0mmutable")

    def test_writable_is_refused(self) -> None:
        with self.assertRaises(BufferError):
            tenon.asdlpack(self.data, readonly=False)
        self.assertFalse(tenon.asdlpack(self.data, readonly=False, copy=True).readonly)


if __name__ == "__main__":
    unittest.main()
