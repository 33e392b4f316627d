# tests/python/test_lifetimes.py: when and where a producer is released: cycles, threads, pending exceptions, exit, fork, subinterpreters.
from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import weakref
from pathlib import Path

import fakes
import pytest
import tenon
import tenon_probe
from fake_buffer import Buffer
from isolation import LEAKS_BY_DESIGN, SANITIZED, isolated, run_isolated
from producers import Producer, exactly_once, exchange_class, take
from quick import rest_is_slow

# Every run is a process, and one under a sanitizer takes seconds to start and end.
EXIT_RUNS = int(os.environ.get("TENON_EXIT_RUNS", "4" if SANITIZED else "36"))
SUBINTERPRETER_CYCLES = int(os.environ.get("TENON_SUBINTERPRETER_CYCLES", "10" if SANITIZED else "50"))


def every_producer():
    """One fresh producer per rung that counts its releases: (object to import, who counts)."""
    struct = fakes.Struct(shape=(2, 3))
    legacy = fakes.Struct(shape=(2, 3), versioned=False)
    producer, exchanged, buffer = Producer(), exchange_class()(), Buffer(shape=(4,))
    return [(struct.capsule(), struct), (legacy.capsule(), legacy), (producer, producer.struct),
            (exchanged, exchanged.struct), (buffer, buffer)]


# --- who holds whom -------------------------------------------------------------------------------


@isolated
def test_F62_producer_may_die_before_its_tensor():
    producer = Producer()
    struct, seen = producer.struct, weakref.ref(producer)
    with exactly_once(struct):
        tensor = tenon.asdlpack(producer)
        del producer
        gc.collect()
        assert seen() is None and struct.releases == 0, "the struct is what keeps the memory, not the object"
        assert tenon_probe.borrow(tensor)["sum"] == 15
        del tensor


@isolated
def test_F59_object_that_holds_its_own_tensor_through_a_struct():
    """The tensor owns the struct, the struct its memory: no cycle, though the producer holds the tensor."""
    producer = Producer()
    struct, seen = producer.struct, weakref.ref(producer)
    with exactly_once(struct):
        producer.tensor = tenon.asdlpack(producer)
        del producer
        gc.collect()
        assert seen() is None


@isolated
def test_F59_tensor_is_weakly_referencable_and_known_to_the_collector():
    tensor = tenon.asdlpack(bytearray(8))
    seen = weakref.ref(tensor)
    assert gc.is_tracked(tensor)
    assert any(isinstance(owner, bytearray) for owner in gc.get_referents(tensor))
    del tensor
    assert seen() is None


@isolated
def test_F60_deep_chain_of_re_exports():
    tensor = tenon.asdlpack(bytearray(8))
    for _ in range(300_000):
        tensor = tenon.asdlpack(tensor)
    del tensor


@isolated
def test_F60_deep_chain_dropped_by_cpp():
    tensor = tenon.asdlpack(bytearray(8))
    for _ in range(300_000):
        tensor = tenon.asdlpack(tensor)
    held = tenon_probe.hold(tensor)
    del tensor
    held.drop_on_thread()


@isolated
def test_F57_memory_is_the_producers_own():
    """What the producer writes is seen at once: nothing was copied."""
    memory = bytearray(4)
    tensor = tenon.asdlpack(memory)
    memory[:] = b"\x01\x02\x03\x04"
    assert tenon_probe.borrow(tensor)["sum"] == 10


# --- releases -------------------------------------------------------------------------------------


@isolated
def test_F15_F16_F17_release_on_a_native_thread_without_a_thread_state():
    for obj, counter in every_producer():
        with exactly_once(counter):
            held = tenon_probe.hold(obj)
            del obj
            held.drop_on_thread()


@isolated
def test_F08_release_with_an_exception_pending():
    for obj, counter in every_producer():
        with exactly_once(counter):  # asserts that the deleter saw none
            held = tenon_probe.hold(obj)
            del obj
            mine = ValueError("mine")
            assert held.drop_with_error(mine) is mine


@isolated
def test_F08_release_while_an_exception_travels():
    struct = fakes.Struct(shape=(2, 3))

    def fail():
        tensor = tenon.asdlpack(struct.capsule())
        raise KeyError(tensor.shape)

    with exactly_once(struct):
        try:
            fail()
        except KeyError as error:
            error.__traceback__ = None


@isolated
def test_F08_deleter_that_raises_does_not_replace_the_pending_exception():
    def fail():
        raise RuntimeError("in the deleter")

    reported = []
    previous, sys.unraisablehook = sys.unraisablehook, lambda report: reported.append(report.exc_type)
    try:
        struct = fakes.Struct(shape=(2, 3), on_release=fail)
        with exactly_once(struct):
            mine = ValueError("mine")
            assert tenon_probe.hold(struct.capsule()).drop_with_error(mine) is mine
    finally:
        sys.unraisablehook = previous


@isolated
def test_F22_deleter_that_imports_again():
    depth = 0

    def again():
        nonlocal depth
        depth += 1
        if depth < 50:
            inner = fakes.Struct(shape=(2,), on_release=again)
            structs.append(inner)
            take(inner.capsule())
            tenon_probe.borrow(inner.capsule())

    structs = [fakes.Struct(shape=(2, 3), on_release=again)]
    take(structs[0].capsule())
    assert depth >= 50
    gc.collect()
    assert all(struct.exports == struct.releases for struct in structs)


@isolated
def test_F22_deleter_that_imports_again_on_a_native_thread():
    struct = fakes.Struct(shape=(2, 3), on_release=lambda: take(Producer()))
    with exactly_once(struct):
        tenon_probe.hold(struct.capsule()).drop_on_thread()


@isolated
def test_F22_finalizer_of_the_owner_imports_again():
    done = []

    class Owner(bytearray):
        def __del__(self):
            done.append(take(bytearray(8)).size)

    owner = Owner(8)
    tensor = tenon.asdlpack(owner)
    del owner
    del tensor
    gc.collect()
    assert done == [8]


@isolated
def test_F22_finalizer_sees_the_tensor():
    """In a cycle the owner's finalizer may look at the tensor: the collector never empties it."""
    seen = []

    class Owner(bytearray):
        def __del__(self):
            seen.append(self.tensor.shape)

    owner = Owner(8)
    owner.tensor = tenon.asdlpack(owner)
    del owner
    gc.collect()
    assert seen == [(8,)]


@isolated
def test_F05_exception_between_import_and_use_of_a_borrow():
    for obj, counter in every_producer():
        def fail():
            raise ZeroDivisionError

        with exactly_once(counter, exports=None):
            with pytest.raises(ZeroDivisionError) as caught:
                tenon_probe.borrow(obj, during=fail, read=False)
            caught.value.__traceback__ = None
            del obj, caught


@isolated
def test_F05_request_that_is_not_met_releases_what_was_taken():
    for obj, counter in every_producer():
        with exactly_once(counter, exports=None):
            with pytest.raises(BufferError, match="axes") as caught:
                tenon_probe.borrow(obj, rank=7)
            caught.value.__traceback__ = None
            del obj, caught


# --- the end of the interpreter -------------------------------------------------------------------

RELEASE_AT_EXIT = """
import sys, threading
import fakes, tenon, tenon_probe
from fake_buffer import Buffer
from producers import Producer, exchange_class

delay, kind = int(sys.argv[1]), sys.argv[2]
def count():
    [i * i for i in range(2000)]  # Python code in the deleter: it needs the interpreter
for n in range(8):
    made = {
        "struct": lambda: fakes.Struct(shape=(2, 3), on_release=count).capsule(),
        "buffer": lambda: Buffer(shape=(4,), on_release=count),
        "object": lambda: bytearray(100),
        "exchange": lambda: exchange_class()(on_release=count),
    }[kind]()
    tenon_probe.hold(made).drop_later(delay + 150 * n)
    made = None
kept = tenon.asdlpack(bytearray(8))            # alive until the very end
kept_too = tenon_probe.hold(Producer())
threading.Thread(target=lambda: sum(range(10**5)), daemon=True).start()
"""


@pytest.mark.parametrize("kind", rest_is_slow(["struct", "buffer", "object", "exchange"], "struct"))
def test_F18_F19_release_from_a_native_thread_while_the_main_thread_exits(kind):
    for run in range(max(1, EXIT_RUNS // 4)):
        run_isolated(RELEASE_AT_EXIT, args=(run * 900, kind), env=LEAKS_BY_DESIGN)


def test_F18_release_after_the_interpreter_is_gone():
    """Native threads that outlive the interpreter: what they release leaks, and nothing happens."""
    run_isolated("""
import ctypes
import fakes, tenon_probe
from fake_buffer import Buffer
libc = ctypes.CDLL(None)
# The C runtime calls usleep(500000) after Py_Finalize; the threads wake up meanwhile.
libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
assert libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), 500_000, None) == 0
for n in range(4):
    tenon_probe.hold(fakes.Struct(shape=(2,)).capsule()).drop_later(300_000 + n)
    tenon_probe.hold(Buffer(shape=(4,))).drop_later(300_000 + n)
""", env=LEAKS_BY_DESIGN)


def test_F19_slow_deleter_does_not_hang_or_crash_the_exit():
    """A deleter that sleeps for longer than anybody waits."""
    run_isolated("""
import time
import fakes, tenon_probe
tenon_probe.hold(fakes.Struct(shape=(2,), on_release=lambda: time.sleep(4)).capsule()).drop_later(0)
time.sleep(0.05)
""", env=LEAKS_BY_DESIGN)


DAEMONS_AT_EXIT = """
import sys, threading, time
import tenon
source = tenon.asdlpack(bytearray(8))
class Waits:
    def __dlpack__(self, **keywords):
        time.sleep(0.0005)
        return source.__dlpack__(**keywords)
    def __dlpack_device__(self):
        return (1, 0)
class Computes(Waits):
    def __dlpack__(self, **keywords):
        for _ in range(3000):
            pass
        return source.__dlpack__(**keywords)
class DiesSlowly:
    __array_interface__ = dict(version=3, shape=(8,), typestr="|u1", data=(source.data_ptr, False))
    def __del__(self):
        time.sleep(0.0005)
make = {"waits": Waits, "computes": Computes, "dies slowly": DiesSlowly}[sys.argv[1]]
def work():
    while True:
        tenon.asdlpack(make())
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.parametrize("kind", ["waits", "computes", "dies slowly"])
def test_F19_daemon_threads_inside_an_import_when_the_interpreter_goes(kind):
    """CPython before 3.14 ends such a thread by unwinding its stack, noexcept frames and all."""
    for _ in range(max(1, EXIT_RUNS // 8)):
        run_isolated(DAEMONS_AT_EXIT, args=(kind,), env=LEAKS_BY_DESIGN)


def test_F19_exit_with_tensors_alive_everywhere():
    run_isolated("""
import builtins, sys, threading
import fakes, tenon, tenon_probe
from producers import Producer
builtins.kept = [tenon.asdlpack(Producer()) for _ in range(10)]
sys.kept = tenon_probe.hold(Producer())
threading.main_thread().kept = tenon.asdlpack(bytearray(8))
class AtTheEnd:
    def __del__(self):
        try:
            tenon.asdlpack(bytearray(8))
        except BaseException:
            pass
sys.at_the_end = AtTheEnd()
""")


def test_F23_fork_then_release_in_the_child():
    run_isolated("""
import os, sys, threading
import fakes, tenon, tenon_probe
from fake_buffer import Buffer
from producers import exactly_once, take
struct, buffer = fakes.Struct(shape=(2, 3)), Buffer(shape=(4,))
with exactly_once(struct, buffer):
    held = [tenon.asdlpack(struct.capsule()), tenon_probe.hold(buffer)]
    child = os.fork()
    if child == 0:
        try:
            held[1].drop_on_thread()
            held.clear()
            assert struct.releases == 1 and buffer.releases == 1
            take(bytearray(8))
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)  # through the whole of finalization
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    assert struct.releases == 0, "the child's release is the child's"
    held.clear()
""")


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's runtime does not survive a fork with threads")
@pytest.mark.slow
def test_F23_fork_while_other_threads_import():
    run_isolated("""
import os, select, signal, sys, threading
import tenon, tenon_probe
from producers import Producer, take
stop = threading.Event()
def work():
    while not stop.is_set():
        take(Producer())
        tenon_probe.hold(Producer()).drop_on_thread()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
done = stuck = 0
while done < 20:
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(say, b"!")
        take(Producer())
        tenon_probe.hold(Producer()).drop_on_thread()
        os._exit(0)
    # CPython's own part of the fork can hang, before any code of ours: in _PyThreadState_DeleteExcept, for a lock that
    # a thread held which was just being attached. Such a child is given up.
    started = bool(select.select([ready], [], [], 60)[0])
    if not started:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ready), os.close(say)
    if started:
        assert os.waitstatus_to_exitcode(status) == 0, status
        done += 1
    else:
        stuck += 1
        assert stuck < 4, "the interpreter itself does not survive a fork here"
stop.set()
[t.join() for t in threads]
""")


# --- subinterpreters ------------------------------------------------------------------------------

INTERPRETERS = {(3, 10): "_xxsubinterpreters", (3, 11): "_xxsubinterpreters", (3, 12): "_xxsubinterpreters"}.get(
    sys.version_info[:2], "_interpreters")


def test_F24_X15_subinterpreters():
    pytest.importorskip(INTERPRETERS)
    run_isolated(f"""
import sys
import {INTERPRETERS} as interpreters
import tenon
code = '''
import sys
sys.path[:] = {sys.path!r}
import tenon._core
class Producer:
    def __init__(self, inner): self.inner = inner
    def __dlpack__(self, **keywords): return self.inner.__dlpack__(**keywords)
    def __dlpack_device__(self): return (1, 0)
memory = bytearray(64)
tensor = tenon._core.asdlpack(memory)
again = tenon._core.asdlpack(Producer(tensor))
assert again.data_ptr == tensor.data_ptr
try:
    tenon._core.asdlpack(7)
except TypeError:
    pass
else:
    raise AssertionError
class Bad:
    __array_interface__ = dict(version=3, shape=(-1,), typestr="|u1", data=(4096, False))
try:
    tenon._core.asdlpack(Bad())
except ValueError as error:
    assert type(error) is tenon._core.MalformedError
else:
    raise AssertionError
kept = [tensor, again]       # alive when the interpreter ends
'''
for cycle in range({SUBINTERPRETER_CYCLES}):
    interpreter = interpreters.create()
    failure = interpreters.run_string(interpreter, code)
    assert failure is None, failure
    tenon.asdlpack(bytearray(8))
    interpreters.destroy(interpreter)
    tenon.asdlpack(bytearray(8))
""")


# --- several modules ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", rest_is_slow(["compiled once", "in the headers"], "compiled once"))
def test_modules_share_no_state_however_they_are_built(mode, tmp_path):
    """Linkers make one of inline variables that have the same name, unless they are hidden: also of two versions of
    Tenon, which may have tables of different lengths. Nor does a module offer its engine to others."""
    compiler, nm = shutil.which("c++"), shutil.which("nm")
    if sys.platform != "linux" or compiler is None or nm is None:
        pytest.skip("needs a compiler and nm")
    source, made = tmp_path / "module.cpp", tmp_path / "module.so"
    source.write_text("""
#include <tenon/py.hpp>
PyObject* there_and_back(PyObject* obj) {
    auto t = tenon::py::from_python(obj);
    return t ? tenon::py::to_python(std::move(*t), obj) : nullptr;
}
""")
    root = Path(__file__).parents[2]
    engine = [root / "src" / "tenon.cpp"] if mode == "compiled once" else ["-DTENON_HEADER_ONLY"]
    folders = [f"-I{root / 'include'}", f"-I{sysconfig.get_paths()['include']}"]
    flags = ["-std=c++20", "-O0", "-shared", "-fPIC", *folders]  # and nothing about what others see
    subprocess.run([compiler, *flags, "-o", made, source, *engine], check=True)

    def symbols(*options):
        return subprocess.run([nm, "-C", *options, made], check=True, capture_output=True, text=True).stdout.splitlines()

    assert any(" T there_and_back" in line for line in symbols())
    assert any(" t tenon::py::from_python(" in line for line in symbols()), "the engine is in it"
    shared = {line.split("::")[-1] for line in symbols() if re.search(r" [uV] (guard variable for )?tenon::", line)}
    shared = {name for name in shared if not name.startswith("dtype_of<")}
    assert shared <= {"nothing", "seen", "signature", "digits"}, "these say the same in every module"
    # What is left are inline functions, which have no state, and which nobody outside asks for.
    offered = [line for line in symbols("-D", "--defined-only") if re.match(r"\w+ [^Wu] tenon::", line)]
    assert not offered
