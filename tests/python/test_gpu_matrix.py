# tests/python/test_gpu_matrix.py: every producer and every consumer on a machine with a GPU, cell by cell: shared, copied, or refused with a way out.
from __future__ import annotations

import os
import warnings
from collections import Counter

import gpu_matrix as matrix
import pytest
from gpu_matrix import (
    BY_VERSION,
    DOORS,
    DTYPES,
    EXPECTED,
    LAYOUTS,
    OUTCOMES,
    PRODUCERS,
    Cell,
    Made,
    cells,
    few,
    few_rows,
    gpu,
    hands_of,
    inexpressible,
    need_all,
    read,
    rows,
)
from isolation import unchecked
from real_support import COPIED, need, script

import tenon

on_gpu = pytest.mark.gpu
pytestmark = pytest.mark.filterwarnings("ignore::tenon.ReadOnlyWarning")

#: "few": a sample, for tools that make everything slow; and where there is no GPU, all of it is skipped.
FEW = os.environ.get("TENON_GPU_CELLS") == "few" or not matrix.count_devices()
CELLS = few() if FEW else cells()
ROWS = few_rows() if FEW else rows()
CUDA_MANAGED, CUDA, CPU = (13, 0), (2, 0), (1, 0)
VERSIONED = {"max_version": (1, 3)}


# --- nothing is lost --------------------------------------------------------------------------------


def test_no_cell_is_left_out():
    assert list(EXPECTED) and set(EXPECTED) == set(PRODUCERS)
    assert (len(PRODUCERS), len(DTYPES), len(LAYOUTS), len(DOORS)) == (19, 7, 6, 17)
    made, unmade = rows(), inexpressible()
    assert set(made).isdisjoint(unmade) and all(unmade.values())
    assert len(made) + len(unmade) == 19 * 7 * 6 == 798
    assert len(made) == 574 and len(cells()) == 574 * 17 == 9758
    kinds = Counter(OUTCOMES[cell.letter].kind for cell in cells())
    assert kinds == {"shared": 5235, "copied": 1275, "nothing": 1560, "refused": 1688}
    assert set(OUTCOMES) == {cell.letter for cell in cells()}
    assert {letter for letter, *_ in BY_VERSION} <= set(OUTCOMES)


def test_the_sample_has_every_pair_once():
    sample = few()
    assert len(sample) == 19 * 17 == 323 == len({(cell.producer, cell.door) for cell in sample})
    assert set(sample) <= set(cells()) and few() == sample
    assert {cell.dtype for cell in sample} == set(DTYPES) and {cell.layout for cell in sample} == set(LAYOUTS)
    assert len(few_rows()) == 266 and {row[0] for row in few_rows()} == set(PRODUCERS)
    assert {OUTCOMES[cell.letter].kind for cell in sample} == {"shared", "copied", "nothing", "refused"}


def test_every_refusal_has_a_way_out():
    for letter, outcome in OUTCOMES.items():
        assert bool(outcome.way) is bool(outcome.raises) is bool(outcome.says) is (outcome.kind == "refused"), letter


# --- the cells --------------------------------------------------------------------------------------


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def check_description(view, want, strides) -> None:
    """What a library says of its array, as far as it says it."""
    dtype, shape, steps, _ = hands_of(view).about(view)
    assert (dtype, shape) == (want.dtype.name, want.shape)
    if steps is not None and want.size:
        assert all(n == 1 or a == b for n, a, b in zip(shape, steps, strides, strict=True)), (steps, strides)


def in_elements(array) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def check_shared(cell: Cell, made: Made, t: tenon.Tensor, view) -> None:
    """The same memory: what either side writes, the other shows, as far as it may be written to."""
    producer = PRODUCERS[cell.producer]
    want, second, third = (producer.wanted(cell.dtype, cell.layout, turn) for turn in range(3))
    consumer, maker = hands_of(view), hands_of(made.obj)
    assert consumer.address(view) == t.data_ptr
    check_description(view, want, in_elements(want))
    assert consumer.about(view)[3] in (not t.readonly, None)
    assert same(read(view), want)
    if t.readonly:
        return
    if consumer.write is not None:
        consumer.write(view, second)
        assert same(read(made.obj), second)
    if maker.write is not None:
        maker.write(made.obj, third)
        # At its address: JAX remembers what it has once read.
        seen = matrix.fetch(consumer.address(view), t.shape, t.strides, cell.dtype, t.device != "cpu")
        assert same(seen, third)
        if cell.door != "jax.dlpack.from_dlpack" and DOORS[cell.door].library != "jax":
            assert same(read(view), third)


def check_copied(cell: Cell, made: Made, t: tenon.Tensor, view) -> None:
    """Other memory, and the same values."""
    want = PRODUCERS[cell.producer].wanted(cell.dtype, cell.layout)
    dtype, shape, _, _ = hands_of(view).about(view)
    assert (dtype, shape) == (want.dtype.name, want.shape)
    assert hands_of(view).address(view) != t.data_ptr
    assert same(read(view), want)
    assert same(read(made.obj), want)


def check_move(cell: Cell, t: tenon.Tensor, view: tenon.Tensor) -> None:
    """Where asdlpack brought it, and what may be done with it there."""
    kind = OUTCOMES[cell.letter].kind
    if cell.door == 'device="cuda:0"':
        assert view.device == "cuda:0" and isinstance(view.stream, int)
    elif cell.door == 'device="cpu"':
        # CuPy hands managed memory out as what it is, whatever is asked for: the host can read it.
        assert view.device in ("cpu", "cuda_managed:0" if t.device == "cuda_managed:0" else "cpu")
    else:  # CuPy makes no copies on a GPU, and ours of what the host can read is there
        assert view.device == ("cpu" if t.device == "cuda_managed:0" else t.device)
    if kind == "copied" and cell.door != 'device="cpu"':  # a copy on the CPU may be JAX's, and not to be written to
        assert view.flags & COPIED and not view.readonly
    if kind == "shared":
        assert view.readonly is t.readonly


def check_refused(cell: Cell, made: Made, t: tenon.Tensor) -> None:
    """The exception, its words, and that the way out is one."""
    outcome, door = OUTCOMES[cell.letter], DOORS[cell.door]
    with pytest.raises(outcome.raises) as caught:
        door.enter(made.obj, t)
    assert outcome.says in str(caught.value)
    if door.library is not None:
        assert "does not take this tensor" in str(caught.value)
    view = door.enter(made.obj, t, **outcome.way)
    assert same(read(view), PRODUCERS[cell.producer].wanted(cell.dtype, cell.layout))


@on_gpu
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_cell(cell):
    producer, door, outcome = PRODUCERS[cell.producer], DOORS[cell.door], OUTCOMES[cell.letter]
    producer.need()
    door.need()
    if unknown := matrix.why_unknown(cell):
        pytest.skip(unknown)
    made = producer.make(matrix.numbers(cell.dtype), cell.layout)
    gpu().settle()
    t = tenon.asdlpack(made.obj)
    if door.library is not None:
        said = tenon.explain(made.obj, door.library)
        assert said.outcome == ("shared" if outcome.kind == "nothing" else outcome.kind), str(said)
    if outcome.kind == "refused":
        check_refused(cell, made, t)
        return
    view = door.enter(made.obj, t)
    if outcome.kind == "nothing":
        check_description(view, producer.wanted(cell.dtype, cell.layout), ())
    elif outcome.kind == "copied":
        check_copied(cell, made, t, view)
    else:
        check_shared(cell, made, t, view)
    if door.move is not None:
        check_move(cell, t, view)


@on_gpu
@pytest.mark.parametrize("row", ROWS, ids="; ".join)
def test_tensor(row):
    """What a Tensor of each array says of itself."""
    name, dtype, layout = row
    producer = PRODUCERS[name]
    producer.need()
    made = producer.make(matrix.numbers(dtype), layout)
    want = producer.wanted(dtype, layout)
    t = tenon.asdlpack(made.obj)
    assert (t.device, t.dtype, t.shape, t.readonly) == (producer.device, dtype, want.shape, producer.readonly)
    assert t.stream is None if producer.device == "cpu" else isinstance(t.stream, int) and t.stream > 0
    check_description(made.obj, want, in_elements(want))
    if want.size:
        assert t.data_ptr == hands_of(made.obj).address(made.obj)
        assert all(n == 1 or a == b for n, a, b in zip(t.shape, t.strides, in_elements(want), strict=True))
        assert same(read(made.obj), want) and same(read(t), want)


# --- beyond the table -------------------------------------------------------------------------------


@on_gpu
def test_the_stream_is_the_one_the_array_is_on():
    need_all(("numba.cuda", "torch"))
    on_stream = PRODUCERS["numba, on a stream"].make(matrix.numbers("float32"), "compact")
    assert tenon.asdlpack(on_stream.obj).stream == int(matrix.numba_stream())
    assert tenon.asdlpack(PRODUCERS["numba"].make(matrix.numbers("float32"), "compact").obj).stream == 1
    torch = need("torch")
    x = torch.zeros(4, device="cuda:0")
    assert tenon.asdlpack(x).stream == 1
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert tenon.asdlpack(x).stream == side.cuda_stream


@on_gpu
def test_managed_memory_is_the_hosts_and_the_gpus():
    """One address, by whichever name it is asked for."""
    need_all(("cupy", "numpy"))
    made = PRODUCERS["cupy, managed"].make(matrix.numbers("float32"), "compact").obj
    gpu().settle()
    t = tenon.asdlpack(made)
    assert t.device == "cuda_managed:0" and t.__dlpack_device__() == CUDA_MANAGED
    assert need("numpy").from_dlpack(t).ctypes.data == t.data_ptr == made.data.ptr
    for device, name in ((CUDA, "cuda:0"), (CPU, "cpu"), (CUDA_MANAGED, "cuda_managed:0")):
        shown = tenon.asdlpack(t.__dlpack__(dl_device=device, **VERSIONED))
        assert (shown.device, shown.data_ptr, shown.flags & COPIED) == (name, t.data_ptr, 0)
    moved = tenon.asdlpack(t, device="cuda:0", copy=False)
    assert (moved.device, moved.data_ptr) == ("cuda:0", t.data_ptr)


@on_gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["torch, CUDA", "cupy", "numba", "numba, on a stream", "cuda.core view"])
def test_a_copy_of_a_tensor_is_made_on_the_device(name, layout):
    producer = PRODUCERS[name]
    producer.need()
    made = producer.make(matrix.numbers("float32"), layout)
    gpu().settle()
    t = tenon.asdlpack(made.obj)
    copied = tenon.asdlpack(t.__dlpack__(copy=True, **VERSIONED))
    want = producer.wanted("float32", layout)
    assert (copied.device, copied.readonly, copied.is_contiguous) == ("cuda:0", False, True)
    assert copied.flags & COPIED and same(read(copied), want)
    if want.size:
        assert copied.data_ptr != t.data_ptr


@on_gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["numpy", "torch, CPU", "torch, CUDA", "numba, on a stream"])
def test_a_tensor_goes_to_the_gpu_and_back(name, layout):
    """By asdlpack of a Tensor, and by its own __dlpack__."""
    producer = PRODUCERS[name]
    producer.need()
    made = producer.make(matrix.numbers("float32"), layout)
    gpu().settle()
    t = tenon.asdlpack(made.obj)
    want = producer.wanted("float32", layout)
    there = [tenon.asdlpack(t, device="cuda:0"), tenon.asdlpack(t.__dlpack__(dl_device=CUDA, **VERSIONED))]
    back = [tenon.asdlpack(u, device="cpu") for u in there]
    back += [tenon.asdlpack(u.__dlpack__(dl_device=CPU, **VERSIONED)) for u in there]
    assert {u.device for u in there} == {"cuda:0"} and {u.device for u in back} == {"cpu"}
    assert all(same(read(u), want) for u in (*there, *back))


@on_gpu
def test_copy_false_moves_nothing():
    need_all(("numpy", "torch"))
    on_host = tenon.asdlpack(matrix.numbers("float32"))
    on_device = tenon.asdlpack(need("torch").zeros(3, device="cuda"))
    for t, device in ((on_host, "cuda:0"), (on_device, "cpu")):
        with pytest.raises(BufferError, match="copy=False"):
            tenon.asdlpack(t, device=device, copy=False)


@on_gpu
def test_read_only_memory_of_a_gpu_warns_where_it_could_be_written_to():
    need_all(("jax", "torch", "cupy", "numba.cuda"))
    t = tenon.asdlpack(PRODUCERS["jax, CUDA"].make(matrix.numbers("float32"), "compact").obj)
    for library in ("torch", "cupy", "numba"):
        with pytest.warns(tenon.ReadOnlyWarning, match=f"{library} has no read-only"):
            t.to(library)
        assert "no read-only arrays" in tenon.explain(t, library).notes[0]


@on_gpu
def test_read_only_memory_of_a_gpu_is_shared_with_jax_and_it_warns_of_donation():
    need_all(("jax", "torch"))
    x = need("torch").arange(16.0, device="cuda")
    t = tenon.asdlpack(x, readonly=True)
    with pytest.warns(tenon.ReadOnlyWarning, match="donated"):
        y = t.to("jax", copy=False)
    assert y.unsafe_buffer_pointer() == x.data_ptr() and "donate" in tenon.explain(t, "jax").notes[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what came from there goes back without a word
        assert tenon.asdlpack(y).to("jax", copy=False).unsafe_buffer_pointer() == x.data_ptr()


@on_gpu
def test_pinned_memory_of_torch_reaches_jax_without_a_copy():
    need_all(("jax", "torch"))
    jax = need("jax")
    x = need("torch").arange(16.0).pin_memory()
    for take in (jax.dlpack.from_dlpack, lambda t: t.to("jax", copy=False)):
        y = take(tenon.asdlpack(x))
        assert y.unsafe_buffer_pointer() == x.data_ptr() and float((y + 1)[3]) == 4  # on the CPU, where it can be computed with


@on_gpu
def test_pinned_memory_of_jax_goes_back():
    need_all(("jax",))
    jax = need("jax")
    place = jax.sharding.SingleDeviceSharding(jax.devices("cuda")[0], memory_kind="pinned_host")
    x = jax.device_put(jax.numpy.arange(16.0), place)
    if x.__dlpack_device__()[0] != 3:
        pytest.skip("this jax does not say that it is pinned")
    t = tenon.asdlpack(x)
    assert t.device == "cuda_host:0" and t.readonly
    assert jax.dlpack.from_dlpack(t).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


@on_gpu
@unchecked
def test_jax_computes_with_memory_aligned_to_16_bytes_only():
    """On a GPU it takes any, and raises when it is used: that is why Tensor.to gives it a copy. In a process of its
    own, in case it is worse than that."""
    need_all(("jax", "torch"))
    said = script("""
import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, torch, tenon
x = torch.arange(64.0, device="cuda")
torch.cuda.synchronize()
for start in (0, 4, 1, 2):
    t = tenon.asdlpack(x[start:])
    taken = jax.dlpack.from_dlpack(t)
    assert taken.unsafe_buffer_pointer() == t.data_ptr
    try:
        print(start, float((taken + 1)[0]), t.to("jax").unsafe_buffer_pointer() == t.data_ptr)
    except RuntimeError as e:
        print(start, "multiple of 10" in str(e), float((t.to("jax") + 1)[0]))
""")
    assert said.splitlines() == ["0 1.0 True", "4 5.0 True", "1 True 2.0", "2 True 3.0"]
