# python/tenon/__init__.py: the package's public names.
"""Any tensor, from any array library, without copying a byte."""

from typing import TYPE_CHECKING, Any

from tenon._core import MalformedError, Tensor, __version__, asdlpack
from tenon._device import device
from tenon._dtype import dtype
from tenon._pointer import from_pointer
from tenon._tensor import ReadOnlyWarning, complete as _complete

_complete()

#: The same as `asdlpack`, under the name of the array API standard.
from_dlpack = asdlpack

__all__ = [
    "Inspection",
    "MalformedError",
    "ReadOnlyWarning",
    "Tensor",
    "__version__",
    "asdlpack",
    "device",
    "dtype",
    "from_dlpack",
    "from_pointer",
    "inspect",
]

if TYPE_CHECKING:
    from tenon._inspect import Inspection, inspect

#: What is loaded when it is first asked for, and the module that has it.
_LATER = {"Inspection": "tenon._inspect", "inspect": "tenon._inspect"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tenon' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
