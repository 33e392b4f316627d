# python/tenon/tests/pair.py: pairs of a producer and a consumer, in a process of their own: what each of their cells comes to.
"""``python -m tenon.tests.pair REPORT FIRST numpy:torch [numpy:jax ...]`` tries the pairs' cells, those of the first pair
from number FIRST on, and writes what it sees.

The report has a line of JSON before each cell and one after it, and one after each pair: when the process dies, the last
line says where.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

import tenon
from tenon.tests.cells import CELLS, LAYOUTS, Layout, flags_of, itemsize, same_strides
from tenon.tests.consumers import CONSUMERS, Consumer, Look
from tenon.tests.producers import PRODUCERS, CannotMake, Made, Producer

SHARED, COPIED, REFUSED, CANNOT_MAKE = "shared", "copied", "refused", "cannot make"
#: What must not be, unless the consumer is known for it: another type or other values than lie in the memory, and
#: the end of the process.
MISREAD, CRASHED = "misread", "crashed"


@dataclass
class Observed:
    """What a cell came to."""

    dtype: str
    layout: str
    outcome: str
    #: Who refused: "tenon" when the array did not become a Tensor, otherwise the consumer.
    by: str = ""
    #: Names of the exception's classes, its own first.
    raises: list[str] = field(default_factory=list)
    message: str = ""
    #: Whether the Tensor is read-only.
    readonly: bool | None = None
    #: What `Tensor.to` came to, "" where there is none.
    to: str = ""
    #: What contradicts what the producer says of its memory, in sentences.
    faults: list[str] = field(default_factory=list)


def observe(producer: Producer, consumer: Consumer, dtype: str, layout: Layout) -> Observed:
    """One cell: every object the producer can make for it."""
    try:
        made = producer.make(dtype, layout)
    except CannotMake as e:
        return Observed(dtype, layout.name, CANNOT_MAKE, message=str(e))
    first, *others = [_try(one, consumer, dtype, layout) for one in made]
    for one, other in zip(made[1:], others, strict=True):
        first.faults += other.faults
        if (other.outcome, other.raises, other.readonly, other.to) != (
            first.outcome, first.raises, first.readonly, first.to,
        ):  # fmt: skip
            first.faults.append(f"{made[0].kind} and {one.kind} differ: {first} and {other}")
    return first


def _try(made: Made, consumer: Consumer, dtype: str, layout: Layout) -> Observed:
    seen = Observed(dtype, layout.name, REFUSED, by="tenon")
    try:
        t = tenon.asdlpack(made.obj)
    except Exception as e:
        return _refuse(seen, e)
    seen.readonly = t.readonly
    faults = _wrong_tensor(t, made, dtype, layout) + _wrong_exports(t)
    seen.by = consumer.name
    try:
        view = consumer.take(t)
    except Exception as e:
        _refuse(seen, e)
    else:
        look = consumer.look(view)
        seen.by, seen.outcome = "", _outcome(t, look, dtype, layout)
        if seen.outcome == MISREAD:
            right = layout.data(dtype)
            seen.message = f"it reads {look.dtype} {look.data.hex(' ')}, but there is {dtype} {right.hex(' ')}"
        faults += _wrong_look(t, look, layout)
    if consumer.target is not None:
        seen.to, more = _by_to(t, consumer, dtype, layout)
        faults += more
    seen.faults = [f"{made.kind}: {fault}" for fault in faults]
    return seen


def _refuse(seen: Observed, e: Exception) -> Observed:
    seen.raises = [c.__name__ for c in type(e).__mro__ if c is not object]
    seen.message = str(e)[:600]
    return seen


def _outcome(t: tenon.Tensor, look: Look, dtype: str, layout: Layout) -> str:
    if look.dtype != dtype or look.data != layout.data(dtype):
        return MISREAD
    return SHARED if t.size == 0 or look.address == t.data_ptr else COPIED


def _by_to(t: tenon.Tensor, consumer: Consumer, dtype: str, layout: Layout) -> tuple[str, list[str]]:
    """What the method `to` makes of it."""
    assert consumer.target is not None
    try:
        view = t.to(consumer.target())
    except Exception:
        return REFUSED, []
    look = consumer.look(view)
    return _outcome(t, look, dtype, layout), [f"to(): {fault}" for fault in _wrong_look(t, look, layout)]


# --- what can be wrong --------------------------------------------------------------------------------


def _unlike(pairs: dict[str, tuple[Any, Any]]) -> list[str]:
    return [f"{what} is {got!r}, not {wanted!r}" for what, (got, wanted) in pairs.items() if got != wanted]


def _wrong_tensor(t: tenon.Tensor, made: Made, dtype: str, layout: Layout) -> list[str]:
    """Where the Tensor says something else of the memory than its producer."""
    size = itemsize(dtype)
    count = 1
    for extent in layout.shape:
        count *= extent
    faults = _unlike({
        "the Tensor's shape": (t.shape, layout.shape),
        "the Tensor's dtype": (str(t.dtype), dtype),
        "the Tensor's device": (str(t.device), "cpu"),
        "the Tensor's nbytes": (t.nbytes, count * size),
        "the Tensor's readonly": (t.readonly, made.readonly),
    })  # fmt: skip
    if not same_strides(layout.shape, t.strides, layout.strides):
        faults.append(f"the Tensor's strides are {t.strides}, not {layout.strides}")
    if t.size and t.data_ptr != made.address:
        faults.append(f"the Tensor's data_ptr is {t.data_ptr:#x}, not {made.address:#x}")
    return faults


def _wrong_exports(t: tenon.Tensor) -> list[str]:
    """Read-only memory says so by every protocol, and writable memory does not."""
    faults = _unlike({"the capsule's flag": (bool(flags_of(t.__dlpack__(max_version=(1, 3))) & 1), t.readonly)})
    try:
        view = memoryview(t)
    except BufferError:
        view = None  # a type the buffer protocol has no letter for
    if view is not None:
        faults += _unlike({"memoryview(t).readonly": (view.readonly, t.readonly)})
    if importlib.util.find_spec("numpy") is not None and (str(t.dtype) != "bfloat16" or _has("ml_dtypes")):
        array, other = importlib.import_module("numpy").asarray(t), t.__array__()
        faults += _unlike({
            "np.asarray(t).flags.writeable": (array.flags.writeable, not t.readonly),
            "t.__array__().flags.writeable": (other.flags.writeable, not t.readonly),
        })  # fmt: skip
    return faults


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _wrong_look(t: tenon.Tensor, look: Look, layout: Layout) -> list[str]:
    """Where the consumer sees something else than lies in the memory."""
    faults = _unlike({"the consumer's shape": (tuple(look.shape), layout.shape)})
    copied = t.size and look.address != t.data_ptr
    if look.strides is not None and not copied and not same_strides(layout.shape, look.strides, layout.strides):
        faults.append(f"the consumer's strides are {look.strides}, not {layout.strides}")
    if look.writable and t.readonly and not copied and t.size:
        faults.append("the consumer lets read-only memory be written to")
    return faults


# --- the process --------------------------------------------------------------------------------------


#: Large libraries that others import only because they are there. They are kept out of a process that does not try them,
#: which makes it a third as long.
_UNWANTED = (
    "jax", "keras", "paddle", "pandas", "polars", "pyarrow", "scipy", "tensorboard", "tensorflow", "torch", "tvm_ffi",
)  # fmt: skip
_NEEDED = {"jax": {"scipy"}, "pyarrow": {"pandas"}, "pandas": {"pyarrow"}}


def _prepare(pairs: list[list[str]]) -> None:
    """Imports the pairs' libraries, and none besides. Paddle goes first: it crashes where TensorFlow is before it."""
    modules = {m for producer, consumer in pairs for m in (PRODUCERS[producer].module, CONSUMERS[consumer].module)}
    wanted = {m for m in modules if m is not None}
    for module in set(_UNWANTED).difference(wanted, *(_NEEDED.get(m, set()) for m in wanted)):
        sys.modules[module] = None  # type: ignore[assignment]  # what Python takes for "there is none"
    for module in sorted(wanted, key=lambda m: (m != "paddle", m)):
        importlib.import_module(module)


def _planted(pair: str, dtype: str, layout: str) -> None:
    """Faults on request, for those who test the tests: TENON_TESTS_PLANT="numpy-memoryview-int8-1-d=abort"."""
    where, _, what = os.environ.get("TENON_TESTS_PLANT", "").partition("=")
    if where == f"{pair}-{dtype}-{layout}":
        if what == "abort":
            os.abort()
        if what == "hang":
            time.sleep(3600)


def main() -> None:
    """Tries the cells of the pairs named on the command line."""
    report, first, *names = sys.argv[1:]
    pairs = [name.split(":") for name in names]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    _prepare(pairs)
    with open(report, "w", buffering=1) as out:
        print(json.dumps({"ready": True}), file=out)
        for producer, consumer in pairs:
            started = time.monotonic()
            for number, (dtype, layout) in enumerate(CELLS):
                if [producer, consumer] == pairs[0] and number < int(first):
                    continue
                print(json.dumps({"cell": number}), file=out)
                _planted(f"{producer}-{consumer}", dtype, layout)
                seen = observe(PRODUCERS[producer], CONSUMERS[consumer], dtype, LAYOUTS[layout])
                print(json.dumps(asdict(seen)), file=out)
            print(json.dumps({"seconds": time.monotonic() - started}), file=out)


if __name__ == "__main__":
    main()
