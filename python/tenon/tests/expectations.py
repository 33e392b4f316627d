# python/tenon/tests/expectations.py: the documented facts of every library, as data: what each cell of the matrix must come to, and why.
"""Facts. A cell that no fact speaks of shares its memory; of several that do, the first one counts."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from dataclasses import dataclass, replace

from tenon.tests.pair import CANNOT_MAKE, COPIED, CRASHED, MISREAD, REFUSED, SHARED, Observed

Names = tuple[str, ...]


@dataclass(frozen=True)
class Fact:
    """Something a library does, or does not. Every condition that is given must hold."""

    because: str
    outcome: str
    producer: Names = ()
    consumer: Names = ()
    dtype: Names = ()
    layout: Names = ()
    readonly: bool | None = None
    #: Whether its own library hands it out as a legacy struct, read-only or not.
    legacy: bool | None = None
    #: A library and the first version this is no longer true of; "python" is the interpreter.
    before: tuple[str, Names] | None = None
    #: A module without which it is true.
    without: str = ""
    #: Of a refusal: the class of the exception, or a base of it, and words of its message.
    raises: str = ""
    says: str = ""
    #: What `Tensor.to` comes to, where that is something else.
    to: str = ""

    def holds(
        self, producer: str, consumer: str, dtype: str, layout: str, readonly: bool, here: Here, legacy: bool = False
    ) -> bool:
        """Whether this is about the cell."""
        return (
            (not self.producer or producer in self.producer)
            and (not self.consumer or consumer in self.consumer)
            and (not self.dtype or dtype in self.dtype)
            and (not self.layout or layout in self.layout)
            and (self.readonly is None or readonly is self.readonly)
            and (self.legacy is None or legacy is self.legacy)
            and (self.before is None or here.is_before(*self.before))
            and (not self.without or not here.has(self.without))
        )


class Here:
    """What is installed."""

    def __init__(self) -> None:
        self.versions: dict[str, tuple[int, ...] | None] = {"python": sys.version_info[:2]}

    def version(self, distribution: str) -> tuple[int, ...] | None:
        """The version as numbers, None for what is not installed."""
        if distribution not in self.versions:
            try:
                found = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                self.versions[distribution] = None
            else:
                self.versions[distribution] = tuple(int(n) for n in re.findall(r"\d+", found)[:3])
        return self.versions[distribution]

    def has(self, distribution: str) -> bool:
        """Whether it is installed."""
        return self.version(distribution) is not None

    def is_before(self, distribution: str, version: Names) -> bool:
        """Whether an older version is installed."""
        found = self.version(distribution)
        return found is not None and found < tuple(map(int, version))


COMPLEX = ("complex64", "complex128")
SEVERAL_AXES = ("0-d", "3-d", "transposed", "broadcast")
STRIDED = ("sliced", "reversed", "transposed", "broadcast")

#: Which memory must not be written to, beside the layout of that name.
READ_ONLY = (
    Fact("JAX's arrays are immutable", "", producer=("jax",)),
    Fact("TensorFlow's tensors are immutable", "", producer=("tensorflow",)),
    Fact("Arrow's memory is immutable", "", producer=("pandas", "polars")),
    Fact(
        "NumPy's broadcast_to gives a read-only view, and PyArrow keeps it so", "",
        producer=("numpy", "array_api_strict", "pyarrow"), layout=("broadcast",),
    ),
    Fact(
        "PyArrow before 26 has legacy capsules, which cannot say that memory is writable", "",
        producer=("pyarrow",), before=("pyarrow", ("26",)),
    ),
    Fact("only this layout is read-only by our doing", "", layout=("read-only",)),
)  # fmt: skip

#: Which memory its own library hands out as a legacy struct, read-only or not.
LEGACY = (
    Fact("JAX has no other structs", "", producer=("jax",)),
    Fact("TensorFlow has no other structs", "", producer=("tensorflow",)),
    Fact("PyArrow's arrays leave so when no version is asked for", "", producer=("pyarrow",), layout=("read-only",)),
    Fact(
        "PyArrow before 26 has no other structs; those of frozen memory have no address, and its buffer is taken", "",
        producer=("pyarrow",), before=("pyarrow", ("26",)),
        layout=("0-d", "1-d", "3-d", "empty", "sliced", "reversed", "transposed"),
    ),
)  # fmt: skip

#: What a producer has no array for.
CANNOT = (
    Fact("NumPy has bfloat16 by ml_dtypes", CANNOT_MAKE, producer=("numpy",), dtype=("bfloat16",), without="ml_dtypes"),
    Fact("PyTorch has no negative strides", CANNOT_MAKE, producer=("torch",), layout=("reversed",)),
    Fact("PyTorch has no read-only tensors", CANNOT_MAKE, producer=("torch",), layout=("read-only",)),
    Fact("JAX's arrays are packed: what would be a view is a copy", CANNOT_MAKE, producer=("jax",), layout=STRIDED),
    Fact("TensorFlow's tensors are packed", CANNOT_MAKE, producer=("tensorflow",), layout=STRIDED),
    Fact("Paddle's uint16 is its bfloat16", CANNOT_MAKE, producer=("paddle",), dtype=("uint16",)),
    Fact("Paddle makes no tensors of uint32 and uint64", CANNOT_MAKE, producer=("paddle",), dtype=("uint32", "uint64")),
    Fact("Paddle's broadcast_to copies", CANNOT_MAKE, producer=("paddle",), layout=("broadcast",)),
    Fact("Paddle has no read-only tensors", CANNOT_MAKE, producer=("paddle",), layout=("read-only",)),
    Fact(
        "PyArrow has no complex numbers and no bfloat16", CANNOT_MAKE,
        producer=("pyarrow",), dtype=(*COMPLEX, "bfloat16"),
    ),
    Fact("PyArrow's Tensor has no negative strides", CANNOT_MAKE, producer=("pyarrow",), layout=("reversed",)),
    Fact(
        "PyArrow's Tensor makes uint8 of bool, and an Array is read-only", CANNOT_MAKE,
        producer=("pyarrow",), dtype=("bool",),
        layout=("0-d", "1-d", "3-d", "empty", "sliced", "transposed", "broadcast"),
    ),
    Fact("tvm-ffi has no read-only tensors", CANNOT_MAKE, producer=("tvm_ffi",), layout=("read-only",)),
    Fact(
        "the array API standard has neither float16 nor bfloat16", CANNOT_MAKE,
        producer=("array_api_strict",), dtype=("float16", "bfloat16"),
    ),
    Fact("a Series has one axis", CANNOT_MAKE, producer=("pandas", "polars"), layout=SEVERAL_AXES),
    Fact(
        "pandas hands out what has a step as a packed copy, and only what Arrow has a type for", CANNOT_MAKE,
        producer=("pandas",), layout=("sliced", "reversed"),
    ),
    Fact(
        "pandas before 3 shows its memory as writable", CANNOT_MAKE,
        producer=("pandas",), layout=("read-only",), before=("pandas", ("3",)),
    ),
    Fact(
        "pandas has bfloat16 by ml_dtypes", CANNOT_MAKE, producer=("pandas",), dtype=("bfloat16",), without="ml_dtypes"
    ),
    Fact("Polars' slices with a step are copies", CANNOT_MAKE, producer=("polars",), layout=("sliced", "reversed")),
    Fact(
        "Polars has no complex numbers and no bfloat16", CANNOT_MAKE, producer=("polars",), dtype=(*COMPLEX, "bfloat16")
    ),
    Fact(
        "no object of the standard library can change its axes", CANNOT_MAKE,
        producer=("python",), layout=("transposed", "broadcast"),
    ),
    Fact("the standard library has no bfloat16", CANNOT_MAKE, producer=("python",), dtype=("bfloat16",)),
    Fact(
        "memoryview.cast knows float16 since Python 3.12", CANNOT_MAKE,
        producer=("python",), dtype=("float16",), before=("python", ("3", "12")),
    ),
    Fact(
        "ctypes has complex numbers since Python 3.14", CANNOT_MAKE,
        producer=("python",), dtype=COMPLEX, before=("python", ("3", "14")),
    ),
    Fact(
        "complex numbers of the standard library are ctypes': packed and writable", CANNOT_MAKE,
        producer=("python",), dtype=COMPLEX, layout=("sliced", "reversed", "read-only"),
    ),
    Fact(
        "type strings of the array interface have no letter for bfloat16", CANNOT_MAKE,
        producer=("interface3", "interface2"), dtype=("bfloat16",),
    ),
)  # fmt: skip

#: What does not become a Tensor.
NO_TENSOR = (
    Fact(
        "Arrow's booleans are single bits, which DLPack has no word for", REFUSED,
        producer=("pyarrow",), dtype=("bool",), raises="BufferError", says="packed into bits",
    ),
    Fact(
        "a Series of pandas speaks no protocol before pandas 3", REFUSED, producer=("pandas",),
        before=("pandas", ("3",)), raises="TypeError", says="speaks no tensor protocol",
    ),
    Fact(
        "a Series of pandas speaks Arrow with the help of PyArrow", REFUSED, producer=("pandas",), without="pyarrow",
        raises="ImportError", says="pyarrow",
    ),
    Fact(
        "Arrow's booleans are single bits", REFUSED, producer=("pandas", "polars"), dtype=("bool",),
        raises="BufferError", says="bool",
    ),
    Fact(
        "Arrow has no complex numbers and no bfloat16", REFUSED, producer=("pandas",), dtype=(*COMPLEX, "bfloat16"),
        raises="NotImplementedError", says="Unsupported numpy type",
    ),
)  # fmt: skip

#: What a consumer does not take, or not as it is.
CONSUMERS = (
    Fact(
        "NumPy's own types have no bfloat16; Tensor.__array__ takes ml_dtypes'", REFUSED, consumer=("numpy",),
        dtype=("bfloat16",), raises="Exception", says="dtype", without="ml_dtypes",
    ),
    Fact(
        "numpy.from_dlpack knows no bfloat16; Tensor.__array__ takes ml_dtypes'", REFUSED, consumer=("numpy",),
        dtype=("bfloat16",), raises="Exception", says="dtype", to=SHARED,
    ),
    Fact(
        "the array API standard has no bfloat16", REFUSED, consumer=("array_api_strict",), dtype=("bfloat16",),
        raises="Exception", says="dtype",
    ),
    Fact(
        "the array API standard has no float16", REFUSED, consumer=("array_api_strict",), dtype=("float16",),
        raises="TypeError", says="does not support the dtype 'float16'",
    ),
    Fact(
        "the buffer protocol has no format for bfloat16", REFUSED, consumer=("memoryview",), dtype=("bfloat16",),
        raises="BufferError", says="no format for this element type",
    ),
    Fact(
        "PyTorch before 2.14 ends the process for negative strides; to() refuses", CRASHED,
        consumer=("torch",), layout=("reversed",), before=("torch", ("2", "14")), to=REFUSED,
    ),
    Fact("PyTorch has no negative strides", REFUSED, consumer=("torch",), layout=("reversed",), raises="RuntimeError"),
    Fact(
        "JAX before 0.12 asks for legacy capsules, which cannot say that memory is read-only; and it has gaps",
        REFUSED, consumer=("jax",), layout=("sliced", "reversed", "broadcast"), readonly=True, legacy=False,
        before=("jax", ("0", "12")), raises="BufferError", says="read-only",
    ),
    Fact(
        "JAX before 0.12 asks for legacy capsules, which cannot say that memory is read-only; to() knows that JAX "
        "never writes", REFUSED, consumer=("jax",), readonly=True, legacy=False, before=("jax", ("0", "12")),
        raises="BufferError", says="read-only", to=SHARED,
    ),
    Fact(
        "JAX before 0.10 reads transposed memory as if it were not; to() refuses", MISREAD,
        consumer=("jax",), layout=("transposed",), before=("jax", ("0", "10")), to=REFUSED,
    ),
    Fact(
        "JAX takes compact memory only", REFUSED, consumer=("jax",), layout=("sliced", "reversed", "broadcast"),
        raises="Exception", says="strid",
    ),
    Fact(
        "TensorFlow takes legacy capsules, which cannot say that memory is read-only; and it is not packed", REFUSED,
        consumer=("tensorflow",), layout=STRIDED, readonly=True, legacy=False, raises="BufferError", says="read-only",
    ),
    Fact(
        "TensorFlow takes legacy capsules, which cannot say that memory is read-only; to() knows that it never writes",
        REFUSED, consumer=("tensorflow",), readonly=True, legacy=False, raises="BufferError", says="read-only",
        to=SHARED,
    ),
    Fact(
        "TensorFlow takes packed memory only", REFUSED, consumer=("tensorflow",), layout=STRIDED,
        raises="InvalidArgumentError", says="strides",
    ),
    Fact(
        "Paddle takes negative strides, and half of its functions fail for them: to() refuses", SHARED,
        consumer=("paddle",), layout=("reversed",), to=REFUSED,
    ),
    Fact(
        "PyArrow has no negative strides", REFUSED, consumer=("pyarrow",), layout=("reversed",),
        before=("pyarrow", ("26",)), raises="ValueError", says="Negative ndarray strides",
    ),
    Fact(
        "Arrow's booleans are single bits; to() refuses", COPIED, consumer=("pyarrow",), dtype=("bool",),
        layout=("1-d", "read-only"), before=("pyarrow", ("26",)), to=REFUSED,
    ),
    Fact(
        "an empty Array has no bits to copy; to() refuses", SHARED, consumer=("pyarrow",), dtype=("bool",),
        layout=("empty",), before=("pyarrow", ("26",)), to=REFUSED,
    ),
    Fact(
        "PyArrow's Tensor makes uint8 of bool; to() refuses", MISREAD, consumer=("pyarrow",), dtype=("bool",),
        before=("pyarrow", ("26",)), to=REFUSED,
    ),
    Fact(
        "PyArrow has no complex numbers and no bfloat16", REFUSED, consumer=("pyarrow",), dtype=(*COMPLEX, "bfloat16"),
        before=("pyarrow", ("26",)), raises="NotImplementedError", says="Unsupported numpy type",
    ),
    Fact(
        "PyArrow takes numbers of whole bytes only", REFUSED, consumer=("pyarrow",),
        dtype=("bool", *COMPLEX, "bfloat16"), raises="ValueError", says="unsupported DLPack type",
    ),
    Fact(
        "PyArrow has no negative strides", REFUSED, consumer=("pyarrow",), layout=("reversed",), raises="ValueError",
        says="negative strides",
    ),
)  # fmt: skip

FACTS = (*CANNOT, *NO_TENSOR, *CONSUMERS)
HERE = Here()


@dataclass(frozen=True)
class Expected:
    """What a cell must come to."""

    outcome: str
    readonly: bool
    to: str
    because: str = ""
    raises: str = ""
    says: str = ""


def expected(producer: str, consumer: str, dtype: str, layout: str, here: Here = HERE) -> Expected:
    """What the facts say of a cell."""
    about = (producer, consumer, dtype, layout)
    readonly = any(fact.holds(*about, readonly=False, here=here) for fact in READ_ONLY)
    legacy = any(fact.holds(*about, readonly=False, here=here) for fact in LEGACY)
    plain = Expected(SHARED, readonly, SHARED)
    for fact in FACTS:
        if fact.holds(*about, readonly=readonly, here=here, legacy=legacy):
            return replace(
                plain, outcome=fact.outcome, to=fact.to or fact.outcome, because=fact.because, raises=fact.raises,
                says=fact.says,
            )  # fmt: skip
    return plain


def differences(producer: str, consumer: str, seen: Observed, here: Here = HERE) -> list[str]:
    """Where a cell came to something else than the facts say: a sentence each."""
    wanted = expected(producer, consumer, seen.dtype, seen.layout, here)
    found = list(seen.faults)
    if seen.outcome != wanted.outcome:
        why = f" ({wanted.because})" if wanted.because else ""
        got = f"{seen.outcome} ({seen.raises[0]}: {seen.message})" if seen.raises else f"{seen.outcome} {seen.message}"
        found.append(f"expected: {wanted.outcome}{why}; came to: {got.strip()}")
    elif seen.outcome == REFUSED:
        if wanted.raises not in seen.raises or wanted.says not in seen.message:
            found.append(
                f"refused, but not with {wanted.raises} that says {wanted.says!r}: {seen.raises[0]}: {seen.message}"
            )
    if seen.readonly is not None and seen.readonly is not wanted.readonly:
        found.append(f"the Tensor's readonly is {seen.readonly}, expected: {wanted.readonly}")
    if seen.to and seen.to != wanted.to:
        found.append(f"to() expected: {wanted.to}; came to: {seen.to}")
    return [f"{producer} -> {consumer}, {seen.dtype}, {seen.layout}: {sentence}" for sentence in found]


#: In the order they are counted in.
OUTCOMES = (SHARED, COPIED, REFUSED, CANNOT_MAKE, MISREAD, CRASHED)
