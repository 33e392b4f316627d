# tests/typing/public_api.py: the public API as a typed program uses it; checked, and never run.
from __future__ import annotations

import array
import os
from typing import Any

from typing_extensions import assert_type

import tenon


def takes_anything(x: object) -> tenon.Tensor:
    assert_type(tenon.from_dlpack(x), tenon.Tensor)
    return tenon.asdlpack(x, device="cpu", copy=None, stream=None, readonly=True, trust_legacy=False)


def says_everything(t: tenon.Tensor) -> None:
    assert_type(t.shape, tuple[int, ...])
    assert_type(t.strides, tuple[int, ...])
    assert_type(t.dtype, tenon.dtype)
    assert_type(t.device, tenon.device)
    assert_type(t.readonly, bool)
    assert_type(t.version, "tuple[int, int] | None")
    assert_type(len(t), int)
    assert_type(t.dtype.triple, tuple[int, int, int])
    assert_type(t.device.pair, tuple[int, int])
    names: dict[str, int] = {t.dtype: t.dtype.bits, t.device: t.device.id}
    print(names, t.dtype == "float32", t.device == (1, 0), memoryview(t).readonly)


def goes_anywhere(t: tenon.Tensor) -> None:
    array_of_numpy = t.numpy(copy=True)
    assert_type(array_of_numpy.ndim, int)
    print(t.to("jax"), t.to("tensorflow", copy=False), t.to(os), t.tolist(), t.item())


def from_an_address(block: array.array[float]) -> tenon.Tensor:
    address, length = block.buffer_info()
    freed: list[int] = []
    tenon.from_pointer(address, [length], tenon.dtype(float), deleter=freed.append)
    return tenon.from_pointer(address, (length,), "float64", device=(1, 0), strides=(1,), owner=block, readonly=True)


def from_a_file(path: os.PathLike[str]) -> Any:
    return tenon.open(path, mode="r")


def asks_first(x: object) -> str:
    answer = tenon.explain(x, "torch")
    assert_type(answer.zero_copy, bool)
    assert_type(answer.reason, str)
    return f"{answer} {tenon.inspect(x)}"


try:
    takes_anything(3)
except tenon.MalformedError as malformed:
    as_both: tuple[ValueError, BufferError] = (malformed, malformed)
