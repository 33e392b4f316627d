# python/tenon/_explain.py: `tenon.explain`: whether a library takes an object without a copy, and if not, why.
"""Asking before handing over."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from tenon._core import Tensor, asdlpack
from tenon._libraries import Library, library_of
from tenon._limits import ASKING, COPY, Limit
from tenon._memory import COPIED
from tenon._nesting import one_level
from tenon._remedies import message_of, name_of, remedy_for

_Capsule = type(Tensor.__dlpack_c_exchange_api__)


class Explanation(NamedTuple):
    """What happens when an object is handed to a library. True if its memory is shared."""

    #: The library.
    target: str
    #: "shared": the same memory; "copied": the library takes it, and makes a copy; "refused": it raises.
    outcome: str
    #: Why it is not shared; empty if it is.
    reason: str = ""
    #: What to write instead of `obj`, or what else to do; empty if it is shared.
    fix: str = ""
    #: What is worth knowing although it is shared.
    notes: tuple[str, ...] = ()

    @property
    def zero_copy(self) -> bool:
        """Whether the library looks at the very same memory. An empty tensor has none, and nothing is copied."""
        return self.outcome == "shared"

    def __bool__(self) -> bool:
        return self.zero_copy

    def __str__(self) -> str:
        if self.zero_copy:
            return "\n".join([f"Shared with {self.target}.", *(f"Note: {note}." for note in self.notes)])
        return f"{self.outcome.capitalize()} on the way to {self.target}: {self.reason}.\nWhat helps: {self.fix}"


def explain(obj: Any, target: str | ModuleType) -> Explanation:
    """Whether a library takes an object through tenon without a copy; if not, the reason and what to change.

    obj: anything `asdlpack` takes, or might take; not a DLPack capsule, which can be looked at only once
    target: the name of a library, or its module, as in ``Tensor.to``

    Nothing is handed over, and what is merely refused raises nothing. The library is imported only to find out
    whether it sees a GPU, and only for memory that is on one. An array that is still being computed, as JAX's may be,
    is waited for.

    >>> import array, tenon
    >>> numbers = array.array("f", range(6))
    >>> bool(tenon.explain(numbers, "torch"))
    True
    >>> print(tenon.explain(memoryview(numbers)[::-1], "torch"))
    Refused on the way to torch: its strides (-1,) go backwards, and torch takes no negative ones.
    What helps: tenon.asdlpack(obj, copy=True)
    """
    library = library_of(target)
    if type(obj) is _Capsule:
        raise TypeError(
            "tenon: a DLPack capsule can be looked at only once, by whom it is for; pass the array it was made from"
        )
    with one_level("explanations"):
        return _explain(obj, library)


def _explain(obj: Any, library: Library) -> Explanation:
    try:
        t = asdlpack(obj)
    except MemoryError:
        raise
    except Exception as e:
        reason, fix = remedy_for(obj, e)
        return Explanation(library.name, "refused", reason, fix)
    if type(obj) is not Tensor and (t.flags & COPIED or _is_made_anew(obj, t)):
        return Explanation(
            library.name, "copied", "its own library makes a copy of it when it hands it out", f"keep that copy: {COPY}"
        )
    return explain_tensor(t, library, obj)


def _is_made_anew(obj: Any, t: Tensor) -> bool:
    """Whether the object gives other memory when it is asked again: then what it gave is a copy, whatever it says."""
    try:
        return bool(t.size) and asdlpack(obj).data_ptr != t.data_ptr
    except MemoryError:
        raise
    except Exception:  # it can be asked once only, and is believed
        return False


def explain_tensor(t: Tensor, library: Library, obj: object) -> Explanation:
    """The second half of it: what becomes of the Tensor of `obj`."""
    limit = library.limit_on(t)
    if limit is not None:
        return Explanation(library.name, limit.outcome, limit.reason_for(t), limit.fix(obj, t))
    notes = [text for applies, text in library.notes if applies(t)]
    if t.readonly and library.forgets(t):
        notes.insert(0, f"{library.name} has no read-only arrays, and will let this memory be written to")
    if not library.is_installed():
        notes.append(f"{library.name} is not installed here")
    return Explanation(library.name, "shared", notes=tuple(notes))


def why_refused(t: Tensor, library: Library, raised: Exception | None) -> str:
    """What `Tensor.to` says when a library did not take a tensor."""
    limit = library.limit_on(t)
    if limit is not None and limit.outcome == "refused":
        why = f"{limit.reason_for(t)}; {_advice(limit, t)}"
    else:
        why = f"{name_of(type(raised))}: {message_of(raised)[0]}"
    return f"tenon: {library.name} does not take this tensor: {why}"


def why_copied(t: Tensor, library: Library) -> str:
    """What `Tensor.to` adds when a library made a copy that was forbidden: nothing, if nothing is known."""
    limit = library.limit_on(t)
    return "" if limit is None else f": {limit.reason_for(t)}; {_advice(limit, t)}"


def _advice(limit: Limit, t: Tensor) -> str:
    """What helps, for somebody who has the Tensor in hand: `to` takes what `asdlpack` does."""
    fix = limit.fix(t, t)
    return f"pass {ASKING[fix]}" if fix in ASKING else fix.replace("obj", "t")
