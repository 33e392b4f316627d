# tests/python/test_pickle_ray.py: Ray moves a Tensor through shared memory: read in place, and read-only.
from __future__ import annotations

import subprocess

import pytest
from real_support import has, run_child

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has("ray"), reason="ray is not installed"),
]

PROGRAM = """
import os, sys
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ctypes, ray, tenon

try:
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False,
             configure_logging=False)
except Exception as e:
    print("cannot start:", type(e).__name__, str(e).replace(chr(10), " ")[:300])
    sys.exit(0)
print("started", flush=True)

@ray.remote
def describe(t):
    return t.shape, t.strides, str(t.dtype), t.readonly, t.tolist()

@ray.remote
def make(n):
    return tenon.asdlpack(memoryview(bytearray(range(n))).cast("B", (2, n // 2)))

def mapped(address):
    "What the system says of the memory there."
    for line in open("/proc/self/maps"):
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if first <= address < last:
            return line

bits = (ctypes.c_uint16 * 6)(*(0x3F80 + 16 * i for i in range(6)))
t = tenon.from_pointer(ctypes.addressof(bits), (2, 3), "bfloat16", strides=(1, 2), owner=bits)
got = ray.get(describe.remote(t))
assert got[:3] == (t.shape, t.strides, "bfloat16") and got[4] == t.tolist(), got
assert ray.get(make.remote(10)).tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]

memory = (ctypes.c_float * (1 << 18))(*range(1000))
large = tenon.from_pointer(ctypes.addressof(memory), (512, 512), "float32", owner=memory)
reference = ray.put(large)
first, second = ray.get(reference), ray.get(reference)
assert first.data_ptr == second.data_ptr, "two views of one shared memory"
assert first.data_ptr != large.data_ptr
assert first.readonly and first.tolist() == large.tolist()
if sys.platform == "linux":
    assert "plasma" in mapped(first.data_ptr), mapped(first.data_ptr)
del first
assert second.tolist()[1][:2] == [512.0, 513.0]
ray.shutdown()
print("moved")
"""


def test_through_shared_memory():
    try:
        done = run_child(PROGRAM)
    except subprocess.TimeoutExpired as e:
        assert b"started" not in (e.stdout or b""), "it hangs"
        pytest.skip("ray does not start here: nothing has happened")
    if done.stdout.startswith("cannot start:"):
        pytest.skip(f"ray {done.stdout.strip()}")
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.split()[-1] == "moved"
