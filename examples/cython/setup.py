# examples/cython/setup.py: builds the module with what lies inside the installed package `tenon`: its headers, and the one
# file behind them, which is compiled along.
import importlib.util
import os

from Cython.Build import cythonize
from setuptools import Extension, setup

(package,) = importlib.util.find_spec("tenon").submodule_search_locations
include = os.path.join(package, "include")
module = Extension(
    "matrices",
    ["matrices.pyx", os.path.join(include, "tenon", "src", "tenon.cpp")],
    include_dirs=[include],
    extra_compile_args=["/std:c++20"] if os.name == "nt" else ["-std=c++20", "-fvisibility=hidden"],
)
setup(name="matrices", version="1.0", ext_modules=cythonize([module], build_dir="build"))
