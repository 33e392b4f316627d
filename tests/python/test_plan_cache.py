# tests/python/test_plan_cache.py: a type is looked at once: not again for another type's sake, and not by every thread.
from __future__ import annotations

import threading

import tenon_probe
from isolation import LIMIT, isolated
from producers import Ancient, Producer

NOWHERE, ELSEWHERE, HERE = 0, 1, 2  # as tenon_probe.planned says


def borrow(obj):
    return tenon_probe.borrow(obj, read=False)


def in_a_thread(function):
    """What `function` returns on a thread of its own, which has no plan yet."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    (answer,) = answers
    return answer


def of_one_place(count: int) -> list[Producer]:
    """Objects of as many types, which a thread looks for in the same place."""
    made: dict[int, list[Producer]] = {}
    while True:
        obj = type("Crowded", (Producer,), {})()
        place = made.setdefault(tenon_probe.plan_home(obj), [])
        place.append(obj)
        if len(place) == count:
            return place


@isolated
def test_F97_types_of_one_place_do_not_evict_each_other():
    objects = of_one_place(4)
    for _ in range(3):
        for obj in objects:
            borrow(obj)
        assert [tenon_probe.planned(obj) for obj in objects] == [HERE] * 4


@isolated
def test_F97_more_types_than_a_thread_has_places_for():
    """What a thread lets go of it finds again, without another look at the type."""
    objects = of_one_place(6) + [type("Many", (Producer,), {})() for _ in range(200)]
    for _ in range(2):
        for n, obj in enumerate(objects):
            assert borrow(obj)["shape"] == (2, 3)
            assert tenon_probe.planned(obj) == HERE, n
    assert {tenon_probe.planned(obj) for obj in objects} == {ELSEWHERE, HERE}


@isolated
def test_F97_threads_use_what_another_has_found():
    class Shared(Producer):
        pass

    producer = Shared()

    def look():
        before = tenon_probe.planned(producer)
        borrow(producer)
        return before, tenon_probe.planned(producer)

    assert look() == (NOWHERE, HERE)
    for _ in range(3):
        assert in_a_thread(look) == (ELSEWHERE, HERE)


@isolated
def test_F97_threads_use_what_another_has_learnt():
    """How `__dlpack__` wants to be called is known from trying."""
    class Old(Ancient):
        pass

    producer = Old()
    in_a_thread(lambda: borrow(producer))
    assert len(producer.calls) == 2  # with every keyword, then with those it knows
    in_a_thread(lambda: borrow(producer))
    assert len(producer.calls) == 3


@isolated
def test_F97_a_changed_type_is_new_to_every_thread():
    class Changes(Producer):
        pass

    producer = Changes()
    ready, change, done = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def other():
        borrow(producer)
        ready.set()
        change.wait(LIMIT)
        seen.append(tenon_probe.planned(producer))
        borrow(producer)
        seen.append(tenon_probe.planned(producer))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert ready.wait(LIMIT)
    assert tenon_probe.planned(producer) == ELSEWHERE
    calls = []
    Changes.__dlpack__ = lambda self, **keywords: calls.append(1) or Producer.__dlpack__(self, **keywords)
    assert tenon_probe.planned(producer) == NOWHERE
    change.set()
    assert done.wait(LIMIT)
    thread.join()
    assert seen == [NOWHERE, HERE] and calls == [1]
    assert tenon_probe.planned(producer) == ELSEWHERE
    borrow(producer)
    assert calls == [1, 1]


@isolated
def test_F97_more_types_than_anybody_keeps():
    """The plans of types that are gone do not pile up, and those of new ones are right."""
    for n in range(1, 1200):
        obj = type("Brief", (Producer,), {})(shape=(n,))
        assert borrow(obj)["shape"] == (n,)
        assert tenon_probe.planned(obj) == HERE
