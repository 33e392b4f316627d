# tests/python/test_capsules_out.py: a capsule straight from a description is the one a tensor would have left in, and as safe.
from __future__ import annotations

import ctypes
import gc

import pytest
import tenon
import tenon_exports
from fakes_ctypes import Versioned, described, opened
from producers import exactly_once

MEMORY = (ctypes.c_float * 64)(*range(64))
ADDRESS = ctypes.addressof(MEMORY)
KINDS = ("versioned", "legacy")
FIELDS = {
    "compact": dict(shape=(2, 3)),
    "strided": dict(shape=(2, 3), strides=(8, -1), byte_offset=16),
    "scalar": dict(shape=()),
    "empty": dict(shape=(0, 3)),
    "many axes": dict(shape=(1,) * 9),
    "bfloat16": dict(shape=(4,), dtype="bfloat16"),
    "unknown type": dict(shape=(4,), dtype=(99, 16, 1)),
}
REFUSED = {
    "negative extent": dict(shape=(2, -3)),
    "rank mismatch": dict(shape=(2, 3), strides=(1,)),
    "too large": dict(shape=(2**62, 2**62)),
    "too many axes": dict(shape=(1,) * 65),
    "misaligned": dict(shape=(2,), byte_offset=1),
    "no address": dict(shape=(2,), address=0),
    "unknown name": dict(shape=(2,), dtype="float33"),
}


def taken_apart(capsule) -> tuple:
    managed = opened(capsule)
    version = (managed.version.major, managed.version.minor, managed.flags) if isinstance(managed, Versioned) else None
    return version, described(managed.dl_tensor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_the_same_as_by_way_of_a_tensor(kind, fields):
    direct, by_tensor = tenon_exports.Counter(), tenon_exports.Counter()
    with exactly_once(direct, by_tensor):
        mine = taken_apart(tenon_exports.described(direct, kind, address=ADDRESS, **fields))
        other = taken_apart(getattr(tenon_exports, kind)(by_tensor, address=ADDRESS, **fields))
        assert mine == other
        del mine, other


@pytest.mark.parametrize("kind", KINDS)
def test_used_and_unused_are_released_once(kind):
    used, unused = tenon_exports.Counter(), tenon_exports.Counter()
    with exactly_once(used, unused):
        t = tenon.asdlpack(tenon_exports.described(used, kind, address=ADDRESS))
        assert t.data_ptr == ADDRESS and used.releases == 0
        tenon_exports.described(unused, kind, address=ADDRESS)
        assert unused.releases == 1
        del t


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_released_at_once(kind, fields):
    counter = tenon_exports.Counter()
    with exactly_once(counter), pytest.raises(BufferError, match="tenon: "):
        tenon_exports.described(counter, kind, **{"address": ADDRESS, **fields})
    assert counter.releases == 1


def test_read_only_memory_of_our_own_never_leaves_as_legacy():
    counter = tenon_exports.Counter()
    with pytest.raises(BufferError, match="read-only"):
        tenon_exports.described(counter, "legacy", address=ADDRESS, readonly=True)
    assert counter.releases == 1
    assert tenon.asdlpack(tenon_exports.described(counter, "versioned", address=ADDRESS, readonly=True)).readonly


def models() -> dict:
    found = {"no library": None, "bytes": b""}
    for name, make in (("numpy", "numpy.ones(2)"), ("torch", "torch.ones(2)"), ("jax", "jax.numpy.ones(2)")):
        try:
            module = __import__(name)
        except ImportError:
            continue
        found[name] = eval(make, {name: module})
    return found


MODELS = models()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_straight_to_the_callers_library(model):
    direct, by_tensor = tenon_exports.Counter(), tenon_exports.Counter()
    with exactly_once(direct, by_tensor):
        mine = tenon_exports.described_like(direct, model, address=ADDRESS, shape=(2, 3))
        other = tenon_exports.like(by_tensor, model, address=ADDRESS, shape=(2, 3))
        assert type(mine) is type(other)
        a, b = tenon.asdlpack(mine), tenon.asdlpack(other)
        assert (a.shape, a.strides, a.dtype, a.readonly) == (b.shape, b.strides, b.dtype, b.readonly)
        assert a.data_ptr == b.data_ptr or ADDRESS % 64
        del mine, other, a, b


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_on_the_way_to_a_library_is_released_at_once(model, fields):
    counter = tenon_exports.Counter()
    with exactly_once(counter), pytest.raises(BufferError, match="tenon: "):
        tenon_exports.described_like(counter, model, **{"address": ADDRESS, **fields})
    assert counter.releases == 1


def test_a_twin_has_the_shape_and_type_of_its_model():
    numpy = pytest.importorskip("numpy")
    model = numpy.ones((3, 4), numpy.int16)[:, ::2]
    made = tenon_exports.twin(model)
    assert type(made) is numpy.ndarray and made.shape == (3, 2) and made.dtype == model.dtype
    assert made.flags.c_contiguous and made.flags.owndata and made.flags.writeable
    assert tenon_exports.twin(bytearray(5)).shape == (5,)
    with pytest.raises(TypeError):
        tenon_exports.twin(object())
    gc.collect()
