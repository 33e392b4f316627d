# examples/cython/setup.py: builds the module with the headers that lie inside the installed package `tenon`.
import importlib.util
import os

from Cython.Build import cythonize
from setuptools import Extension, setup

(package,) = importlib.util.find_spec("tenon").submodule_search_locations
module = Extension(
    "matrices",
    ["matrices.pyx"],
    include_dirs=[os.path.join(package, "include")],
    extra_compile_args=["/std:c++20" if os.name == "nt" else "-std=c++20"],
)
setup(name="matrices", version="1.0", ext_modules=cythonize([module], build_dir="build"))
