# python/tenon/tests/__init__.py: the tests that travel with the package: `python -m tenon test` runs them against whatever is installed.
"""The package's own tests. They need the standard library alone; what is not installed is left out, and named."""
