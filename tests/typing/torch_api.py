# tests/typing/torch_api.py: what a typed program knows of a tensor of PyTorch's; checked where that is installed, and never run.
from __future__ import annotations

from typing_extensions import assert_type

import tenon


def goes_to_torch(t: tenon.Tensor) -> None:
    assert_type(t.torch(device="cpu").requires_grad, bool)
    assert_type(t.to("torch").requires_grad, bool)
