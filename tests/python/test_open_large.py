# tests/python/test_open_large.py: a file of ten gigabytes is opened at once, and reaches every library unread.
from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
import tenon
from file_support import map_of, resident
from real_support import need

np = need("numpy")

GB = 1 << 30
# Each begins at a multiple of 64 bytes, as JAX wants it; together they are ten gigabytes.
SHAPES = {"embed": ("F32", (3 * GB // 4096, 1024)), "head": ("BF16", (2 * GB // 2048, 1024)), "rest": ("U8", (5 * GB,))}
FEW = 8 << 20  # bytes: what may become resident by looking at both ends, and by the libraries themselves


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Without data, but for the first and the last bytes of each tensor."""
    path = tmp_path_factory.mktemp("large") / "model.safetensors"
    header, end = {}, 0
    for name, (dtype, shape) in SHAPES.items():
        begin, end = end, end + int(np.prod(shape)) * {"F32": 4, "BF16": 2, "U8": 1}[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    try:
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
            for entry in header.values():
                first, last = entry["data_offsets"]
                os.pwrite(file.fileno(), b"\x01\x02\x03\x04", 8 + len(text) + first)
                os.pwrite(file.fileno(), b"\x05\x06\x07\x08", 8 + len(text) + last - 4)
    except OSError as error:
        path.unlink(missing_ok=True)
        pytest.skip(f"no file of ten gigabytes here: {error}")
    status = path.stat()
    assert status.st_size > 10 * GB
    if status.st_blocks * 512 > 64 << 20:
        path.unlink()
        pytest.skip("this file system has no sparse files")
    yield path
    path.unlink()


def ends(array) -> tuple[bytes, bytes]:
    """The first and the last four bytes of a NumPy array."""
    flat = array.reshape(-1)
    per = 4 // flat.itemsize
    return flat[:per].tobytes(), flat[-per:].tobytes()


WRITTEN = (b"\x01\x02\x03\x04", b"\x05\x06\x07\x08")


def test_opens_without_reading_it(model):
    tenon.open(model)  # the modules are there
    before = resident()
    opened = tenon.open(model)
    tensors = dict(opened)
    grown = resident() - before
    assert map_of(model).end - map_of(model).begin > 10 * GB
    assert sum(t.nbytes for t in tensors.values()) == 10 * GB
    assert grown < FEW


def test_numpy(model):
    for t in tenon.open(model).values():
        if t.dtype == "bfloat16":
            need("ml_dtypes")
        before = resident()
        array = np.asarray(t)
        assert array.ctypes.data == t.data_ptr and array.nbytes == t.nbytes and not array.flags.writeable
        assert ends(array) == WRITTEN
        assert resident() - before < FEW


def test_torch(model):
    torch = need("torch")
    torch.from_dlpack(tenon.asdlpack(bytearray(8)))  # what it loads on first use is not counted
    for t in tenon.open(model).values():
        before = resident()
        tensor = torch.from_dlpack(t)
        assert tensor.data_ptr() == t.data_ptr and tensor.shape == t.shape
        flat = tensor.reshape(-1).view(torch.uint8)
        assert (bytes(flat[:4].tolist()), bytes(flat[-4:].tolist())) == WRITTEN
        assert resident() - before < FEW


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_jax(model, mode):
    """Read-only memory reaches JAX by way of NumPy: it asks for a DLPack struct that cannot say read-only."""
    jax = need("jax")
    need("ml_dtypes")
    cpu = jax.devices("cpu")[0]

    def take(t):
        return jax.device_put(np.asarray(t), cpu) if mode == "r" else jax.dlpack.from_dlpack(t)

    small = np.zeros(256, "float32")
    take(tenon.asdlpack(small)).block_until_ready()  # what it loads on first use is not counted
    for t in tenon.open(model, mode).values():
        assert t.data_ptr % 64 == 0
        before = resident()
        array = take(t).block_until_ready()
        assert array.unsafe_buffer_pointer() == t.data_ptr and array.shape == t.shape
        assert ends(np.asarray(array)) == WRITTEN
        assert resident() - before < FEW


def test_nothing_else_is_made_resident_by_looking(model):
    """The figure above means something: looking at a hundred megabytes makes them resident."""
    t = tenon.open(model)["rest"]
    before = resident()
    assert np.asarray(t)[1 << 20 : 101 << 20].sum() == 0
    assert resident() - before > 90 << 20
