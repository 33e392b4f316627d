# python/tenon/_device.py: `tenon.device`, a place that compares with every library's word for it.
"""Devices."""

from __future__ import annotations

from typing import Any

from tenon import _core

#: What the host reads as its own memory: NumPy takes nothing else.
HOST = frozenset(_core.LIBRARIES["numpy"]["devices"].split())

#: What comes of asking an object that is not what it seems. Everything else, too deep a recursion or an interrupt, has
#: nothing to do with what is asked, and is passed on.
WHAT_LIARS_RAISE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, NotImplementedError)


class device(str):
    """Where memory is: its name, which is a string, and DLPack's numbers for it.

    It is made from, and equal to, whatever people call it: a name with or without a number, DLPack's
    ``(type, id)``, a device object of PyTorch, JAX, CuPy, TensorFlow or Paddle.

    >>> import tenon
    >>> d = tenon.device("cuda:1")
    >>> d
    tenon.device('cuda:1')
    >>> d == (2, 1), d == "cuda:1", d == "cuda"
    (True, True, False)
    >>> d.kind, d.type, d.id
    ('cuda', 2, 1)

    Being a string, it can be passed to libraries that take names: ``torch.zeros(3, device=t.device)``. In a
    dictionary or a set it is found by its name and by nothing else that it is equal to: ``{"cuda:1": 1}[t.device]``.
    """

    __slots__ = ("_pair",)
    _pair: tuple[int, int]

    def __new__(cls, value: Any) -> device:
        if type(value) is cls:
            return value
        pair = pair_of(value)
        self = super().__new__(cls, _core.device_name(pair))
        self._pair = pair
        return self

    @property
    def type(self) -> int:
        """DLPack's number for the kind: 1 CPU, 2 CUDA, ..."""
        return self._pair[0]

    @property
    def id(self) -> int:
        """Which one of its kind."""
        return self._pair[1]

    @property
    def kind(self) -> str:
        """The name without the number."""
        return str.__str__(self).partition(":")[0]

    @property
    def pair(self) -> tuple[int, int]:
        """``(type, id)``, as DLPack has it."""
        return self._pair

    @property
    def is_host(self) -> bool:
        """Whether plain code may read the memory: CPU, pinned and managed memory."""
        return self.kind in HOST

    def __eq__(self, other: object) -> bool:
        return _pair_or_none(other) == self._pair

    def __ne__(self, other: object) -> bool:
        return not self == other

    # Equal to its name, so hashed like it: either finds the other in a dictionary.
    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"tenon.device({str.__str__(self)!r})"

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self._pair,)


def pair_of(value: Any) -> tuple[int, int]:
    """DLPack's pair for whatever people call a device; TypeError for what is none. The core calls it, too."""
    pair = _pair_or_none(value)
    if pair is None:
        raise TypeError(
            f"tenon: {value!r} is no device; expected a name like 'cpu' or 'cuda:0', a (type, id) pair, or a device "
            "object of an array library"
        )
    return pair


def _pair_or_none(value: Any) -> tuple[int, int] | None:
    """The same, and None for what is none. Passes on what is no answer: an interrupt, no memory, no stack."""
    try:
        if issubclass(type(value), device):  # and not isinstance(), which believes what an object says of itself
            pair: tuple[int, int] = value._pair
            return pair
        word = value if issubclass(type(value), (str, tuple)) else _name_of(value)
        return None if word is None else _core.device_pair(word)
    except WHAT_LIARS_RAISE:  # an object that lies about itself is no device
        return None


def _name_of(value: Any) -> str | None:
    """A library's own device object, as a name."""
    row = _core.LIBRARIES.get(type(value).__module__.partition(".")[0])
    if row is None:
        return None
    if row["device_text"]:
        kind, _, number = str(value).removeprefix(row["device_text"]).removesuffix(")").partition(":")
    elif row["device_number"]:
        kind = "cuda" if row["always_cuda"] else getattr(value, row["device_kind"]).lower()
        number = getattr(value, row["device_number"])  # None: the current one, which is 0 as far as is known here
    else:
        return None
    return f"{renamed(kind, row['device_names'])}:{number or 0}"


def renamed(word: str, names: str) -> str:
    """The word by its name here, if a library has another: "gpu=cuda hip=rocm"."""
    return dict(pair.split("=") for pair in names.split()).get(word, word)
