# tests/python/test_threads.py: many threads on one capsule, one type, one producer.
from __future__ import annotations

import sys
import threading

import fakes
import tenon
import tenon_probe
from isolation import isolated
from producers import Producer, exactly_once, exchange_class, take

THREADS = 16
ROUNDS = 300


def together(work, threads=THREADS):
    """Runs `work(index)` on every thread, all starting at once; an exception of any is raised here."""
    barrier = threading.Barrier(threads)
    failures = []

    def run(index):
        try:
            barrier.wait()
            work(index)
        except BaseException as error:
            failures.append(error)

    pool = [threading.Thread(target=run, args=(index,)) for index in range(threads)]
    previous = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    finally:
        sys.setswitchinterval(previous)
    if failures:
        raise failures[0]


@isolated
def test_F20_many_threads_import_one_capsule_and_one_wins():
    structs = [fakes.Struct(shape=(2, 3), versioned=n % 2 == 0) for n in range(ROUNDS)]
    capsules = [struct.capsule() for struct in structs]
    winners = [0] * ROUNDS
    lock = threading.Lock()

    def race(index):
        for round_, capsule in enumerate(capsules):
            try:
                tensor = tenon.asdlpack(capsule) if index % 2 else tenon_probe.hold(capsule)
            except BufferError:
                continue
            with lock:
                winners[round_] += 1
            del tensor

    with exactly_once(*structs):
        together(race)
        capsules.clear()
    assert winners == [1] * ROUNDS


@isolated
def test_F20_F02_many_threads_and_a_producer_with_one_cached_capsule():
    struct = fakes.Struct(shape=(2, 3))
    capsule = struct.capsule()

    class Cached:
        def __dlpack__(self, **keywords):
            return capsule

    won = []

    def race(index):
        for _ in range(50):
            try:
                won.append(tenon.asdlpack(Cached()))
            except BufferError:
                pass

    with exactly_once(struct):
        together(race)
        assert len(won) == 1
        won.clear()
        del capsule


@isolated
def test_F21_X15_many_threads_import_many_types():
    classes = [type(f"Type{n}", (Producer,), {}) for n in range(40)]
    classes += [exchange_class() for _ in range(40)]
    producers = [cls() for cls in classes]

    def work(index):
        for n in range(400):
            producer = producers[(index * 7 + n) % len(producers)]
            assert take(producer).shape == (2, 3)
            assert tenon_probe.borrow(producer, read=False)["shape"] == (2, 3)

    with exactly_once(*(producer.struct for producer in producers), exports=None):
        together(work, 8)


@isolated
def test_F21_type_changes_while_others_import():
    class Changing(Producer):
        pass

    producer = Changing()
    table = fakes.Table().capsule()

    def work(index):
        for n in range(400):
            if index == 0:
                if n % 2:
                    Changing.__dlpack_c_exchange_api__ = table
                elif n:
                    del Changing.__dlpack_c_exchange_api__
                Changing.counter = n
            else:
                assert take(producer).shape == (2, 3)
                assert tenon_probe.borrow(producer, read=False)["shape"] == (2, 3)

    with exactly_once(producer.struct, exports=None):
        together(work, 6)


@isolated
def test_F16_releases_from_many_native_threads():
    struct = fakes.Struct(shape=(2, 3))

    def work(index):
        for _ in range(50):
            tenon_probe.hold(struct.capsule()).drop_on_thread()

    with exactly_once(struct, exports=8 * 50):
        together(work, 8)


@isolated
def test_F21_first_import_of_many_threads_at_once():
    """In a fresh process every cache is empty when the threads arrive together."""
    from isolation import run_isolated

    run_isolated("""
import test_threads, tenon, tenon_probe
from producers import Producer, take
def work(index):
    take(bytearray(8))
    take(Producer())
    tenon_probe.hold(Producer()).drop_on_thread()
    tenon_probe.borrow(bytearray(8))
test_threads.together(work)
""")
