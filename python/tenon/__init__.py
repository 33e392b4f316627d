# python/tenon/__init__.py: the package's public names.
"""Any tensor, from any array library, without copying a byte."""

from importlib import import_module as _import_module

from tenon._core import MalformedError, Tensor, __version__, asdlpack
from tenon._device import device
from tenon._dtype import dtype
from tenon._pointer import from_pointer
from tenon._tensor import ReadOnlyWarning, complete as _complete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenon._explain import Explanation, explain
    from tenon._files import open
    from tenon._files.safetensors import SafetensorsFile
    from tenon._inspect import Inspection, inspect

_complete()

#: The same as `asdlpack`, under the name of the array API standard.
from_dlpack = asdlpack

__all__ = [
    "Explanation",
    "Inspection",
    "MalformedError",
    "ReadOnlyWarning",
    "SafetensorsFile",
    "Tensor",
    "__version__",
    "asdlpack",
    "device",
    "dtype",
    "explain",
    "from_dlpack",
    "from_pointer",
    "inspect",
    "open",
]

# Imported when they are first asked for: they need more of the standard library than all the rest.
_LATER = {
    "Explanation": "_explain",
    "Inspection": "_inspect",
    "SafetensorsFile": "_files.safetensors",
    "explain": "_explain",
    "inspect": "_inspect",
    "open": "_files",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'tenon' has no attribute {name!r}")
    value: object = getattr(_import_module(f"tenon.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
