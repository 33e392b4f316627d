# tests/python/test_contexts.py: what stands behind the exception of a producer that is asked twice.
from __future__ import annotations

import pytest
import tenon
from isolation import isolated


def contexts(error) -> list:
    """The exception and those behind it."""
    out, seen = [], set()
    while error is not None and id(error) not in seen:
        out.append(error)
        seen.add(id(error))
        error = error.__context__
    return out


class TwiceRefused:
    """An old producer, by its answer to the first call; what it raises at the second is `second()`."""

    def __init__(self, second):
        self.calls, self.second, self.first = 0, second, TypeError("no such keyword")

    def __dlpack__(self, **keywords):
        self.calls += 1
        raise self.first if self.calls == 1 else self.second(self)


def raised_by(producer) -> list:
    with pytest.raises(ValueError, match="mine") as caught:
        tenon.asdlpack(producer)
    return contexts(caught.value)


@isolated
def test_own_context_of_a_producer_stays():
    inner = KeyError("what was wrong")

    def second(producer):
        mine = ValueError("mine")
        mine.__context__ = inner
        return mine

    producer = TwiceRefused(second)
    seen = raised_by(producer)
    assert seen[1:] == [inner, producer.first]


@isolated
def test_context_of_a_producer_by_raising():
    class Raises:
        calls = 0

        def __dlpack__(self, **keywords):
            self.calls += 1
            if self.calls == 1:
                raise TypeError("no such keyword")
            try:
                {}["missing"]
            except KeyError:
                raise ValueError("mine")  # noqa: B904

    assert [type(e) for e in raised_by(Raises())] == [ValueError, KeyError, TypeError]


@isolated
def test_context_that_is_there_already_is_not_put_there_again():
    def second(producer):
        mine = ValueError("mine")
        mine.__context__ = producer.first
        return mine

    producer = TwiceRefused(second)
    assert raised_by(producer)[1:] == [producer.first]


@isolated
def test_contexts_never_become_a_circle():
    def around(producer):  # the first has the second behind it
        mine = ValueError("mine")
        producer.first.__context__ = mine
        return mine

    assert len(raised_by(TwiceRefused(around))) == 1

    def circle(producer):  # theirs is one already, and is left alone
        mine, other = ValueError("mine"), KeyError("other")
        mine.__context__, other.__context__ = other, mine
        return mine

    assert len(raised_by(TwiceRefused(circle))) == 2

    def endless(producer):
        mine = error = ValueError("mine")
        for _ in range(5000):
            error.__context__ = KeyError()
            error = error.__context__
        return mine

    producer = TwiceRefused(endless)
    assert producer.first not in raised_by(producer)
