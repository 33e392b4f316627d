# tests/python/test_open_safetensors.py: .safetensors files as mappings: read in place, and what is malformed is named.
from __future__ import annotations

import copy
import gc
import json
import pickle
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tenon
from file_support import descriptors, map_of, mapped
from hypothesis import given, settings
from hypothesis import strategies as st
from real_support import expect, has, need, raw

np = need("numpy")


def save_file(arrays: dict[str, Any], path: Path) -> None:
    """By the reference implementation."""
    need("safetensors")
    from safetensors.numpy import save_file

    save_file(arrays, path)


def load_file(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(path)


def written(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    """A file with any header: JSON of what is given, aligned as writers do it, or the bytes themselves.

    `length` is what the file says of it.
    """
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (0 if isinstance(header, bytes) else -len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype: Any = "U8", shape: Any = (1,), offsets: Any = (0, 1), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), 8 + length


# --- what the reference writes ----------------------------------------------------------------------

NUMPY = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32",
         "float64", "complex64"]  # fmt: skip


def test_everything_numpy_writes(tmp_path):
    arrays = {f"{dtype} {shape}": np.arange(np.prod(shape), dtype="int64").reshape(shape).astype(dtype)
              for dtype in NUMPY for shape in [(), (4,), (2, 3), (0,), (2, 0, 3)]}  # fmt: skip
    path = tmp_path / "a.safetensors"
    save_file(arrays, path)
    said, begin = header_of(path)
    model = tenon.open(path)
    base = map_of(path).begin
    assert isinstance(model, Mapping) and list(model) == list(said) and len(model) == len(arrays)
    for name, array in arrays.items():
        t = model[name]
        expect(
            t,
            address=base + begin + said[name]["data_offsets"][0] if array.size else None,
            shape=array.shape,
            dtype=str(array.dtype),
            itemsize=array.itemsize,
            readonly=True,
            strides=None if array.size else t.strides,
        )
        assert np.array_equal(np.asarray(t), array)


TORCH = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz",
         "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu", "F32": "float32", "BOOL": "bool"}  # fmt: skip


def test_everything_torch_writes(tmp_path):
    torch, _ = need("torch"), need("safetensors")
    from safetensors.torch import save_file

    names = {code: name for code, name in TORCH.items() if hasattr(torch, name)}
    numbers = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    tensors = {code: numbers.to(getattr(torch, name)) for code, name in names.items()}
    path = tmp_path / "a.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    model = tenon.open(path)
    assert model.metadata == {"format": "pt"}
    said, _ = header_of(path)
    for code, tensor in tensors.items():
        assert said[code]["dtype"] == code, "the writer calls it otherwise"
        t = model[code]
        assert t.dtype == names[code] and t.shape == (2, 4)
        back = torch.from_dlpack(t)
        assert back.dtype == tensor.dtype and back.data_ptr() == t.data_ptr
        assert back.view(torch.uint8).tolist() == tensor.view(torch.uint8).tolist()


def test_four_bits(tmp_path):
    """PyTorch's bytes of two are written as single elements; its own type is one more look at the same memory."""
    torch = need("torch")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4_e2m1fn_x2")
    need("safetensors")
    from safetensors.torch import save_file

    packed = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    save_file({"w": packed.view(torch.float4_e2m1fn_x2)}, tmp_path / "a.safetensors")
    t = tenon.open(tmp_path / "a.safetensors")["w"]
    assert (t.shape, t.dtype, t.nbytes) == ((2, 6), "float4_e2m1fn", 6)
    pairs = tenon.from_pointer(t.data_ptr, (2, 3), "float4_e2m1fn_x2", owner=t, readonly=True)
    assert torch.from_dlpack(pairs).view(torch.uint8).tolist() == packed.tolist()


@pytest.mark.parametrize("dtype, name", [("F6_E2M3", "float6_e2m3fn"), ("F6_E3M2", "float6_e3m2fn")])
def test_six_bits(tmp_path, dtype, name):
    t = tenon.open(written(tmp_path / "a.safetensors", {"w": entry(dtype, [2, 2], [0, 3])}, b"abc"))["w"]
    assert (t.shape, t.dtype, t.nbytes) == ((2, 2), name, 3)


def test_every_element_type_of_the_format(tmp_path):
    """The reference names those it knows when it refuses one; each is taken here, and of the same size."""
    safetensors = need("safetensors")
    path = written(tmp_path / "a.safetensors", {"w": entry("NONE")}, b"\0")
    with pytest.raises(safetensors.SafetensorError) as caught:
        safetensors.deserialize(path.read_bytes())
    codes = re.findall("`([A-Z0-9_]+)`", str(caught.value).partition("expected one of")[2])
    assert len(codes) >= 20
    for code in codes:
        for size in (16, 24, 32, 64, 128, 256, 512):  # of 32 elements
            try:
                safetensors.deserialize(written(path, {"w": entry(code, [32], [0, size])}, bytes(size)).read_bytes())
            except safetensors.SafetensorError:
                continue
            break
        assert tenon.open(path)["w"].nbytes == size


def test_metadata(tmp_path):
    path = written(tmp_path / "a.safetensors", {"__metadata__": {"a": "b", "ö": "€"}, "w": entry()}, b"x")
    model = tenon.open(path)
    assert model.metadata == {"a": "b", "ö": "€"} and list(model) == ["w"]
    assert tenon.open(written(path, {"w": entry()}, b"x")).metadata == {}


def test_order_is_the_header_s(tmp_path):
    header = {"z": entry(offsets=(1, 2)), "a": entry(), "": entry("F32", [0], [2, 2])}
    path = written(tmp_path / "a.safetensors", header, b"xy")
    model = tenon.open(path)
    assert list(model) == ["z", "a", ""]
    assert {name: raw(t) for name, t in model.items()} == {"z": b"y", "a": b"x", "": b""}


def test_content_tells(tmp_path):
    assert list(tenon.open(written(tmp_path / "a_blob", {"w": entry()}, b"x"))) == ["w"]


def test_no_tensors(tmp_path):
    model = tenon.open(written(tmp_path / "a.safetensors", {}))
    assert len(model) == 0 and not model and dict(model) == {}


# --- the mapping ------------------------------------------------------------------------------------


def test_mapping(tmp_path):
    path = written(tmp_path / "a.safetensors", {"a": entry(), "b": entry(offsets=[1, 2])}, b"xy")
    model = tenon.open(str(path))
    assert "a" in model and "c" not in model and 3 not in model and model.get("c") is None
    with pytest.raises(KeyError, match=rf"{re.escape(str(path))}: no tensor is called 'c'"):
        model["c"]
    assert model["a"].data_ptr + 1 == model["b"].data_ptr
    assert model == model and model != tenon.open(path) and len({model, model}) == 1
    assert model.path == str(path)
    with pytest.raises(TypeError):
        model["a"] = model["b"]


def test_is_not_pickled_by_value(tmp_path):
    model = tenon.open(written(tmp_path / "a", {"x": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}, b"abc"))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match=r"is not pickled; pass its path.* or pass dict\(file\)"):
            pickle.dumps(model, protocol)
    assert pickle.loads(pickle.dumps(dict(model)))["x"].tolist() == [97, 98, 99]
    assert copy.copy(model) is model


def test_offsets_are_numbers_of_64_bits(tmp_path):
    for begin in (2**63, 10**4200):
        entry = f'{{"x": {{"dtype": "U8", "shape": [3], "data_offsets": [{begin}, {begin + 3}]}}}}'
        with pytest.raises(ValueError, match=r"expected two numbers below 2\*\*63: begin and end") as raised:
            tenon.open(written(tmp_path / "a", entry.encode(), b"abc"))
        assert len(str(raised.value)) < 500


def test_repr(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({name: np.zeros((2, 3), "float16") for name in "abcde"}, path)
    assert repr(tenon.open(path)) == (
        f"SafetensorsFile({str(path)!r}, {{'a': float16 (2, 3), 'b': float16 (2, 3), 'c': float16 (2, 3), ... 2 more}})"
    )
    small = tenon.open(written(path, {"w": entry()}, b"x"))
    assert repr(small) == f"SafetensorsFile({str(path)!r}, {{'w': uint8 (1,)}})"
    assert len(repr(tenon.open(written(path, {"w" * 10_000: entry()}, b"x")))) < 400


def test_off_its_alignment(tmp_path):
    """Only the tensor that cannot be used in place is refused, and only when it is asked for."""
    said = {"byte": entry(), "float": entry("F32", [1], [1, 5])}
    path = written(tmp_path / "a.safetensors", said, b"x" + bytes(4))
    model = tenon.open(path)
    assert raw(model["byte"]) == b"x" and "float" in model and len(model) == 2
    at = header_of(path)[1] + 1
    with pytest.raises(BufferError, match=rf"a.safetensors: tensor 'float': begins at byte {at} of the file, where float"):
        model["float"]
    assert "'float': float32 (1,)" in repr(model)


# --- memory -----------------------------------------------------------------------------------------


def test_read_only_unless_asked(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"w": np.zeros(3)}, path)
    t = tenon.open(path)["w"]
    assert t.readonly and memoryview(t).readonly and not np.from_dlpack(t).flags.writeable
    assert map_of(path).access == "r--s"


def test_writes_reach_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"v": np.zeros(3), "w": np.zeros(3)}, path)
    model = tenon.open(path, mode="r+")
    np.from_dlpack(model["w"])[:] = [1, 2, 3]
    assert load_file(path)["w"].tolist() == [1, 2, 3]
    assert not np.asarray(model["v"]).any() and np.asarray(model["w"])[1] == 2


CONSUMERS = {
    "mapping": lambda model: model,
    "iterator": lambda model: iter(model.values()),
    "tensor": lambda model: model["w"],
    "memoryview": lambda model: memoryview(model["w"]),
    "part of an array": lambda model: np.asarray(model["w"])[:1],
}


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS.keys())
def test_mapped_for_as_long_as_anybody_looks(tmp_path, consume):
    path = tmp_path / "a.safetensors"
    save_file({"v": np.zeros(3), "w": np.arange(3.0)}, path)
    before = descriptors()
    consumer = consume(tenon.open(path))
    path.unlink()
    gc.collect()
    assert mapped(path)
    if isinstance(consumer, (np.ndarray, memoryview)):
        assert consumer[0] == 0
    del consumer
    gc.collect()
    assert not mapped(path) and descriptors() == before


def test_one_map_for_all(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({name: np.zeros(3) for name in "abc"}, path)
    tensors = list(tenon.open(path).values())
    inside = map_of(path)
    assert all(inside.begin < t.data_ptr < inside.end for t in tensors)
    del tensors[0]
    assert mapped(path)
    tensors.clear()
    assert not mapped(path)


# --- what is malformed ------------------------------------------------------------------------------


def one(**changes: Any) -> dict[str, Any]:
    return {"w": {**entry(), **changes}}


def pair(first: tuple[int, int], second: tuple[int, int]) -> dict[str, Any]:
    return {name: entry("U8", [end - begin], [begin, end]) for name, (begin, end) in {"v": first, "w": second}.items()}


def text(json_text: str) -> bytes:
    return json_text.encode()


ENTRY = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
W = f'"w":{ENTRY}'


def shaped(numbers: str) -> bytes:
    """The numbers as JSON has them, which may be none of Python's."""
    return text(f'{{"w":{{"dtype":"U8","shape":[{numbers}],"data_offsets":[0,1]}}}}')


PLAIN = "header"
SHAPE, OFFSETS, DTYPE = "tensor 'w': shape", "tensor 'w': data_offsets", "tensor 'w': dtype"

# name: header, the field that is named, a part of what is said of it; there is one byte of data
MALFORMED = {
    "nothing": (b"", PLAIN, "begins with '', expected a JSON object"),
    "a list": ([], PLAIN, "expected a JSON object"),
    "a number": (1, PLAIN, "expected a JSON object"),
    "a space before": (text(f" {{{W}}}"), PLAIN, "begins with ' {"),
    "a BOM": (b"\xef\xbb\xbf" + text(f"{{{W}}}"), PLAIN, "expected a JSON object"),
    "UTF-16": (f"{{{W}}}".encode("utf-16-le"), PLAIN, "not JSON"),
    "not UTF-8": (b'{"\xff":1}', PLAIN, "not UTF-8 at byte 2"),
    "never closed": (text(f"{{{W}"), PLAIN, "not JSON"),
    "more behind": (text(f"{{{W}}}{{}}"), PLAIN, "not JSON: Extra data"),
    "NUL behind": (text(f"{{{W}}}\0"), PLAIN, "not JSON: Extra data"),
    "single quotes": (text("{'w':1}"), PLAIN, "not JSON"),
    "comma at the end": (text(f"{{{W},}}"), PLAIN, "not JSON"),
    "line break in a string": (text('{"a\nb":1}'), PLAIN, "not JSON"),
    "nested lists": (text('{"w":' + "[" * 200_000 + "]" * 200_000 + "}"), PLAIN, "nested too deep"),
    "nested objects": (text('{"w":' * 200_000 + "1" + "}" * 200_000), PLAIN, "nested too deep"),
    "tensor twice": (text(f"{{{W},{W}}}"), PLAIN, "the key 'w' appears twice"),
    "metadata twice": (text(f'{{"__metadata__":{{}},"__metadata__":{{}},{W}}}'), PLAIN, "'__metadata__' appears twice"),
    "metadata key twice": (text(f'{{"__metadata__":{{"a":"1","a":"2"}},{W}}}'), PLAIN, "the key 'a' appears twice"),
    "dtype twice": (text('{"w":{"dtype":"U8","dtype":"U8","shape":[1]}}'), PLAIN, "'dtype' appears twice"),
    "twice by another spelling": (text(f'{{{W},"\\u0077":1}}'), PLAIN, "the key 'w' appears twice"),
    "metadata a list": ({"__metadata__": [], **one()}, "__metadata__", "[], expected an object of strings"),
    "metadata null": ({"__metadata__": None, **one()}, "__metadata__", "None, expected an object"),
    "metadata a number": ({"__metadata__": {"a": 1}, **one()}, "__metadata__['a']", "1, expected a string"),
    "metadata a negative number": ({"__metadata__": {"a": -1}, **one()}, "__metadata__['a']", "-1, expected a string"),
    "metadata an object": ({"__metadata__": {"a": {}}, **one()}, "__metadata__['a']", "{}, expected a string"),
    "metadata half a character": (text(f'{{"__metadata__":{{"a":"\\ud800"}},{W}}}'), "__metadata__['a']", "a string"),
    "name half a character": (text(f'{{"\\ud800":{ENTRY}}}'), PLAIN, "half of a character"),
    "entry a list": ({"w": ["U8", [1], [0, 1]]}, "tensor 'w'", "expected exactly dtype, shape and data_offsets"),
    "entry null": ({"w": None}, "tensor 'w'", "has None, expected exactly"),
    "entry empty": ({"w": {}}, "tensor 'w'", "has nothing, expected exactly"),
    "entry with more": (one(stride=[1]), "tensor 'w'", "expected exactly"),
    "no dtype": ({"w": {"shape": [1], "data_offsets": [0, 1]}}, "tensor 'w'", "expected exactly"),
    "no shape": ({"w": {"dtype": "U8", "data_offsets": [0, 1]}}, "tensor 'w'", "expected exactly"),
    "no offsets": ({"w": {"dtype": "U8", "shape": [1]}}, "tensor 'w'", "expected exactly"),
    "unknown dtype": (one(dtype="I4"), DTYPE, "'I4', expected one of BOOL, "),
    "dtype in small letters": (one(dtype="u8"), DTYPE, "'u8', expected one of"),
    "dtype a number": (one(dtype=8), DTYPE, "8, expected one of"),
    "dtype a list": (one(dtype=["U8"]), DTYPE, "['U8'], expected one of"),
    "dtype null": (one(dtype=None), DTYPE, "None, expected one of"),
    "long dtype": (one(dtype="U" * 100_000), DTYPE, "..."),
    "long name": ({"n" * 100_000: entry("U9")}, "tensor 'nnnnnnnnnnnnnnnnnnnnnnnnnn", "expected one of"),
    "shape a number": (one(shape=1), SHAPE, "1, expected a list"),
    "shape null": (one(shape=None), SHAPE, "None, expected a list"),
    "shape text": (one(shape="1"), SHAPE, "'1', expected a list"),
    "shape an object": (one(shape={}), SHAPE, "{}, expected a list"),
    "negative": (one(shape=[-1]), SHAPE, "[-1], expected a list of numbers below 2**63"),
    "negative pair": (one(shape=[-1, -1]), SHAPE, "[-1, -1], expected"),
    "fraction": (one(shape=[1.0]), SHAPE, "[1.0], expected"),
    "exponent": (shaped("1e0"), SHAPE, "[1.0], expected"),
    "NaN": (shaped("NaN"), SHAPE, "[nan], expected"),
    "Infinity": (text('{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,Infinity]}}'), OFFSETS, "inf"),
    "bool": (one(shape=[True]), SHAPE, "[True], expected"),
    "text in the shape": (one(shape=["1"]), SHAPE, "['1'], expected"),
    "nested shape": (one(shape=[[1]]), SHAPE, "[[1]], expected"),
    "20 digits": (one(shape=[2**64]), SHAPE, "numbers below 2**63"),
    "4000 digits": (shaped("9" * 4000), SHAPE, "numbers below 2**63"),
    "4000 digits, empty": (shaped("0," + "9" * 4000), SHAPE, "numbers below 2**63"),
    "50000 digits": (shaped("9" * 50000), PLAIN, "thousands of digits"),
    "2**63": (one(shape=[2**63]), SHAPE, "numbers below 2**63"),
    "product of 2**64": (one(shape=[2**32, 2**32]), SHAPE, "more than any memory holds"),
    "product that is 1 in 64 bits": (one(shape=[2**63 - 1, 2**63 - 1]), SHAPE, "more than any memory holds"),
    "bytes of 2**64": (one(dtype="F64", shape=[2**61]), SHAPE, "more than any memory holds"),
    "empty, yet too large": (one(shape=[0, 2**62, 2**62], data_offsets=[0, 0]), SHAPE, "more than any memory holds"),
    "four bits, empty, too large": (one(dtype="F4", shape=[0, 2**63], data_offsets=[0, 0]), SHAPE, "numbers below 2**63"),
    "65 axes": (one(shape=[1] * 65), SHAPE, "65 axes, expected at most 64"),
    "a million axes": (one(shape=[1] * 1_000_000), SHAPE, "1000000 axes"),
    "half a byte": (one(dtype="F4"), SHAPE, "takes 0 bytes and 4 bits, expected whole bytes"),
    "offsets a number": (one(data_offsets=1), OFFSETS, "1, expected two numbers"),
    "offsets null": (one(data_offsets=None), OFFSETS, "None, expected two numbers"),
    "one offset": (one(data_offsets=[0]), OFFSETS, "[0], expected two numbers"),
    "three offsets": (one(data_offsets=[0, 1, 1]), OFFSETS, "[0, 1, 1], expected two numbers"),
    "negative offsets": (one(data_offsets=[-1, 0]), OFFSETS, "[-1, 0], expected two numbers"),
    "fractions as offsets": (one(data_offsets=[0.0, 1.0]), OFFSETS, "expected two numbers"),
    "backwards": (one(data_offsets=[1, 0]), OFFSETS, "[1, 0]: -1 bytes, expected 1 for shape [1] of uint8"),
    "too few bytes": (one(dtype="F32"), OFFSETS, "[0, 1]: 1 bytes, expected 4 for shape [1] of float32"),
    "too many bytes": (one(data_offsets=[0, 2]), OFFSETS, "2 bytes, expected 1"),
    "offsets behind the file": (one(data_offsets=[2**62, 2**62 + 1]), OFFSETS, "expected 0: it leaves"),
    "the same twice": (pair((0, 1), (0, 1)), OFFSETS, "begins at 0, expected 1: it overlaps the one before"),
    "overlap": (pair((0, 2), (1, 3)), OFFSETS, "begins at 1, expected 2: it overlaps"),
    "inside another": (pair((0, 9), (3, 5)), OFFSETS, "begins at 3, expected 9: it overlaps"),
    "hole": (pair((0, 1), (3, 4)), OFFSETS, "begins at 3, expected 1: it leaves 2 bytes unused"),
    "hole before the first": (pair((1, 2), (2, 3)), "tensor 'v': data_offsets", "expected 0: it leaves 1 bytes unused"),
    "empty one inside another": (pair((0, 2), (1, 1)), OFFSETS, "begins at 1, expected 2"),
    "cut short": (pair((0, 1), (1, 9)), "data", "1 bytes, expected the 9 of the tensors: it is cut short"),
    "more behind the data": ({}, "data", "1 bytes, expected the 0 of the tensors: 1 belong to no tensor"),
}  # fmt: skip


def refused(path: Path, field: str, part: str) -> None:
    """Opening raises ValueError, and a short message that names the file and the field."""
    before = descriptors()
    with pytest.raises(ValueError) as caught:
        tenon.open(path)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.startswith(f"tenon: {path}: {field}"), message
    assert part in message, message
    assert len(message) < len(str(path)) + 400
    message.encode()  # can be printed
    assert descriptors() == before and not mapped(path)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path, name):
    header, field, part = MALFORMED[name]
    refused(written(tmp_path / "a.safetensors", header, b"x"), field, part)


def test_the_good_header_is_good(tmp_path):
    """So that what is wrong above is only what it says."""
    assert raw(tenon.open(written(tmp_path / "a.safetensors", text(f"{{{W}}}"), b"x"))["w"]) == b"x"
    assert raw(tenon.open(written(tmp_path / "a.safetensors", one(), b"x"))["w"]) == b"x"


def test_header_length_lies(tmp_path):
    path = tmp_path / "a.safetensors"
    refused(written(path, one(), b"x", length=10_000), "header length", "10000 bytes, expected at most the")
    for length in (100_000_001, 2**63, 2**64 - 1):
        written(path, one(), b"x", length=length)
        refused(path, "header length", f"{length} bytes, expected at most 100000000")
    refused(written(path, one(), b"x", length=5), "header", "not JSON")
    refused(written(path, one(), b"x", length=0), "header", "expected a JSON object")


def test_longest_header(tmp_path):
    """100,000,000 bytes are as many as the reference takes."""
    path = tmp_path / "a.safetensors"
    body = json.dumps(one()).encode()
    for size, fits in ((100_000_000, True), (100_000_001, False)):
        written(path, body + b" " * (size - len(body)), b"x")
        if fits:
            assert list(tenon.open(path)) == ["w"]
        else:
            refused(path, "header length", "expected at most 100000000")


def test_cut_short_anywhere(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"v": np.zeros(2, "float16"), "w": np.zeros((2, 2))}, path)
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=rf"tenon: {re.escape(str(path))}: (header length|data): "):
            tenon.open(path)


def test_a_hundred_thousand_tensors(tmp_path):
    model = tenon.open(many(tmp_path, 100_000))
    assert len(model) == 100_000 and model["model.layers.99999.weight"].shape == (2, 3)


def test_each_tensor_costs_the_same_however_many_there_are(tmp_path):
    few, more = (events(many(tmp_path, count)) for count in (500, 2_000))
    assert few < more < 4.2 * few


def many(folder: Path, count: int) -> Path:
    header = {f"model.layers.{i}.weight": entry("F32", [2, 3], [24 * i, 24 * i + 24]) for i in range(count)}
    path = written(folder / f"{count}.safetensors", header)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 24 * count)
    return path


def events(path: Path) -> int:
    """How many calls and lines of Python opening it takes: as many on every machine, however busy."""
    count = 0

    def counting(*_):
        nonlocal count
        count += 1
        return counting

    sys.settrace(counting)
    try:
        tenon.open(path)
    finally:
        sys.settrace(None)
    return count


# --- anything at all --------------------------------------------------------------------------------


def agree(path: Path) -> None:
    """Opens to what the reference reads, or is refused by ValueError."""
    try:
        model = tenon.open(path)
    except ValueError as error:
        assert str(error).startswith(f"tenon: {path}: ")
        return
    content = path.read_bytes()
    if not has("safetensors") or b"-0" in content:  # zero in JSON; the reference takes it for a fraction
        return
    theirs = dict(need("safetensors").deserialize(content))
    assert set(model) == set(theirs)
    for name, their in theirs.items():
        try:
            t = model[name]
        except BufferError as error:
            assert "not aligned" in str(error)
            continue
        assert t.shape == tuple(their["shape"]) and t.nbytes == len(their["data"])
        data = tenon.from_pointer(t.data_ptr, (t.nbytes,), "uint8", owner=t, readonly=True)
        assert memoryview(data).tobytes() == bytes(their["data"])


TENSORS = {"v": entry("F32", [2, 3], [0, 24]), "w": entry("F4", [4], [24, 26])}
SEED = json.dumps({"__metadata__": {"a": "b"}, **TENSORS}).encode()
PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"-", b"0", b"1", b"9", b"24", b"26", b"true", b"null", b"NaN",
          b"1.5", b"1e2", b"\\", b"\\ud800", b"U8", b"F32", b"BF16", b"F6_E2M3", b"C64", b"shape", b"__metadata__",
          b"\xff", b" "]  # fmt: skip
pieces = st.sampled_from(PIECES) | st.binary(max_size=4)
edits = st.lists(st.tuples(st.integers(0, len(SEED)), st.integers(0, 4), pieces), max_size=3)


@settings(max_examples=500, deadline=None)
@given(edits=edits, data=st.sampled_from([26, 26, 26, 0, 25, 27]))
def test_edited_headers(tmp_path_factory, edits, data):
    header = SEED
    for at, dropped, put in edits:
        header = header[:at] + put + header[at + dropped :]
    agree(written(tmp_path_factory.getbasetemp() / "edited.safetensors", header, bytes(range(data))))


odd_counts = [-1, 2**31, 2**32, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 1.0, True, None, "1", []]
counts = st.integers(0, 9) | st.sampled_from(odd_counts)
entries = st.builds(
    entry,
    dtype=st.sampled_from(["U8", "F16", "F32", "F4", "F6_E3M2", "C64", "BOOL", "I4", 3]),
    shape=st.lists(counts, max_size=4) | counts,
    offsets=st.lists(counts, min_size=2, max_size=2) | st.lists(counts, max_size=3),
)


@settings(max_examples=500, deadline=None)
@given(header=st.dictionaries(st.text(max_size=3), entries, max_size=3), data=st.integers(0, 20))
def test_made_up_headers(tmp_path_factory, header, data):
    agree(written(tmp_path_factory.getbasetemp() / "made_up.safetensors", header, bytes(range(data))))


shapes = st.lists(st.integers(0, 3), max_size=3)
chunks = st.lists(st.tuples(st.sampled_from([("U8", 1), ("F16", 2), ("F64", 8), ("C64", 8)]), shapes), max_size=5)


@settings(max_examples=200, deadline=None)
@given(chunks=chunks, order=st.randoms())
def test_well_formed_headers_open(tmp_path_factory, chunks, order):
    """What keeps to the format is never refused."""
    header: dict[str, Any] = {}
    end = 0
    for i, ((dtype, size), shape) in enumerate(chunks):
        begin, end = end, end + size * int(np.prod(shape))
        header[f"t{i}"] = entry(dtype, shape, [begin, end])
    names = list(header)
    order.shuffle(names)
    path = tmp_path_factory.getbasetemp() / "good.safetensors"
    written(path, {name: header[name] for name in names}, bytes(end))
    assert list(tenon.open(path)) == names
    agree(path)


@settings(max_examples=200, deadline=None)
@given(
    content=st.binary(min_size=1, max_size=100),
    prefix=st.sampled_from([b"", b"\x10\0\0\0\0\0\0\0", b"\x10\0\0\0\0\0\0\0{"]),
)
def test_random_bytes(tmp_path_factory, content, prefix):
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    path.write_bytes(prefix + content)
    agree(path)
