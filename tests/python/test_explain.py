# tests/python/test_explain.py: what explain() says, beside what really happens: every library, every awkward array.
from __future__ import annotations

import array
import ast
import ctypes
import itertools
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from awkward import AWKWARD, NOWHERE, memory
from isolation import SANITIZED
from quick import rest_is_slow
from real_support import elsewhere, has, need, script

import tenon
from tenon._libraries import LIBRARIES

HERE = Path(__file__).parent
TARGETS = ["numpy", "torch", "jax", "tensorflow", "paddle", "pyarrow", "numba", "tvm_ffi", "cuda.core"]
CLASH = {"tensorflow", "paddle"}  # crash each other in one process
# What makes it ends the process once TensorFlow is in it: two copies of LLVM.
IMPOSSIBLE = {("torch: fake", "tensorflow")}
# Paddle leaks what it had begun when it refuses.
LEAKS = {"paddle: sparse"} if SANITIZED else set()
# What a library does with memory that we would not have given it may be an error the sanitizer stops at.
QUESTIONS = ("said", "by_to", "fixed") if SANITIZED else ("said", "by_the_door", "by_to", "fixed")
# JAX before 0.10 reads such memory wrong, but not if it copies it first, and not if all numbers are the same.
READ_WRONG_AT_TIMES = "this old jax does not look at them"


def test_every_library_is_asked():
    """All but CuPy, which needs a GPU: test_cupy_... below, and the tests that have one."""
    assert [*TARGETS, "cupy"] == sorted(LIBRARIES, key=[*TARGETS, "cupy"].index)


def rows_for(target: str) -> list[str]:
    """What can be made in one process with the target."""
    return [
        name
        for name, (library, _) in AWKWARD.items()
        if (library == target or library not in CLASH) and (name, target) not in IMPOSSIBLE and name not in LEAKS
    ]


def ask(cells: list[tuple[str, str]], loading: str, answers) -> dict[tuple[str, str], dict[str, object]]:
    """What each question is answered for each row and target, in a child process that goes on after a crash."""
    cases = {
        f"{question} / {row} / {target}": f"awkward.{question}({row!r}, {target!r})"
        for row, target in cells
        for question in QUESTIONS
        if not (row.startswith("nowhere") and question in ("by_the_door", "fixed"))
    }
    env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0"}
    setup = f"import sys; sys.path.insert(0, {str(HERE)!r}); import awkward; awkward.load({loading!r})"
    outcomes = elsewhere(setup, cases, answers, env=env)
    assert list(outcomes) == list(cases)
    table: dict[tuple[str, str], dict[str, object]] = {cell: {} for cell in cells}
    for case, outcome in outcomes.items():
        question, row, target = case.split(" / ")
        if outcome.crashed:
            answer = ("crashed", outcome.crashed)
        elif outcome.raised:
            answer = ("raised", f"{outcome.raised[0]}: {outcome.message}")
        else:
            answer = ast.literal_eval(outcome.accepted())
        table[row, target][question] = answer
    return table


def check(table: dict[tuple[str, str], dict[str, object]]) -> int:
    """Every cell: what was said is what happened, in every way to do it; what helps, helps. The number of cells."""
    wrong = []
    for (row, target), answers in table.items():
        outcome, reason, fix, notes = answers["said"] if len(answers["said"]) == 4 else (*answers["said"], "", ())
        happened, words = answers.get("by_the_door", (outcome, ""))
        if happened == "crashed" or READ_WRONG_AT_TIMES in reason:  # `to` must not have let it come to that
            happened = "refused"
        came, message = answers["by_to"]
        ended, done = answers.get("fixed", ("shared", []))
        faults = [
            f"said {outcome}, but the library: {happened} {words}" if outcome != happened else "",
            f"said {outcome}, but to(): {came} {message}" if outcome != came else "",
            f"shared, and yet {reason!r} {fix!r}" if outcome == "shared" and (reason or fix) else "",
            "no reason or no fix" if outcome != "shared" and not (reason and fix) else "",
            f"a note where it is not shared: {notes}" if outcome != "shared" and notes else "",
            f"to() does not say why: {message}" if not says_why(message, reason) else "",
            f"after {done}: {ended}" if ended not in ("shared", "told") else "",
            "told for what is shared" if outcome == "shared" and (ended, done) != ("shared", []) else "",
        ]
        wrong += [f"{row} -> {target}: {fault}" for fault in faults if fault]
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)
    return len(table)


def says_why(message: str, reason: str) -> bool:
    """Of a tensor that `to` refused: the reason is in its message. What `asdlpack` refused is its own affair."""
    return "does not take this tensor" not in message or (message.startswith("BufferError: ") and reason in message)


def cells_of(target: str) -> list[tuple[str, str]]:
    """Those whose libraries are installed."""
    return [(row, target) for row in rows_for(target) if has(AWKWARD[row][0])]


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory):
    """The answers of all targets that get along with each other: most of the time goes into imports."""
    cells = [cell for target in TARGETS if target not in CLASH and has(target) for cell in cells_of(target)]
    return ask(cells, "tenon", tmp_path_factory.mktemp("explain") / "answers")


@pytest.mark.parametrize("target", rest_is_slow(TARGETS, *(t for t in TARGETS if t not in CLASH)))
def test_said_and_done(target, request, tmp_path, record_property):
    need_here(target)
    here = cells_of(target)
    if target in CLASH:
        table = ask(here, target, tmp_path / "answers")
    else:
        table = {cell: answers for cell, answers in request.getfixturevalue("in_one_process").items() if cell[1] == target}
    cells = check(table)
    assert cells == len(here)
    if all(has(library) for library, _ in AWKWARD.values()):
        others = sum(library in CLASH and library != target for library, _ in AWKWARD.values())
        unasked = (target == "tensorflow") + (target == "paddle") * len(LEAKS)
        assert cells == len(AWKWARD) - others - unasked > 250
    record_property("cells", cells)
    left_out = len(rows_for(target)) - len(here)
    print(f"{cells} cells of {target}, {left_out} left out for libraries that are not installed")


@pytest.mark.slow
@pytest.mark.parametrize("producer", sorted(CLASH))
def test_said_and_done_from(producer, tmp_path):
    """What only one of the two can make, to all the others."""
    need_here(producer)
    rows = [row for row, (library, _) in AWKWARD.items() if library == producer and row not in LEAKS]
    targets = [t for t in TARGETS if has(t) and t not in CLASH]
    cells = check(ask([(row, target) for target in targets for row in rows], producer, tmp_path / "answers"))
    assert cells == len(rows) * len(targets) > 0


def need_here(module: str) -> None:
    """Skips without importing it into this process, which has others in it."""
    if not has(module):
        pytest.skip(f"{module} is not installed")


@pytest.mark.skipif(SANITIZED, reason="the sanitizer reports it when it happens")
@pytest.mark.skipif("TENON_TRY_CRASHES" not in os.environ, reason="others' crashes take long to write down: make test-long")
@pytest.mark.parametrize(
    ("target", "dtype", "good", "bad"),
    [
        ("tensorflow", "float32", [0, 64], [4, 32]),
        ("torch", "complex128", [0, 16], [8]),
        ("paddle", "complex128", [0, 16], [8]),
    ],
)
def test_what_ends_the_process_later(target, dtype, good, bad, tmp_path):
    """What these libraries share and do not survive: it is because of this that they are not given it."""
    need_here(target)
    cases = {str(offset): f"awkward.computed_by({target!r}, {offset}, {dtype!r})" for offset in (*good, *bad)}
    setup = f"import sys; sys.path.insert(0, {str(HERE)!r}); import awkward"
    outcomes = elsewhere(setup, cases, tmp_path / "answers")
    for offset in good:
        assert outcomes[str(offset)].accepted()
    for offset in bad:
        assert outcomes[str(offset)].crashed
        assert tenon.explain(memory(dtype=dtype, offset=offset), target).outcome != "shared"


# --- what cannot be told by trying here -------------------------------------------------------------


def test_cupy_takes_what_is_on_the_gpu():
    """Its rules, as its documentation has them; the tests that have a GPU try them."""
    assert tenon.explain(memory(device="cuda:0"), "cupy").outcome == "shared"
    assert tenon.explain(memory(device="cuda_managed"), "cupy").outcome == "shared"
    on_cpu = tenon.explain(memory(), "cupy")
    assert (on_cpu.outcome, on_cpu.fix) == ("refused", 'tenon.asdlpack(obj, device="cuda:0")')
    assert tenon.explain(memory(dtype="float8_e5m2", device="cuda:0"), "cupy").outcome == "refused"
    assert "no read-only" in tenon.explain(memory(device="cuda:0", readonly=True), "cupy").notes[0]


@pytest.mark.skipif(not NOWHERE, reason="this machine has a GPU")
@pytest.mark.skipif(has("cupy"), reason="cupy is installed")
def test_a_library_that_is_missing_is_said_to_be():
    answer = tenon.explain(memory(device="cuda:0"), "cupy")
    assert answer
    assert answer.notes[-1] == "cupy is not installed here"


def test_gpu_memory_goes_to_the_cpu_first():
    answer = tenon.explain(memory(device="cuda:0"), "numpy")
    assert (answer.outcome, answer.fix) == ("refused", 'tenon.asdlpack(obj, device="cpu")')
    assert "cuda:0" in answer.reason


# --- how it is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_shared(target):
    need_here(target)  # or there would be a note
    answer = tenon.explain(memory(), target)
    assert answer == (target, "shared", "", "", ())
    assert answer.zero_copy
    assert str(answer) == f"Shared with {target}."


def test_refused():
    answer = tenon.explain(memory(shape=(4,), strides=(-1,)), "torch")
    assert not answer
    assert not answer.zero_copy
    assert answer.reason == "its strides (-1,) go backwards, and torch takes no negative ones"
    assert str(answer) == f"Refused on the way to torch: {answer.reason}.\nWhat helps: tenon.asdlpack(obj, copy=True)"


def test_copied():
    answer = tenon.explain(memory(offset=4), "jax")
    assert (answer.outcome, answer.zero_copy) == ("copied", False)
    assert str(answer).startswith("Copied on the way to jax: its memory is not aligned to 64 bytes")


@pytest.mark.parametrize("target", [name for name, library in LIBRARIES.items() if library.forgets_readonly])
def test_note_on_read_only_memory(target):
    device = "cuda:0" if target == "cupy" else "cpu"
    answer = tenon.explain(memory(readonly=True, device=device), target)
    assert answer
    assert answer.notes[0] == f"{target} has no read-only arrays, and will let this memory be written to"
    assert f"Note: {answer.notes[0]}." in str(answer)


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        tenon.explain(memory(), "torch").outcome = "shared"


@pytest.mark.parametrize(("target", "exception"), [("nobody", ValueError), (3, TypeError), (sys, ValueError)])
def test_wrong_target(target, exception):
    with pytest.raises(exception, match="tenon: "):
        tenon.explain(b"", target)


def test_capsules_are_not_looked_at():
    capsule = memory().__dlpack__(max_version=(1, 0))
    with pytest.raises(TypeError, match="only once"):
        tenon.explain(capsule, "numpy")
    assert tenon.asdlpack(capsule).shape == (6,)  # and is still good


def test_what_is_only_called_a_capsule():
    assert tenon.explain(type("PyCapsule", (), {})(), "numpy").outcome == "refused"


@pytest.mark.parametrize("nothing", [None, "text", {}, {1}, iter(())], ids=lambda o: type(o).__name__)
def test_what_is_no_array_at_all(nothing):
    answer = tenon.explain(nothing, "numpy")
    assert answer.outcome == "refused" and "speaks no tensor protocol" in answer.reason and "arrow" not in answer.reason


def test_only_times_are_times():
    pa = need("pyarrow")
    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int32())]), [])
    for other in (pa.scalar(3), pa.int32(), pa.schema([]), reader, pa.array([(1, 2, 3)], pa.month_day_nano_interval())):
        answer = tenon.explain(other, "numpy")
        assert answer.outcome == "refused" and "times" not in answer.reason, other
    for kind in (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("s", "UTC"), pa.duration("s")):
        assert "times" in tenon.explain(pa.array([0], kind), "numpy").reason


def test_only_what_is_in_pieces_is_said_to_be():
    pa = need("pyarrow")
    assert tenon.explain(pa.chunked_array([[1], [2]]), "numpy").fix == "obj.combine_chunks()"
    for first in (pa.chunked_array([[1, None]]), pa.chunked_array([[True], [False]]), pa.chunked_array([["a"], ["b"]])):
        assert "pieces" not in tenon.explain(first, "numpy").reason


def raising(*_):
    raise KeyError("asked")


class Wordless(Exception):
    __str__ = raising


class Untold(type):
    """The classes of it tell nothing of themselves."""

    __module__ = __name__ = __mro__ = property(raising)


class Changing:
    """It answers the first time only."""

    __module__ = "torch"
    asked = 0

    @property
    def layout(self):
        self.asked += 1
        return "sparse" if self.asked == 1 else raising()


def strange(*bases, **members):
    return type("Strange", bases, members)()


STRANGE = {
    "its module is no text": lambda: strange(__module__=5),
    "its class tells nothing": lambda: Untold("Strange", (), {})(),
    "its exception says nothing": lambda: strange(
        __dlpack__=lambda *_, **__: raise_wordless(), __dlpack_device__=lambda self: (1, 0)
    ),
    "it changes": Changing,
    "fields without a name": lambda: strange(
        __module__="numpy", dtype=strange(names=(), isnative=True, kind="V", char="V")
    ),
}


def raise_wordless():
    raise Wordless


@pytest.mark.parametrize("what", STRANGE)
def test_what_is_merely_refused_raises_nothing(what):
    for module in ("torch", "numpy"):
        need(module)
    answer = tenon.explain(STRANGE[what](), "numpy")
    assert answer.outcome == "refused" and answer.reason and answer.fix


def test_the_class_of_what_is_taken_may_be_strange_too():
    lie = type("Lie", (bytes,), {"__module__": 5, "__class__": property(raising)})
    lies = [lie(b"a" * n) for n in range(1, 200, 8)]  # of which some lie off 64 bytes, wherever the allocator puts them
    off = next(i for i, one in enumerate(lies) if tenon.asdlpack(one).data_ptr % 64 != 0)
    outcome = tenon.explain(lies[off], "tensorflow").outcome
    assert outcome == "copied"


def test_an_exception_of_a_class_that_says_nothing():
    class Silent(type):
        def __getattribute__(cls, name):
            raise KeyError(name)

    class Wordless(Exception, metaclass=Silent):
        pass

    class Refuses:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **keywords):
            raise Wordless

    answer = tenon.explain(Refuses(), "torch")
    assert (answer.outcome, answer.reason) == ("refused", "Wordless")


def test_a_single_value_of_ml_dtypes():
    np, ml_dtypes = need("numpy"), need("ml_dtypes")
    x = ml_dtypes.bfloat16(1.5)
    answer = tenon.explain(x, "numpy")
    assert (answer.outcome, answer.fix) == ("refused", "numpy.asarray(obj)") and "single value" in answer.reason
    assert tenon.asdlpack(eval(answer.fix, {"numpy": np, "obj": x})).tolist() == 1.5


def test_an_object_that_explains_itself_does_so_a_few_times():
    """Whatever its attributes raise or return, the next is asked: without a limit they multiply until the stack's."""
    np = need("numpy")
    asked = 0

    class Curious(np.ndarray):
        @property
        def dtype(self):
            nonlocal asked
            asked += 1
            if asked > 20_000:
                pytest.fail("explanations without end")  # no Exception: it passes
            return tenon.explain(self, "torch")

    assert tenon.explain(np.zeros(3, object).view(Curious), "torch").outcome == "refused"
    assert asked >= 3
    assert tenon.explain(b"abc", "torch").outcome == "shared"  # and the count of levels is as before


def test_a_jax_that_is_not_all_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    monkeypatch.delenv("JAX_ENABLE_X64", raising=False)
    assert tenon.explain(tenon.asdlpack(array.array("d", [1.0])), "jax").outcome == "copied"


def test_jax_and_a_type_it_has_not():
    """Read-only memory goes another way, to the same end."""
    np, ml_dtypes, _ = need("numpy"), need("ml_dtypes"), need("jax")
    a = np.arange(3).astype(ml_dtypes.int4)
    for writable in (True, False):
        a.flags.writeable = writable
        assert tenon.explain(a, "jax").outcome == "refused"
        with pytest.raises(BufferError, match="jax has no element type int4"):
            tenon.asdlpack(a).to("jax")


def test_pyarrow_and_nothing_that_goes_backwards():
    """PyArrow looks at strides that are never stepped along, and not every PyArrow at the same ones."""
    need("pyarrow")
    numbers = (ctypes.c_double * 16)()
    seen = set()
    for rank in (1, 2):
        for shape, strides in itertools.product(
            itertools.product(range(3), repeat=rank), itertools.product(range(-2, 3), repeat=rank)
        ):
            middle = ctypes.addressof(numbers) + 8 * 8
            t = tenon.from_pointer(middle, shape, "float64", strides=strides, owner=numbers)
            said = tenon.explain(t, "pyarrow").outcome
            try:
                t.to("pyarrow")
            except BufferError as error:
                assert "go backwards" in str(error) and said == "refused", (shape, strides)
            else:
                assert said == "shared", (shape, strides)
            seen.add((said, min(strides) < 0, 0 in shape))
    assert len(seen) >= 6


def test_memory_errors_pass():
    class Exhausted:
        def __dlpack__(self, **_):
            raise MemoryError

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(MemoryError):
        tenon.explain(Exhausted(), "numpy")


def test_a_producer_that_raises_is_quoted():
    class Broken:
        def __dlpack__(self, **_):
            raise RuntimeError("out of order until Monday")

        def __dlpack_device__(self):
            return (1, 0)

    answer = tenon.explain(Broken(), "torch")
    assert (answer.outcome, answer.reason) == ("refused", "out of order until Monday")
    assert answer.fix


def test_a_module_nobody_knows():
    strict = need("array_api_strict")
    answer = tenon.explain(memory(), strict)
    assert answer
    assert "knows nothing" in answer.notes[0]


def test_a_module_that_cannot_be_found():
    unknown = ModuleType("nobody_has.this")
    unknown.from_dlpack = lambda array: array
    answer = tenon.explain(memory(), unknown)
    assert answer.target == "nobody_has.this" and answer and "not installed" not in str(answer)
    del unknown.__name__
    assert tenon.explain(memory(), unknown)


def test_a_submodule_is_its_library():
    assert tenon.explain(memory(), need("numpy").linalg).target == "numpy"


def test_no_library_is_imported():
    """Not for what is on the CPU; and not by `import tenon`, which does not need dataclasses either."""
    program = f"""
import array, sys, tenon
assert "dataclasses" not in sys.modules
numbers = array.array("d", range(6))
for target in {list(LIBRARIES)}:
    for obj in (numbers, memoryview(numbers)[::-1], b"abc", [1]):
        str(tenon.explain(obj, target))
print(sorted(set({[library.module for library in LIBRARIES.values()]}) & set(sys.modules)))
"""
    assert script(program) == "[]\n"


@pytest.mark.parametrize(
    ("told", "outcome"), [("0", "copied"), ("1", "shared"), ("true", "shared"), ("False", "copied")]
)
def test_jax_and_64_bits_before_it_is_imported(told, outcome):
    """Its environment variable decides, as it will when it is imported."""
    need_here("jax")
    program = """
import ctypes, sys, tenon
room = (ctypes.c_char * 256)()
at = -ctypes.addressof(room) % 64 + ctypes.addressof(room)
t = tenon.from_pointer(at, (4,), "float64", owner=room)
before = tenon.explain(t, "jax").outcome
assert "jax" not in sys.modules
import jax
assert tenon.explain(t, "jax").outcome == before
print(before, jax.config.jax_enable_x64)
"""
    answer = script(program, env={"JAX_ENABLE_X64": told, "JAX_PLATFORMS": "cpu"})
    assert answer.split() == [outcome, str(outcome == "shared")]


def test_numpy_without_ml_dtypes():
    need_here("numpy")
    program = """
import sys, ctypes, tenon
sys.modules["ml_dtypes"] = None
room = (ctypes.c_char * 64)()
t = tenon.from_pointer(ctypes.addressof(room), (4,), "bfloat16", owner=room)
answer = tenon.explain(t, "numpy")
print(answer.outcome, answer.fix)
try:
    t.numpy()
except BufferError as e:
    print("pip install ml_dtypes" in str(e), answer.reason in str(e))
"""
    assert script(program).splitlines() == ["refused pip install ml_dtypes", "True True"]


# --- at random --------------------------------------------------------------------------------------


def test_said_and_done_at_random():
    """NumPy arrays of any type, layout, offset and writability: explain, the library itself and `to` agree."""
    hypothesis = need("hypothesis")
    st = need("hypothesis.strategies")
    np = need("numpy")
    awkward = need("awkward")
    targets = [name for name in ("numpy", "torch", "jax") if has(name)]
    for name in targets:
        need(name)
    seen: dict[tuple[str, str], int] = {}

    slices = st.sampled_from([slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(None, 1)])
    dtypes = st.sampled_from([*"?bhiqBHIQefdFDg", ">f4", ">i2", "M8[s]", "m8[s]", "S3", "U2", "V3", "O", "f4,i2"])

    @hypothesis.settings(max_examples=400, deadline=None, derandomize=True, database=None)
    @hypothesis.given(st.data())
    def agree(data):
        shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
        dtype = np.dtype(data.draw(dtypes))
        memory_ = np.zeros(dtype.itemsize * (int(np.prod(shape)) + 2) + 128, np.uint8)
        start = -memory_.ctypes.data % 64 + data.draw(st.sampled_from([0, 1, 4, 8, 16, 32, 64]))
        if dtype.hasobject:
            a = np.zeros(shape, dtype)
        else:
            size = dtype.itemsize * int(np.prod(shape))
            a = memory_[start : start + size].view(dtype).reshape(shape)
        a = a[(*(data.draw(slices) for _ in shape), ...)]
        a = a.transpose(data.draw(st.permutations(range(a.ndim))))
        if data.draw(st.booleans()) and a.ndim < 4:
            a = np.broadcast_to(a, (2, *a.shape))
        if data.draw(st.booleans()):
            a.flags.writeable = False
        for target in targets:
            said = tenon.explain(a, target)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tenon.ReadOnlyWarning)
                ways = [lambda t, target=target: t.to(target)]
                deadly = target == "torch" and (dtype.char == "D" or min(a.strides, default=0) < 0)
                if not deadly and READ_WRONG_AT_TIMES not in said.reason:
                    ways.append(awkward.DOORS[target])
                done = [awkward.what_happens(a, target, way)[0] for way in ways]
            assert set(done) == {said.outcome}, (target, a.shape, a.strides, a.dtype, said, done)
            seen[target, said.outcome] = seen.get((target, said.outcome), 0) + 1

    agree()
    assert {("numpy", "shared"), ("numpy", "refused")} <= set(seen)
    if "torch" in targets:
        assert {("torch", "shared"), ("torch", "refused")} <= set(seen)
    if "jax" in targets:
        assert {("jax", "shared"), ("jax", "copied"), ("jax", "refused")} <= set(seen)
