# examples/demo.py: what Tenon does, shown on buffers, NumPy arrays and, where it is installed, PyTorch.
"""Run by `make demo`. Every line printed is the result of the call above it."""

from __future__ import annotations

import array
import tempfile
from pathlib import Path

import numpy as np
import tenon


def show(title: str, obj: object, address: int | None = None) -> None:
    """Takes `obj`, gives it back to NumPy, and says whether any byte moved."""
    tensor = tenon.asdlpack(obj)
    back = np.from_dlpack(tensor)
    where = back.ctypes.data
    same = where == tensor.data_ptr and address in (None, where)
    print(f"{title}\n    {tensor}\n    back in NumPy at {where:#x}: {'the same memory' if same else 'COPIED'}")
    assert same, title


print(f"tenon {tenon.__version__}\n")

print("-- buffers ---------------------------------------------------------------")
show('bytes: b"tenon"', b"tenon")
show("bytearray(8)", bytearray(8))
show("array.array('d', [1, 2, 3])", array.array("d", [1, 2, 3]))

print("\n-- NumPy -----------------------------------------------------------------")
a = np.arange(12, dtype=np.float32).reshape(3, 4)
show("a = numpy.arange(12, dtype=float32).reshape(3, 4)", a, a.ctypes.data)
show("a[::-1, 1::2]", a[::-1, 1::2], a[::-1, 1::2].ctypes.data)
show("a.T", a.T, a.ctypes.data)
frozen = a.copy()
frozen.flags.writeable = False
show("a read-only copy", frozen, frozen.ctypes.data)

tensor = tenon.asdlpack(a)
np.from_dlpack(tensor)[0, 0] = 42
print(f"written through the tensor, read in the array: a[0, 0] = {a[0, 0]}")

print("\n-- refused, and why ------------------------------------------------------")
for title, obj, options in [
    ("asdlpack(frozen, readonly=False)", frozen, {"readonly": False}),
    ("asdlpack({'not': 'an array'})", {"not": "an array"}, {}),
]:
    try:
        tenon.asdlpack(obj, **options)
    except (BufferError, TypeError) as error:
        print(f"{title}\n    {type(error).__name__}: {error}")

print("\n-- will it be shared, and if not, why? ------------------------------------")
for title, obj, target in [
    ('explain(a, "torch")', a, "torch"),
    ('explain(a[::-1], "torch")', a[::-1], "torch"),
    ('explain(b"tenon", "torch")', b"tenon", "torch"),
    ('explain(a.astype(">f4"), "numpy")', a.astype(">f4"), "numpy"),
]:
    print(title + "".join(f"\n    {line}" for line in str(tenon.explain(obj, target)).splitlines()))

print("\n-- a file is a producer, too ----------------------------------------------")
with tempfile.TemporaryDirectory() as folder:
    np.save(Path(folder) / "weights.npy", a)
    weights = tenon.open(Path(folder) / "weights.npy")
    show('open("weights.npy")', weights)

print("\n-- PyTorch ---------------------------------------------------------------")
try:
    import torch
except ImportError:
    print("not installed here; `make test` installs it, and then this part shows it too")
else:
    t = torch.arange(6.0).reshape(2, 3)
    show("t = torch.arange(6.).reshape(2, 3)", t, t.data_ptr())
    show("t[:, 1:]", t[:, 1:], t[:, 1:].data_ptr())
    again = tenon.asdlpack(a).torch()
    print(f"NumPy's array as torch's tensor: the same memory: {again.data_ptr() == a.ctypes.data}")
    try:
        tenon.asdlpack(torch.ones(2, dtype=torch.complex64).conj())
    except BufferError as error:
        print(f"asdlpack(torch.ones(2, dtype=complex64).conj())\n    BufferError: {error}")
