# tests/python/test_open_npy.py: .npy files as tensors: what NumPy saves is read in place, what is malformed is named.
from __future__ import annotations

import gc
import os
import re
import socket
import struct
import sys
from pathlib import Path

import pytest
import tenon
from file_support import descriptors, map_of, mapped, maps_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from real_support import expect, has, need

np = need("numpy")

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip
VERSIONS = [(1, 0), (2, 0), (3, 0)]


def saved(path: Path, array, version=(1, 0)) -> Path:
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    return path


def written(path: Path, header: str | bytes, data: bytes = b"", version=(1, 0), length: int | None = None) -> Path:
    """A file with any header; `length` is what it says of it."""
    raw = header.encode("latin-1") if isinstance(header, str) else header
    size = struct.pack("<H" if version == (1, 0) else "<I", len(raw) if length is None else length)
    path.write_bytes(b"\x93NUMPY" + bytes(version) + size + raw + data)
    return path


def header_of(path: Path) -> int:
    """Where the data begins, by NumPy."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        read(file)
        return file.tell()


# --- what NumPy saves -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (0,), (3, 0, 2), (1, 1)], ids=str)
def test_everything_numpy_saves(tmp_path, dtype, order, shape):
    count = int(np.prod(shape))
    array = np.asarray(np.arange(1, count + 1).reshape(shape).astype(dtype), order=order)
    path = saved(tmp_path / "a.npy", array)
    t = tenon.open(path)
    column_major = array.flags.f_contiguous and not array.flags.c_contiguous
    expect(
        t,
        address=map_of(path).begin + header_of(path) if count else None,
        shape=shape,
        dtype=dtype,
        itemsize=array.itemsize,
        readonly=True,
        strides=tuple(s // array.itemsize for s in array.strides) if column_major else None if count else t.strides,
    )
    back = np.asarray(t)
    assert back.dtype == array.dtype and np.array_equal(back, array) and not back.flags.writeable


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_versions(tmp_path, version):
    array = np.arange(6, dtype="float32").reshape(2, 3)
    assert np.array_equal(np.asarray(tenon.open(saved(tmp_path / "a.npy", array, version))), array)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }",
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i2'}",
        '{"descr":"<i2","fortran_order":False,"shape":(2,3,)}',
        "{ 'descr'\t:\n'<i2' , 'fortran_order' : False , 'shape' : ( 2 , 3 ) } \n\n",
    ],
)
def test_headers_of_other_writers(tmp_path, header):
    array = np.arange(6, dtype="int16").reshape(2, 3)
    header += " " * (-(10 + len(header)) % 16)
    path = written(tmp_path / "a.npy", header, array.tobytes())
    assert np.array_equal(np.load(path), array)
    assert np.array_equal(np.asarray(tenon.open(path)), array)


def test_more_follows_the_array(tmp_path):
    """NumPy saves several arrays into one file; the first is what `numpy.load` reads."""
    path = saved(tmp_path / "a.npy", np.arange(3))
    path.write_bytes(path.read_bytes() * 2)
    assert np.asarray(tenon.open(path)).tolist() == [0, 1, 2]


def test_paths(tmp_path):
    path = saved(tmp_path / "a.npy", np.arange(3))
    for same in (path, str(path), os.fsencode(path)):
        assert np.asarray(tenon.open(same)).tolist() == [0, 1, 2]
    for wrong in (3, None, [str(path)]):
        with pytest.raises(TypeError):
            tenon.open(wrong)


def test_content_comes_before_the_name(tmp_path):
    path = saved(tmp_path / "array.safetensors", np.arange(3))
    assert np.asarray(tenon.open(path)).tolist() == [0, 1, 2]
    assert np.asarray(tenon.open(path.rename(tmp_path / "no_extension"))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", ["torch", "jax", "tensorflow"])
def test_other_libraries_read_in_place(tmp_path, library):
    if library == "jax":
        need("jax").config.update("jax_enable_x64", True)
    elif not has(library):
        pytest.skip(f"{library} is not installed")
    array = np.arange(12, dtype="float32").reshape(3, 4)
    path = saved(tmp_path / "a.npy", array)
    t = tenon.open(path, "r+")  # a legacy struct, which JAX and TensorFlow ask for, cannot say read-only
    assert t.data_ptr % 64 == 0, "NumPy aligns the data to 64 bytes, and pages begin at more"
    taken = t.to(library, copy=False)  # compares the addresses
    assert np.array_equal(np.asarray(taken), array)


def test_read_only_memory_in_torch_and_jax(tmp_path):
    """Without a copy: PyTorch forgets that it is read-only, JAX takes it by way of NumPy."""
    torch, jax = need("torch"), need("jax")
    path = saved(tmp_path / "a.npy", np.arange(1000, dtype="float32"))
    t = tenon.open(path)
    assert torch.from_dlpack(t).data_ptr() == t.data_ptr
    assert jax.device_put(np.asarray(t), jax.devices("cpu")[0]).unsafe_buffer_pointer() == t.data_ptr


# --- memory -----------------------------------------------------------------------------------------


def test_read_only_unless_asked(tmp_path):
    path = saved(tmp_path / "a.npy", np.arange(3))
    t = tenon.open(path)
    assert t.readonly and memoryview(t).readonly and not np.from_dlpack(t).flags.writeable
    assert map_of(path).access == "r--s"
    path.chmod(0o400)  # nothing else is asked of the file
    assert np.asarray(tenon.open(path, mode="r")).tolist() == [0, 1, 2]


def test_writes_reach_the_file(tmp_path):
    path = saved(tmp_path / "a.npy", np.zeros((2, 3)))
    t = tenon.open(path, "r+")
    assert not t.readonly and not memoryview(t).readonly and map_of(path).access == "rw-s"
    np.from_dlpack(t)[1, 2] = 42
    assert np.load(path)[1, 2] == 42
    del t
    assert np.load(path).sum() == 42


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is denied to root")
def test_r_plus_needs_the_right_to_write(tmp_path):
    path = saved(tmp_path / "a.npy", np.zeros(3))
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        tenon.open(path, "r+")


CONSUMERS = {
    "tensor": lambda t: t,
    "numpy.asarray": np.asarray,
    "numpy.from_dlpack": np.from_dlpack,
    "memoryview": memoryview,
    "capsule": lambda t: t.__dlpack__(max_version=(1, 0)),
    "torch": lambda t: need("torch").from_dlpack(t),
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_mapped_for_as_long_as_anybody_looks(tmp_path, name):
    path = saved(tmp_path / "a.npy", np.arange(1000))
    assert not mapped(path)
    consumer = CONSUMERS[name](tenon.open(path))
    path.unlink()  # the memory does not need the name
    gc.collect()
    assert mapped(path)
    if name != "capsule":
        assert np.asarray(consumer)[999] == 999
    del consumer
    gc.collect()
    assert not mapped(path)


def test_a_part_of_it_keeps_all_of_it(tmp_path):
    path = saved(tmp_path / "a.npy", np.arange(100_000))
    last = np.asarray(tenon.open(path))[-1:]
    gc.collect()
    assert mapped(path) and last.tolist() == [99_999]
    del last
    gc.collect()
    assert not mapped(path)


def test_each_opening_is_a_map_of_its_own(tmp_path):
    path = saved(tmp_path / "a.npy", np.arange(3))
    first, second = tenon.open(path), tenon.open(path)
    assert len(maps_of(path)) == 2 and first.data_ptr != second.data_ptr
    del first
    assert len(maps_of(path)) == 1 and np.asarray(second).tolist() == [0, 1, 2]


def test_descriptors(tmp_path):
    good = saved(tmp_path / "a.npy", np.arange(3))
    bad = written(tmp_path / "bad.npy", "{}")
    before = descriptors()
    tensors = [tenon.open(good) for _ in range(10)]
    if sys.version_info >= (3, 13):
        assert descriptors() == before
    del tensors
    for path in (bad, tmp_path):
        with pytest.raises((ValueError, OSError)):
            tenon.open(path)
    gc.collect()
    assert descriptors() == before


# --- what is no file of arrays ----------------------------------------------------------------------


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.npy"):
        tenon.open(tmp_path / "nothing.npy")


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_directory(tmp_path, mode):
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path))):
        tenon.open(tmp_path, mode)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_fifo_does_not_wait(tmp_path, mode):
    os.mkfifo(tmp_path / "fifo.npy")
    before = descriptors()
    with pytest.raises(ValueError, match=r"fifo.npy: format: not a regular file"):
        tenon.open(tmp_path / "fifo.npy", mode)
    assert descriptors() == before


def test_devices_and_sockets(tmp_path):
    with pytest.raises(ValueError, match="/dev/zero: format: not a regular file"):
        tenon.open("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(OSError):
            tenon.open(tmp_path / "s")


@pytest.mark.parametrize("mode", ["w", "rb", "r+b", "", "R", None, 3, ["r"]], ids=repr)
def test_modes(tmp_path, mode):
    with pytest.raises(ValueError, match=r'mode is .*, expected "r" .* or "r\+"'):
        tenon.open(tmp_path / "nothing.npy", mode)


@pytest.mark.parametrize("name", ["a.npy", "a.safetensors", "a"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=rf"/{name}: size: the file is empty, expected a .npy or .safetensors"):
        tenon.open(tmp_path / name)


def test_unknown_content(tmp_path):
    (tmp_path / "notes.txt").write_text("remember the milk")
    with pytest.raises(ValueError, match=r"notes.txt: format: begins with b'remember', expected a .npy or a .safeten"):
        tenon.open(tmp_path / "notes.txt")


# --- what is malformed ------------------------------------------------------------------------------

D = "'descr': '<f4'"
F = "'fortran_order': False"
S = "'shape': (2,)"
GOOD = f"{{{D}, {F}, {S}}}"
NESTED = "(" * 30_000

# name: header, the field that is named, and a part of what is said of it
MALFORMED = {
    "no dictionary": ("[1, 2]", "header", "'[1, 2]' where a dictionary"),
    "nothing": ("", "header", "its end where a dictionary"),
    "only spaces": (" " * 100, "header", "its end where a dictionary"),
    "space before": (" " + GOOD, "header", "where a dictionary"),
    "never closed": (GOOD[:-1], "header", "its end where '}'"),
    "more behind": (GOOD + "1", "header", "'1' where nothing after the dictionary"),
    "another dictionary": (GOOD + GOOD, "header", "nothing after the dictionary"),
    "comment": (GOOD + "# a comment", "header", "nothing after the dictionary"),
    "call": ("__import__('os').system('true')", "header", "dictionary"),
    "call inside": (f"{{{D}, {F}, 'shape': tuple([2])}}", "shape", "tuple"),
    "NUL": (GOOD + "\0", "header", "nothing after the dictionary"),
    "no descr": (f"{{{F}, {S}}}", "descr", "missing"),
    "no fortran_order": (f"{{{D}, {S}}}", "fortran_order", "missing"),
    "no shape": (f"{{{D}, {F}}}", "shape", "missing"),
    "empty dictionary": ("{}", "descr", "missing"),
    "unknown key": (f"{{{D}, {F}, {S}, 'extra': 1}}", "header", "'extra' is not one of descr, fortran_order, shape"),
    "descr twice": (f"{{{D}, {D}, {F}, {S}}}", "header", "'descr' appears twice"),
    "key without quotes": (f"{{descr: '<f4', {F}, {S}}}", "header", "a key in quotes"),
    "key is a number": (f"{{1: '<f4', {F}, {S}}}", "header", "a key in quotes"),
    "long key": (f"{{'{'k' * 60000}': 1}}", "header", "..."),
    "no colon": ("{'descr' '<f4'}", "header", "':'"),
    "no comma": (f"{{{D} {F}, {S}}}", "header", "'}'"),
    "two commas": (f"{{{D},, {F}, {S}}}", "header", "a key in quotes"),
    "escape in a string": (f"{{'descr': '\\x3cf4', {F}, {S}}}", "descr", "type string"),
    "string never ends": (f"{{'descr': '<f4, {F}, {S}}}", "header", "'}'"),
    "fortran_order 1": (f"{{{D}, 'fortran_order': 1, {S}}}", "fortran_order", "True or False"),
    "fortran_order None": (f"{{{D}, 'fortran_order': None, {S}}}", "fortran_order", "True or False"),
    "fortran_order text": (f"{{{D}, 'fortran_order': 'False', {S}}}", "fortran_order", "True or False"),
    "descr a number": (f"{{'descr': 4, {F}, {S}}}", "descr", "type string"),
    "descr a tuple": (f"{{'descr': ('<f4', (2,)), {F}, {S}}}", "descr", "type string"),
    "descr empty": (f"{{'descr': '', {F}, {S}}}", "descr", "'<f4'"),
    "descr long": (f"{{'descr': '<f{'4' * 60000}', {F}, {S}}}", "descr", "..."),
    "descr a name": (f"{{'descr': 'float32', {F}, {S}}}", "descr", "'float32'"),
    "descr without order": (f"{{'descr': 'f4', {F}, {S}}}", "descr", "'f4'"),
    "descr without a needed order": (f"{{'descr': '|f4', {F}, {S}}}", "descr", "'|f4' is no type"),
    "descr of no size": (f"{{'descr': '<f3', {F}, {S}}}", "descr", "'<f3'"),
    "long double": (f"{{'descr': '<f16', {F}, {S}}}", "descr", "'<f16' is no type a Tensor can have"),
    "bfloat16 of ml_dtypes": (f"{{'descr': '<V2', {F}, {S}}}", "descr", "ml_dtypes.bfloat16"),
    "raw bytes": (f"{{'descr': '|V3', {F}, {S}}}", "descr", "of no type to NumPy"),
    "objects": (f"{{'descr': '|O', {F}, {S}}}", "descr", "Python objects, which are pickled"),
    "text": (f"{{'descr': '<U4', {F}, {S}}}", "descr", "text"),
    "bytes": (f"{{'descr': '|S4', {F}, {S}}}", "descr", "text"),
    "dates": (f"{{'descr': '<M8[ns]', {F}, {S}}}", "descr", "view('int64')"),
    "spans": (f"{{'descr': '<m8[s]', {F}, {S}}}", "descr", "view('int64')"),
    "big-endian": (f"{{'descr': '>f4', {F}, {S}}}", "descr", "is float32 in big-endian byte order, expected '<f4'"),
    "big-endian and what to do": (f"{{'descr': '>f4', {F}, {S}}}", "descr", "numpy.load(path).astype('float32')"),
    "big-endian complex": (f"{{'descr': '>c16', {F}, {S}}}", "descr", "complex128 in big-endian"),
    "structured": (f"{{'descr': [('a', '<f4'), ('b', '<i4')], {F}, {S}}}", "descr", "structured type"),
    "shape a list": (f"{{{D}, {F}, 'shape': [2]}}", "shape", "'('"),
    "shape a number": (f"{{{D}, {F}, 'shape': 2}}", "shape", "'('"),
    "shape no tuple": (f"{{{D}, {F}, 'shape': (2)}}", "shape", "expected (2,)"),
    "shape None": (f"{{{D}, {F}, 'shape': None}}", "shape", "'('"),
    "negative": (f"{{{D}, {F}, 'shape': (-2,)}}", "shape", "'-2,)}' where an extent"),
    "negative pair": (f"{{{D}, {F}, 'shape': (-1, -2)}}", "shape", "an extent"),
    "fraction": (f"{{{D}, {F}, 'shape': (2.0,)}}", "shape", "an extent"),
    "exponent": (f"{{{D}, {F}, 'shape': (2e0,)}}", "shape", "an extent"),
    "bool": (f"{{{D}, {F}, 'shape': (True,)}}", "shape", "an extent"),
    "octal": (f"{{{D}, {F}, 'shape': (0o2,)}}", "shape", "an extent"),
    "leading zero": (f"{{{D}, {F}, 'shape': (02,)}}", "shape", "an extent"),
    "Python 2": (f"{{{D}, {F}, 'shape': (2L,)}}", "shape", "an extent"),
    "underscore": (f"{{{D}, {F}, 'shape': (1_0,)}}", "shape", "an extent"),
    "only a comma": (f"{{{D}, {F}, 'shape': (,)}}", "shape", "an extent"),
    "20 digits": (f"{{{D}, {F}, 'shape': (18446744073709551616,)}}", "shape", "0 to 2**63 - 1"),
    "60000 digits": (f"{{{D}, {F}, 'shape': ({'9' * 60000},)}}", "shape", "0 to 2**63 - 1"),
    "2**63": (f"{{{D}, {F}, 'shape': ({2**63},)}}", "shape", "more than any memory holds"),
    "product of 2**64": (f"{{{D}, {F}, 'shape': ({2**32}, {2**32})}}", "shape", "more than any memory holds"),
    "bytes of 2**63": (f"{{{D}, {F}, 'shape': ({2**61},)}}", "shape", "more than any memory holds"),
    "empty, yet too large": (f"{{{D}, {F}, 'shape': (0, {2**40}, {2**40})}}", "shape", "more than any memory holds"),
    "65 axes": (f"{{{D}, {F}, 'shape': ({'1,' * 65})}}", "shape", "65 axes, expected at most 64"),
    "20000 axes": (f"{{{D}, {F}, 'shape': ({'1,' * 20000})}}", "shape", "expected at most 64"),
    "larger than the file": (f"{{{D}, {F}, 'shape': (3,)}}", "data", "8 bytes, expected 12 for shape (3,) of float32"),
    "much larger than the file": (f"{{{D}, {F}, 'shape': ({2**60},)}}", "data", "it is cut short"),
    "nested tuples": (f"{{{D}, {F}, 'shape': {NESTED}", "shape", "an extent"),
    "nested lists": (f"{{{D}, {F}, 'shape': {'[' * 30000}", "shape", "'('"),
    "nested dictionaries": ("{" * 60000, "header", "a key in quotes"),
    "nested descr": (f"{{'descr': {'[' * 60000}", "descr", "structured"),
    "minus signs": (f"{{{D}, {F}, 'shape': ({'-' * 60000}1,)}}", "shape", "an extent"),
}  # fmt: skip


def refused(path: Path, field: str, part: str) -> str:
    """Opening raises ValueError, and a short message that names the file and the field."""
    before = descriptors()
    with pytest.raises(ValueError) as caught:
        tenon.open(path)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.startswith(f"tenon: {path}: {field}: "), message
    assert part in message
    assert len(message) < len(str(path)) + 400
    assert descriptors() == before and not mapped(path)
    return message


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path, name):
    header, field, part = MALFORMED[name]
    refused(written(tmp_path / "a.npy", header, bytes(8)), field, part)


def test_the_good_header_is_good(tmp_path):
    """So that what is wrong above is only what it says."""
    assert tenon.open(written(tmp_path / "a.npy", GOOD + "   ", bytes(8))).shape == (2,)


def test_long_headers_have_a_bound(tmp_path):
    header = GOOD + " " * (65535 - len(GOOD))
    offset_by_one = written(tmp_path / "a.npy", header, bytes(12), version=(2, 0))
    with pytest.raises(BufferError, match="begins at byte 65547 of the file, where float32 is not aligned"):
        tenon.open(offset_by_one)
    refused(written(tmp_path / "b.npy", header + " ", bytes(8), version=(2, 0)), "header length", "at most 65535")


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_cut_short_anywhere(tmp_path, version):
    whole = saved(tmp_path / "whole.npy", np.arange(4, dtype="float32"), version).read_bytes()
    path = tmp_path / "a.npy"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: (magic|version|header length|header|data): "):
            tenon.open(path)


@pytest.mark.parametrize("version", [b"\0\0", b"\1\1", b"\4\0", b"\xff\xff"])
def test_unknown_version(tmp_path, version):
    path = saved(tmp_path / "a.npy", np.arange(4))
    content = path.read_bytes()
    path.write_bytes(content[:6] + version + content[8:])
    refused(path, "version", f"{version[0]}.{version[1]}, expected 1.0, 2.0 or 3.0")


def test_wrong_magic(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPX\1\0")
    refused(path, "magic", "b'\\x93NUMPX'")


def test_header_length_lies(tmp_path):
    path = written(tmp_path / "a.npy", GOOD, bytes(8), length=60_000)
    refused(path, "header", f"ends after {len(GOOD) + 8} of its 60000 bytes")
    refused(written(path, GOOD, bytes(8), version=(2, 0), length=2**32 - 1), "header length", "4294967295 bytes")
    refused(written(path, GOOD, bytes(8), length=len(GOOD) - 1), "header", "its end where '}'")


def test_not_utf_8(tmp_path):
    header = b"{'descr': '\xff', 'fortran_order': False, 'shape': ()}"
    as_version_3 = written(tmp_path / "a.npy", header, bytes(8), version=(3, 0))
    refused(as_version_3, "header", "not UTF-8, as version 3.0 has it, at byte 11")
    refused(written(tmp_path / "b.npy", header, bytes(8)), "descr", "'ÿ'")


def test_what_numpy_saves_and_nobody_can_take(tmp_path):
    """The same by NumPy's own hand."""
    path = tmp_path / "a.npy"
    np.save(path, np.array([1, "a"], dtype=object), allow_pickle=True)
    refused(path, "descr", "Python objects")
    np.save(path, np.zeros(2, dtype=[("é", "<f4")]))
    refused(path, "descr", "structured")
    np.save(path, np.array(["2026-11-15"], dtype="datetime64[D]"))
    refused(path, "descr", "points in time")
    np.save(path, np.arange(3, dtype=">i4"))
    refused(path, "descr", "'>i4' is int32 in big-endian")
    if has("ml_dtypes"):
        import ml_dtypes

        np.save(path, np.arange(3, dtype=ml_dtypes.bfloat16))
        refused(path, "descr", "ml_dtypes.bfloat16")
        way_out = tenon.asdlpack(np.load(path, mmap_mode="r").view(ml_dtypes.bfloat16))
        assert way_out.dtype == "bfloat16" and way_out.readonly


def test_data_off_its_alignment(tmp_path):
    path = written(tmp_path / "a.npy", GOOD, bytes(8))
    begin = header_of(path)
    assert begin % 4 != 0
    with pytest.raises(BufferError, match=rf"a.npy: data: begins at byte {begin} of the file, where float32 is not al"):
        tenon.open(path)
    assert not mapped(path)
    empty = written(path, GOOD.replace("(2,)", "(0,)"))
    assert tenon.open(empty).shape == (0,), "what has no elements has no alignment"


# --- anything at all --------------------------------------------------------------------------------


def agree(path: Path) -> None:
    """Opens to what NumPy reads, or is refused by ValueError, or by BufferError for what is off its alignment."""
    try:
        t = tenon.open(path)
    except ValueError as error:
        assert str(error).startswith(f"tenon: {path}: ")
        return
    except BufferError as error:
        assert "not aligned" in str(error)
        return
    theirs = np.load(path)
    assert t.shape == theirs.shape and t.dtype == theirs.dtype
    assert np.asarray(t).tobytes() == theirs.tobytes()


SEED = b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }" + b" " * 59 + b"\n"
PIECES = [b"'", b'"', b"(", b")", b"{", b"}", b",", b":", b"-", b"0", b"9", b"True", b"False", b" ", b"\n", b"\\", b"#",
          b"<f8", b"|b1", b"|u1", b">f4", b"<V2", b"shape", b"\xff", b"L", b"_", b"."]  # fmt: skip
pieces = st.sampled_from(PIECES) | st.binary(max_size=4)
edits = st.lists(st.tuples(st.integers(0, len(SEED)), st.integers(0, 4), pieces), max_size=3)


@settings(max_examples=400, deadline=None)
@given(edits=edits, version=st.sampled_from(VERSIONS), data=st.integers(0, 40))
@example(edits=[], version=(1, 0), data=24)
def test_edited_headers(tmp_path_factory, edits, version, data):
    header = SEED
    for at, dropped, put in edits:
        header = header[:at] + put + header[at + dropped :]
    path = tmp_path_factory.getbasetemp() / "edited.npy"
    agree(written(path, header, bytes(range(data)), version))


@settings(max_examples=200, deadline=None)
@given(
    content=st.binary(min_size=1, max_size=200),
    prefix=st.sampled_from([b"", b"\x93NUMPY", b"\x93NUMPY\1\0", b"\x93NUMPY\1\0\x20\0{"]),
)
def test_random_bytes(tmp_path_factory, content, prefix):
    path = tmp_path_factory.getbasetemp() / "random.npy"
    path.write_bytes(prefix + content)
    agree(path)
