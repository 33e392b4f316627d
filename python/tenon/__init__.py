# python/tenon/__init__.py: the package's public names.
"""Any tensor, from any array library, without copying a byte."""

from tenon._core import MalformedError, Tensor, __version__, asdlpack
from tenon._device import device
from tenon._dtype import dtype
from tenon._explain import Explanation, explain
from tenon._pointer import from_pointer
from tenon._tensor import ReadOnlyWarning, complete as _complete

_complete()

#: The same as `asdlpack`, under the name of the array API standard.
from_dlpack = asdlpack

__all__ = [
    "Explanation",
    "MalformedError",
    "ReadOnlyWarning",
    "Tensor",
    "__version__",
    "asdlpack",
    "device",
    "dtype",
    "explain",
    "from_dlpack",
    "from_pointer",
]
