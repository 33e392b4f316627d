# tests/typing/array_types.py: functions whose parameters are annotated by hand with tenon.typing, as stubs have them; checked, and never run.
from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from tenon.typing import Array
from typing_extensions import assert_type

import tenon


@overload
def norm(x: Array[np.float32, Literal["float32[*]"]]) -> float: ...
@overload
def norm(x: Array[np.float64, Literal["float64[*]"]]) -> str: ...
@overload
def norm(x: Array[np.float64, Literal["float64[*, *]"]]) -> bytes: ...
def norm(x: object) -> object:
    return x


def either(x: Array[np.float32 | np.float64, Literal["float32 or float64[*]"]]) -> Array[Any, Literal["any[...]"]]:
    return tenon.asdlpack(x)


def takes_numpy(single: NDArray[np.float32], double: NDArray[np.float64]) -> None:
    assert_type(norm(single), float)
    assert_type(norm(double), str)
    print(either(single), either(double))


def takes_others(t: tenon.Tensor, view: memoryview) -> None:
    assert_type(norm(t), float)
    assert_type(norm(view), float)
    print(either(t), either(b"1234"))


def takes_no_lists() -> None:
    either([1.0, 2.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
