# examples/template_capi/tests/test_demo.py: what the module promises.
import demo
import numpy as np
import pytest


def test_scale_returns_what_it_was_given():
    scaled = demo.scale(np.array([1, 2, 3], dtype=np.float32), 0.5)
    assert type(scaled) is np.ndarray
    assert scaled.tolist() == [0.5, 1, 1.5]


def test_scale_takes_no_other_type():
    with pytest.raises(TypeError, match="float32"):
        demo.scale(np.zeros(3), s=0.5)
