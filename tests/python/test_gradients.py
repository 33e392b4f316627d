# tests/python/test_gradients.py: memory of a tensor that requires grad goes to torch with a warning, once per place: writing to it gives
# wrong gradients.
import warnings

import numpy as np
import pytest
import tenon
import tenon_exports

torch = pytest.importorskip("torch")


def warned(run, action="always"):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        made = run()
    return made, [w for w in seen if "requires grad" in str(w.message)]


def parameter():
    return torch.nn.Parameter(torch.ones(4))


def leaf():
    return torch.ones(4, requires_grad=True)


def result():
    return torch.ones(4, requires_grad=True) * 2


WAYS = {
    "to": lambda t: t.to("torch"),
    "torch": lambda t: t.torch(),
    "from_dlpack": torch.from_dlpack,
    "utils": lambda t: torch.utils.dlpack.from_dlpack(t),
    "from another Tensor": lambda t: torch.from_dlpack(tenon.asdlpack(t, stream=-1)),
    "asarray": lambda t: tenon.asdlpack(t).to(torch),
}
of_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@pytest.mark.parametrize("make", [parameter, leaf, result])
@of_ways
def test_it_warns_in_its_own_words_at_the_users_line(way, make):
    t = tenon.asdlpack(make())
    assert t.readonly and t.flags == 1
    x, seen = warned(lambda: way(t))
    assert x.data_ptr() == t.data_ptr
    assert [w.filename for w in seen] == [__file__] and seen[0].category is tenon.ReadOnlyWarning
    assert ".detach()" in str(seen[0].message)


@of_ways
def test_once_per_place(way):
    t = tenon.asdlpack(parameter())
    _, seen = warned(lambda: [way(t) for _ in range(3)], action="default")
    assert len(seen) == 1


@of_ways
def test_where_warnings_are_errors_nothing_is_handed_over(way):
    t = tenon.asdlpack(parameter())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tenon.ReadOnlyWarning, match="requires grad"):
            way(t)


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run()


def test_what_does_not_require_grad_is_handed_over_without_a_word():
    for make in (lambda: torch.ones(4), lambda: parameter().detach(), lambda: parameter().data):
        for way in WAYS.values():
            assert quiet(lambda: way(tenon.asdlpack(make()))).requires_grad is False


def test_libraries_that_keep_it_read_only_are_given_it_without_a_word():
    t = tenon.asdlpack(parameter())
    for take in (np.from_dlpack, np.asarray, lambda t: t.numpy(), memoryview):
        assert not np.asarray(quiet(lambda: take(t))).flags.writeable


def test_a_copy_is_handed_over_without_a_word():
    t = tenon.asdlpack(parameter())
    quiet(lambda: t.to("torch", copy=True)).fill_(7)
    quiet(lambda: torch.from_dlpack(t, copy=True)).fill_(7)
    assert t.tolist() == [1.0] * 4


def test_frozen_memory_warns_in_the_words_of_frozen_memory():
    a = np.ones(4)
    a.flags.writeable = False
    with pytest.warns(tenon.ReadOnlyWarning, match="no read-only tensors: writing to this one"):
        tenon.asdlpack(a).to("torch")


def test_cpp_warns_when_it_gives_it_back_to_torch():
    p = parameter()
    x, seen = warned(lambda: tenon_exports.there_and_back(p))
    assert x.data_ptr() == p.data_ptr() and [w.filename for w in seen] == [__file__]
    quiet(lambda: tenon_exports.there_and_back(torch.ones(4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Warning, match="requires grad"):
            tenon_exports.there_and_back(p)


def test_the_wrong_gradient_that_it_warns_of():
    w = leaf()
    y = (w * w).sum()
    x, seen = warned(lambda: tenon.asdlpack(w).to("torch"))
    x.fill_(5)
    y.backward()
    assert seen and w.grad.tolist() == [10.0] * 4  # and not 2: torch did not notice
