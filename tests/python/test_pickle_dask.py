# tests/python/test_pickle_dask.py: Dask moves a Tensor between processes, and pickles it without a copy.
from __future__ import annotations

import ctypes

import pytest
from real_support import address_of_buffer, has, script

import tenon

pytestmark = pytest.mark.skipif(not has("distributed"), reason="distributed is not installed")

SHAPE = (64, 1024)


def large(strides=None):
    """More than the 64 KiB that Dask may join or compress: 256 KiB of bytes that repeat."""
    memory = (ctypes.c_uint8 * (4 * SHAPE[0] * SHAPE[1]))(*(i % 251 for i in range(1000)))
    return tenon.from_pointer(ctypes.addressof(memory), SHAPE, "float32", strides=strides, owner=memory)


@pytest.mark.parametrize("strides", [None, (1, SHAPE[0])], ids=["row-major", "column-major"])
def test_the_frame_is_the_memory_itself(strides):
    from distributed.protocol import deserialize, serialize

    t = large(strides)
    header, frames = serialize(t)
    assert header["serializer"] == "pickle"
    assert t.data_ptr in [address_of_buffer(frame) for frame in frames]
    assert sum(memoryview(frame).nbytes for frame in frames) < t.nbytes + 1000  # nowhere a second time
    back = deserialize(header, frames)
    assert back.data_ptr == t.data_ptr
    assert (back.shape, back.strides, back.dtype) == (t.shape, t.strides, t.dtype)


@pytest.mark.slow
def test_two_workers():
    """To a worker, from it to the other, and back."""
    printed = script("""
import ctypes, os, tenon
from distributed import Client, LocalCluster

def describe(t):
    return os.getpid(), t.shape, t.strides, str(t.dtype), t.item() if t.size == 1 else t.tolist()

def make(n):
    return tenon.asdlpack(memoryview(bytearray(range(n))).cast("B", (2, n // 2)))

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster, timeout=900) as client:
            first, second = list(client.scheduler_info()["workers"])
            bits = (ctypes.c_uint16 * 6)(*(0x3F80 + 16 * i for i in range(6)))
            t = tenon.from_pointer(ctypes.addressof(bits), (2, 3), "bfloat16", strides=(1, 2), owner=bits)
            pid, *facts = client.submit(describe, t, workers=[first], pure=False).result()
            assert pid != os.getpid()
            assert facts == [t.shape, t.strides, "bfloat16", t.tolist()], facts
            made = client.submit(make, 10, workers=[first], pure=False)
            other, *facts = client.submit(describe, made, workers=[second], pure=False).result()
            assert other not in (pid, os.getpid())
            assert facts == [(2, 5), (5, 1), "uint8", [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]], facts
            back = made.result()
            assert back.tolist() == facts[-1]
            scattered = client.scatter(t, broadcast=True)
            assert client.submit(lambda x: x.tolist(), scattered, pure=False).result() == t.tolist()
    print("moved")
""")
    assert printed.split() == ["moved"]
