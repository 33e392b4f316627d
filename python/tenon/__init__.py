# python/tenon/__init__.py: the package's public names.
"""Any tensor, from any array library, without copying a byte."""

from tenon._core import MalformedError, Tensor, __version__, asdlpack

__all__ = ["MalformedError", "Tensor", "__version__", "asdlpack"]
