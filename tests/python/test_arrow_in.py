# tests/python/test_arrow_in.py: arrays, device arrays and streams of Arrow's C interfaces: offsets, lists, nulls, refusals, lies, one release.
from __future__ import annotations

import array
import ctypes
import gc
import struct
import weakref

import pytest
import tenon
import tenon_probe
from arrow_producers import (
    FORMATS,
    Answer,
    Array,
    Base,
    Device,
    Stream,
    bitmap,
    list_schema,
    lists,
    numbers,
    pack,
)
from fake_cuda import RECORDS_ALL, Driver, stream_handle, within
from isolation import LEAKS_BY_DESIGN, isolated, run_isolated, table
from producers import NOWHERE, READ_ONLY, Producer, Seen, exactly_once, refuse, take

CUDA, CUDA_HOST, ROCM, MANAGED = 2, 3, 10, 13


def prepare_child():
    Driver()  # before anybody looks for a real one


def values(tensor) -> list:
    letter = dict(FORMATS.values())[tensor.dtype]
    return memoryview(tensor).tolist() if letter != "e" else list(struct.unpack(f"{tensor.size}e", bytes(tensor)))


def taken(producer, **options):
    """Values, shape and address of what is taken, everything given back by the end."""
    with exactly_once(producer.struct, exports=None):
        tensor = tenon.asdlpack(producer, **options)
        # What is left in the producer's capsules is gone by now; the array is ours.
        out, given_back = producer.struct.handed_out, producer.struct.given_back
        assert given_back == (out[0], out[1] - 1, out[2]), (out, given_back)
        seen = Seen(tensor)
        seen.values = values(tensor) if seen.device == "cpu" else None
        del tensor
    return seen


def refused(producer, match, exception=BufferError, **options):
    with exactly_once(producer.struct, exports=None):
        return refuse(producer, exception, match, **options)


# --- arrays of numbers ------------------------------------------------------------------------------


def is_taken(format):
    producer = Array(numbers(format), {"format": format})
    seen = taken(producer)
    assert (seen.values, seen.dtype, seen.shape, seen.strides) == ([*range(6)], FORMATS[format][0], (6,), (1,))
    assert seen.data_ptr == producer.struct.address, "the memory is the producer's own"
    assert seen.readonly and seen.flags == READ_ONLY and seen.device == "cpu" and seen.version is None
    assert producer.calls == ["array"]


table(globals(), {f"test_format_{FORMATS[f][0]}": dict(format=f) for f in FORMATS}, is_taken)


@isolated
def test_F80_offset_is_applied():
    for format, (_, letter) in FORMATS.items():
        producer = Array(numbers(format, 10, offset=3), {"format": format})
        seen = taken(producer)
        assert seen.values == [*range(3, 10)]
        assert seen.data_ptr == producer.struct.address + 3 * struct.calcsize(letter)


@isolated
def test_nothing_has_no_address():
    for buffers in ([None, None], [None, b""], [None, pack("i", range(6))]):
        producer = Array({"length": 0, "buffers": buffers, "null_count": -1})
        seen = taken(producer)
        assert (seen.shape, seen.size, seen.dtype, seen.readonly) == ((0,), 0, "int32", True)
    producer = Array(numbers(count=6, offset=6))
    assert taken(producer).shape == (0,)


@isolated
def test_schema_flags_and_foreign_metadata_mean_nothing():
    for flags in (0, 2, 7, -1, 1 << 62):
        assert taken(Array(schema={"format": "i", "flags": flags})).values == [*range(6)]
    odd = struct.pack("=iii", 1, 1, 1)[:8] + b"k" + struct.pack("=i", 1) + b"v"
    assert taken(Array(schema={"format": "i", "metadata": odd})).values == [*range(6)]
    # Of a primitive it is not even read.
    assert taken(Array(schema={"format": "i", "metadata": b"\xff" * 8})).values == [*range(6)]


@isolated
def test_memory_is_kept_until_the_tensor_goes():
    producer = Array()
    counter, seen = producer.struct, weakref.ref(producer)
    with exactly_once(counter, exports=2):
        tensor = tenon.asdlpack(producer)
        del producer
        gc.collect()
        assert seen() is None, "the struct is what keeps the memory, not the object"
        assert counter.given_back == (1, 0, 0)
        assert values(tensor) == [*range(6)]
        view = memoryview(tensor)
        del tensor
        assert counter.given_back == (1, 0, 0) and view.tolist() == [*range(6)]
        del view
        assert counter.given_back == (1, 1, 0)


@isolated
def test_borrow_and_hold():
    producer = Array(numbers("f"), {"format": "f"})
    with exactly_once(producer.struct, exports=4):
        assert tenon_probe.borrow(producer)["sum"] == 15
        held = tenon_probe.hold(producer)
        held.drop_on_thread()
        assert producer.struct.elsewhere
        del held


@isolated
def test_release_with_an_exception_pending():
    producer = Array()
    with exactly_once(producer.struct, exports=2):
        held = tenon_probe.hold(producer)
        mine = ValueError("mine")
        assert held.drop_with_error(mine) is mine


@isolated
def test_options():
    memory = array.array("i", range(6))  # what is made anew at every look is a copy: test_fresh_memory.py
    stays = Array({"length": 6, "buffers": [None, memory.buffer_info()[0]]})
    assert taken(stays, copy=False, device="cpu").readonly
    refused(Array(), "read-only", readonly=False)
    producer = Array()
    with exactly_once(producer.struct, exports=2):
        copied = tenon.asdlpack(producer, copy=True, readonly=False)
        assert producer.struct.given_back == (1, 1, 0), "the original is not needed any more"
        assert values(copied) == [*range(6)] and not copied.readonly
    producer = Array()
    refuse(producer, BufferError, "copy=False", device="cuda", copy=False)
    refuse(object(), TypeError, "no __arrow_c_array__", device="cuda")
    refuse(Array(), BufferError, "host memory", device=(8, 0))


@isolated
def test_looking_takes_nothing_that_the_producer_keeps():
    class Keeps(Array):
        kept = None

        def __arrow_c_array__(self, requested_schema=None):
            self.kept = self.kept or super().__arrow_c_array__(requested_schema)
            return self.kept

    producer = Keeps()
    with exactly_once(producer.struct, exports=2):
        for _ in range(2):
            seen = tenon.inspect(producer)
            assert (seen.shape, seen.rung, seen.owner) == ((6,), "Arrow", "the capsule")
        assert producer.struct.given_back == (0, 0, 0)
        t = tenon.asdlpack(producer)
        assert values(t) == [*range(6)] and tenon.inspect(producer).problem is not None
        producer.kept = None
        del t


# --- lists of a fixed size --------------------------------------------------------------------------


@isolated
def test_lists():
    producer = Array(lists(3, numbers(count=12)), list_schema(3))
    seen = taken(producer)
    assert (seen.shape, seen.strides, seen.data_ptr) == ((4, 3), (3, 1), producer.struct.address)
    assert seen.values == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


@isolated
def test_lists_of_lists():
    producer = Array(lists(2, lists(3, numbers(count=24))), list_schema(2, list_schema(3)))
    seen = taken(producer)
    assert (seen.shape, seen.strides) == ((4, 2, 3), (6, 3, 1))
    assert seen.values[3] == [[18, 19, 20], [21, 22, 23]]


@isolated
def test_offsets_of_lists_and_of_their_values_add_up():
    # Two lists from the second on; the values begin at their own third.
    producer = Array(lists(2, numbers(count=12, offset=3), length=2, offset=1), list_schema(2))
    seen = taken(producer)
    assert (seen.shape, seen.values) == ((2, 2), [[5, 6], [7, 8]])
    assert seen.data_ptr == producer.struct.address + 5 * 4
    inner = lists(2, numbers(count=30, offset=1), length=13, offset=1)
    producer = Array(lists(3, inner, length=2, offset=1), list_schema(3, list_schema(2)))
    seen = taken(producer)
    # The second list of three begins at the (1 + 3)th pair, the pair at value 1 + 2 * 4.
    assert seen.shape == (2, 3, 2) and seen.values[0] == [[9, 10], [11, 12], [13, 14]]


@isolated
def test_lists_of_no_size_and_no_lists():
    assert taken(Array(lists(1, numbers(), length=5), list_schema(0))).shape == (5, 0)
    assert taken(Array({"length": 0, "buffers": [None], "children": [numbers()]}, list_schema(3))).shape == (0, 3)


@isolated
def test_values_beyond_the_lists_do_not_matter():
    assert taken(Array(lists(3, numbers(count=11)), list_schema(3))).shape == (3, 3)


def is_malformed_list(array, schema=None, match="length"):
    refused(Array(array, schema or list_schema(3)), match, tenon.MalformedError)


table(globals(), {
    "test_list_longer_than_its_values": dict(array=lists(3, numbers(count=12), length=5)),
    "test_list_offset_beyond_its_values": dict(array=lists(3, numbers(count=12), length=3, offset=2)),
    "test_list_values_cut_by_their_offset": dict(array=lists(3, numbers(count=12, offset=1), length=4)),
    "test_list_size_overflows": dict(
        array=lists(3, numbers(), length=2**62), schema=list_schema(2**62), match="64 bits"),
    "test_list_without_child": dict(array=numbers(buffers=[None]), match="n_children"),
    "test_list_with_two_children": dict(
        array={"length": 1, "buffers": [None], "children": [numbers(), numbers()]}, match="n_children"),
    "test_list_that_says_it_has_a_child": dict(
        array={"length": 1, "buffers": [None], "n_children": 1}, match="children"),
    "test_list_child_is_null": dict(array=lists(3, numbers(), child_address=0), match="children"),
    "test_list_child_is_askew": dict(array=lists(3, numbers(), child_address=NOWHERE + 4), match="children"),
    "test_list_children_are_a_small_number": dict(array=lists(3, numbers(), children_address=8), match="children"),
    "test_list_child_is_released": dict(array=lists(3, numbers(released=True)), match="released"),
    "test_list_with_two_buffers": dict(array=lists(3, numbers(), buffers=[None, None]), match="n_buffers"),
    "test_list_child_with_a_negative_length": dict(array=lists(3, numbers(length=-6), length=2)),
    "test_list_child_with_a_negative_offset": dict(array=lists(3, numbers() | {"offset": -1}), match="offset"),
    "test_list_schema_without_child": dict(
        array=lists(3, numbers()), schema={"format": "+w:3"}, match="n_children"),
    "test_list_schema_says_it_has_a_child": dict(
        array=lists(3, numbers()), schema={"format": "+w:3", "n_children": 1}, match="children"),
    "test_list_schema_child_is_null": dict(
        array=lists(3, numbers()), schema=list_schema(3, child_address=0), match="schema"),
    "test_list_schema_child_is_askew": dict(
        array=lists(3, numbers()), schema=list_schema(3, child_address=NOWHERE + 4), match="schema"),
    "test_list_schema_child_is_released": dict(
        array=lists(3, numbers()), schema=list_schema(3, {"format": "i", "released": True}), match="released"),
    "test_list_size_is_missing": dict(array=lists(3, numbers()), schema=list_schema(""), match="format"),
    "test_list_size_is_negative": dict(array=lists(3, numbers()), schema=list_schema("-3"), match="format"),
    "test_list_size_is_no_number": dict(array=lists(3, numbers()), schema=list_schema("3x"), match="format"),
    "test_list_size_has_a_sign": dict(array=lists(3, numbers()), schema=list_schema("+3"), match="format"),
    "test_list_size_is_too_large": dict(array=lists(3, numbers()), schema=list_schema(2**63), match="format"),
}, is_malformed_list)


@isolated
def test_too_many_levels():
    schema, array = {"format": "i"}, numbers(count=1)
    for _ in range(63):
        schema, array = list_schema(1, schema), lists(1, array)
    assert taken(Array(array, schema)).shape == (1,) * 64
    refused(Array(lists(1, array), list_schema(1, schema)), "too many axes")


# --- arrow.fixed_shape_tensor -----------------------------------------------------------------------


def metadata(**pairs) -> bytes:
    out = struct.pack("=i", len(pairs))
    for key, value in pairs.items():
        for text in ("ARROW:extension:" + key, value):
            out += struct.pack("=i", len(text)) + text.encode()
    return out


def tensor_schema(parameters: str, size: int = 6, name: str = "arrow.fixed_shape_tensor") -> dict:
    return list_schema(size, metadata=metadata(name=name, metadata=parameters))


def is_tensor(parameters, shape, strides):
    seen = taken(Array(lists(6, numbers(count=12)), tensor_schema(parameters)))
    assert (seen.shape, seen.strides) == (shape, strides)


table(globals(), {
    "test_tensor": dict(parameters='{"shape":[2,3]}', shape=(2, 2, 3), strides=(6, 3, 1)),
    "test_tensor_with_spaces": dict(parameters=' { "shape" : [ 2 , 3 ] } ', shape=(2, 2, 3), strides=(6, 3, 1)),
    "test_tensor_permuted": dict(
        parameters='{"shape":[2,3],"permutation":[1,0]}', shape=(2, 3, 2), strides=(6, 1, 3)),
    "test_tensor_permuted_in_three": dict(
        parameters='{"permutation":[2,0,1],"shape":[1,2,3]}', shape=(2, 3, 1, 2), strides=(6, 1, 6, 3)),
    "test_tensor_of_one_axis": dict(parameters='{"shape":[6]}', shape=(2, 6), strides=(6, 1)),
    "test_tensor_names_are_skipped": dict(
        parameters='{"dim_names":["C","\\"]}",""],"x":{"y":[1,{"z":-1.5e3}],"w":null},"shape":[3,2]}',
        shape=(2, 3, 2), strides=(6, 2, 1)),
    "test_tensor_permutation_may_be_null": dict(
        parameters='{"shape":[3,2],"permutation":null}', shape=(2, 3, 2), strides=(6, 2, 1)),
}, is_tensor)


@isolated
def test_tensor_without_axes_is_one_number():
    seen = taken(Array(lists(1, numbers()), tensor_schema('{"shape":[]}', size=1)))
    assert (seen.shape, seen.values) == ((6,), [*range(6)])


@isolated
def test_tensor_inside_lists():
    schema = list_schema(2, tensor_schema('{"shape":[2,3],"permutation":[1,0]}'))
    seen = taken(Array(lists(2, lists(6, numbers(count=24))), schema))
    assert (seen.shape, seen.strides) == ((2, 2, 3, 2), (12, 6, 1, 3))


@isolated
def test_another_extension_is_its_storage():
    assert taken(Array(lists(6, numbers(count=12)), tensor_schema("anything", name="my.own"))).shape == (2, 6)


def is_lying_tensor(schema):
    refused(Array(lists(6, numbers(count=12)), schema), "metadata", tenon.MalformedError)


def raw_metadata(data: bytes) -> dict:
    return dict(schema=list_schema(6, metadata=data))


table(globals(), {
    **{f"test_lie_{name}": dict(schema=tensor_schema(text)) for name, text in {
        "shape_of_another_size": '{"shape":[2,2]}',
        "shape_that_overflows": '{"shape":[4294967296,4294967296,4294967296]}',
        "shape_beyond_64_bits": '{"shape":[99999999999999999999]}',
        "shape_with_a_negative_extent": '{"shape":[-2,-3]}',
        "shape_of_fractions": '{"shape":[2.0,3]}',
        "shape_of_texts": '{"shape":["2",3]}',
        "shape_is_a_number": '{"shape":6}',
        "no_shape": '{"permutation":[0]}',
        "nothing": "",
        "empty_object": "{}",
        "no_object": "[2,3]",
        "unfinished": '{"shape":[2,3]',
        "unfinished_text": '{"sha',
        "unfinished_escape": '{"sha\\',
        "more_behind": '{"shape":[2,3]}}',
        "comma_at_the_end": '{"shape":[2,3,]}',
        "too_deep": '{"x":' + "[" * 50 + "]" * 50 + ',"shape":[2,3]}',
        "too_many_axes": '{"shape":[' + "1," * 70 + "6]}",
        "permutation_with_a_repeat": '{"shape":[2,3],"permutation":[0,0]}',
        "permutation_out_of_range": '{"shape":[2,3],"permutation":[0,2]}',
        "permutation_far_out_of_range": '{"shape":[2,3],"permutation":[0,65]}',
        "permutation_too_short": '{"shape":[2,3],"permutation":[0]}',
        "permutation_too_long": '{"shape":[2,3],"permutation":[0,1,2]}',
        "permutation_is_text": '{"shape":[2,3],"permutation":"10"}',
    }.items()},
    "test_lie_negative_count": raw_metadata(struct.pack("=i", -1)),
    "test_lie_large_count": raw_metadata(struct.pack("=i", 2**31 - 1)),
    "test_lie_negative_length": raw_metadata(struct.pack("=ii", 1, -5)),
    "test_lie_large_length": raw_metadata(struct.pack("=ii", 1, 2**31 - 1)),
}, is_lying_tensor)


# --- nulls ------------------------------------------------------------------------------------------


@isolated
def test_F80_nulls_that_are_counted():
    text = refused(Array(numbers(null_count=2)), "null_count", tenon.MalformedError)
    assert "no bitmap" in text
    text = refused(Array(numbers(null_count=2, buffers=[bitmap("110101"), pack("i", range(6))])), "null_count")
    assert "got 2" in text and "fill_null" in text and "drop_null" in text


def has_nulls(bits, count, offset=0, length=None):
    """A bitmap that nobody has counted: the nulls from `offset` on, or none."""
    length = len(bits) - offset if length is None else length
    producer = Array({"length": length, "offset": offset, "null_count": -1,
                      "buffers": [bitmap(bits), pack("i", range(len(bits)))]})
    if count:
        assert f"got {count}" in refused(producer, "nulls")
    else:
        assert taken(producer).values == [*range(offset, offset + length)]


table(globals(), {
    "test_bitmap_all_valid": dict(bits="1" * 6, count=0),
    "test_bitmap_all_null": dict(bits="0" * 6, count=6),
    "test_bitmap_first": dict(bits="0" + "1" * 199, count=1),
    "test_bitmap_last": dict(bits="1" * 199 + "0", count=1),
    "test_bitmap_in_a_word": dict(bits="1" * 70 + "00" + "1" * 128, count=2),
    "test_bitmap_alternating": dict(bits="10" * 100, count=100),
    "test_bitmap_long_and_valid": dict(bits="1" * 1000, count=0),
    "test_bitmap_null_before_the_offset": dict(bits="0001" + "1" * 200, count=0, offset=3),
    "test_bitmap_null_at_the_offset": dict(bits="1110" + "1" * 200, count=1, offset=3),
    "test_bitmap_null_behind_the_end": dict(bits="1" * 130 + "0" * 9, count=0, offset=5, length=125),
    "test_bitmap_null_at_the_end": dict(bits="1" * 130 + "0" * 9, count=1, offset=5, length=126),
    "test_bitmap_whole_words": dict(bits="1" * 64 + "0" * 8, count=0, length=64),
}, has_nulls)


@isolated
def test_not_counted_and_no_bitmap_is_all_valid():
    assert taken(Array(numbers(null_count=-1))).values == [*range(6)]


@isolated
def test_counted_as_none_is_believed():
    assert taken(Array(numbers(null_count=0, buffers=[bitmap("000000"), pack("i", range(6))]))).size == 6


@isolated
def test_nulls_of_lists_and_inside_of_them():
    child = numbers(count=12)
    valid = bitmap("1111")
    assert taken(Array(lists(3, child, buffers=[valid], null_count=-1), list_schema(3))).shape == (4, 3)
    refused(Array(lists(3, child, buffers=[bitmap("1011")], null_count=-1), list_schema(3)), "nulls")
    refused(Array(lists(3, child, buffers=[bitmap("1011")], null_count=1), list_schema(3)), "nulls")
    bits = [bitmap("1" * 7 + "0" + "1" * 4), pack("i", range(12))]
    for count in (-1, 1):
        inner = numbers(count=12, buffers=bits, null_count=count)
        assert "got 1" in refused(Array(lists(3, inner), list_schema(3)), "nulls")
        # The lists shown end before the null, or begin behind it.
        assert taken(Array(lists(3, inner, length=2), list_schema(3))).shape == (2, 3)
        assert taken(Array(lists(3, inner, length=1, offset=3), list_schema(3))).values == [[9, 10, 11]]
        refused(Array(lists(3, inner, length=1, offset=2), list_schema(3)), "nulls")


# --- what is no tensor ------------------------------------------------------------------------------


def is_refused(format, match, children=0, **fields):
    schema = {"format": format, "children": [{"format": "i"}] * children, **fields}
    text = refused(Array(numbers(), schema), match)
    assert "; " in text.split("Arrow: ")[1], "a way out"


table(globals(), {
    "test_booleans": dict(format="b", match="uint8"),
    "test_null_type": dict(format="n", match="null type"),
    "test_strings": dict(format="u", match="strings"),
    "test_large_strings": dict(format="U", match="strings"),
    "test_string_views": dict(format="vu", match="strings"),
    "test_binary": dict(format="z", match="binary"),
    "test_large_binary": dict(format="Z", match="binary"),
    "test_binary_views": dict(format="vz", match="binary"),
    "test_fixed_size_binary": dict(format="w:16", match="binary"),
    "test_decimal": dict(format="d:10,2", match="decimals.*cast"),
    "test_decimal256": dict(format="d:10,2,256", match="decimals.*cast"),
    "test_date32": dict(format="tdD", match="dates.*int32"),
    "test_date64": dict(format="tdm", match="dates.*int64"),
    "test_time32": dict(format="tts", match="times of day.*int32"),
    "test_time64": dict(format="ttu", match="times of day.*int64"),
    "test_timestamp": dict(format="tsu:", match="timestamps.*int64"),
    "test_timestamp_with_zone": dict(format="tsn:America/Argentina/ComodRivadavia", match="timestamps"),
    "test_timestamp_with_an_odd_zone": dict(format="tsn:Z\u00fcrich", match="timestamps"),
    "test_duration": dict(format="tDn", match="durations.*int64"),
    "test_interval": dict(format="tin", match="intervals"),
    "test_struct": dict(format="+s", match="column", children=2),
    "test_list": dict(format="+l", match="fixed size", children=1),
    "test_large_list": dict(format="+L", match="fixed size", children=1),
    "test_list_view": dict(format="+vl", match="fixed size", children=1),
    "test_map": dict(format="+m", match="maps", children=1),
    "test_dense_union": dict(format="+ud:0,1", match="unions", children=2),
    "test_sparse_union": dict(format="+us:0,1", match="unions", children=2),
    "test_run_end": dict(format="+r", match="run-end", children=2),
    "test_dictionary": dict(format="i", match="dictionary_decode", dictionary={"format": "u"}),
    "test_format_of_the_future": dict(format="q16", match="none of the Arrow formats"),
    "test_format_with_more_behind": dict(format="ii", match="none of the Arrow formats"),
    "test_long_format": dict(format="x" * 5000, match="none of the Arrow formats"),
}, is_refused)


@isolated
def test_lists_of_what_is_no_number():
    refused(Array(lists(3, numbers()), list_schema(3, "u")), "strings")
    refused(Array(lists(3, numbers()), list_schema(3, {"format": "i", "dictionary": {"format": "u"}})), "dictionary")


# --- lies -------------------------------------------------------------------------------------------


def is_malformed(match, array=None, schema=None, **fields):
    producer = Array(numbers(**fields) if array is None else array, schema)
    text = refused(producer, match, tenon.MalformedError)
    assert "Arrow: " in text
    # The same in a stream, where the struct is not in a capsule.
    if not fields.keys() & {"name", "shift", "released"} and not (schema or {}).keys() & {"name", "shift"}:
        if (array or fields).get("length") != 0:
            refused(Stream(numbers(**fields) if array is None else array, schema=schema), match,
                    tenon.MalformedError)


HIGH = 2**63 - 1
table(globals(), {
    "test_negative_length": dict(match="length", length=-1),
    "test_lowest_length": dict(match="length", length=-(2**63)),
    "test_negative_offset": dict(match="offset", array={**numbers(), "offset": -1}),
    "test_null_count_below_minus_one": dict(match="null_count", null_count=-2),
    "test_more_nulls_than_items": dict(match="null_count", null_count=7),
    "test_offset_and_length_overflow": dict(match="offset", array={**numbers(), "offset": HIGH}),
    "test_length_overflows_the_bytes": dict(match="Arrow", array={**numbers(), "length": HIGH}),
    "test_offset_overflows_the_bytes": dict(match="offset", array={**numbers(), "offset": HIGH - 6}),
    "test_offset_wraps_the_address_space": dict(
        match="offset|address", array={**numbers(), "offset": 2**61 - 1, "buffers": [None, 2**56 - 8]}),
    "test_values_where_no_program_has_any": dict(match="buffers", array={**numbers(), "buffers": [None, 2**63]}),
    "test_no_buffers": dict(match="n_buffers", buffers=[]),
    "test_one_buffer": dict(match="n_buffers", buffers=[None]),
    "test_three_buffers": dict(match="n_buffers", buffers=[None, b"x" * 24, None]),
    "test_negative_n_buffers": dict(match="n_buffers", n_buffers=-1),
    "test_a_child": dict(match="n_children", children=[numbers()]),
    "test_says_it_has_a_child": dict(match="n_children", n_children=1),
    "test_negative_n_children": dict(match="n_children", n_children=-1),
    "test_dictionary_unknown_to_the_schema": dict(match="dictionary", dictionary=numbers()),
    "test_buffers_are_null": dict(match="buffers", buffers_address=0),
    "test_buffers_are_a_small_number": dict(match="buffers", buffers_address=16),
    "test_buffers_are_askew": dict(match="buffers", buffers_address=NOWHERE + 1),
    "test_values_are_null": dict(match="buffers", buffers=[None, None]),
    "test_values_are_a_small_number": dict(match="buffers", buffers=[None, 64]),
    "test_bitmap_is_a_small_number": dict(match="buffers", null_count=-1, buffers=[8, b"x" * 24]),
    "test_array_released": dict(match="released", released=True),
    "test_format_is_null": dict(match="format", schema={"format": None}),
    "test_format_is_a_small_number": dict(match="format", schema={"format_address": 17}),
    "test_format_is_empty": dict(match="format", schema={"format": ""}),
    "test_format_is_no_text": dict(match="format", schema={"format": b"\x01\xff"}),
    "test_format_is_long_and_no_text": dict(match="format", schema={"format": b"\xfe" * 5000}),
    "test_schema_with_a_child": dict(match="n_children", schema={"format": "i", "children": [{"format": "i"}]}),
    "test_schema_says_it_has_a_child": dict(match="n_children", schema={"format": "i", "n_children": 1}),
    "test_schema_with_negative_n_children": dict(match="n_children", schema={"format": "i", "n_children": -1}),
    "test_schema_released": dict(match="schema", schema={"format": "i", "released": True}),
    "test_array_askew": dict(match="array", shift=4),
    "test_schema_askew": dict(match="schema", schema={"format": "i", "shift": 4}),
    "test_array_under_another_name": dict(match='"arrow_array"', name="arrow_device_array"),
    "test_schema_under_another_name": dict(match='"arrow_schema"', schema={"format": "i", "name": "dltensor"}),
}, is_malformed)


@isolated
def test_values_that_are_not_aligned_are_refused():
    """Arrow lets a consumer do that, and a copy helps: the array is not malformed."""
    memory = ctypes.create_string_buffer(64)
    base = (ctypes.addressof(memory) + 15) & ~7
    for format, itemsize in (("s", 2), ("i", 4), ("l", 8), ("f", 4), ("g", 8)):
        for off in range(1, itemsize):
            array = numbers(format, 2, buffers=[None, base + off])
            producer = Array(array, {"format": format})
            text = refused(producer, "aligned")
            assert "copy" in text
            with exactly_once(producer.struct, exports=None), pytest.raises(BufferError) as caught:
                tenon.asdlpack(producer)
            assert not isinstance(caught.value, tenon.MalformedError)
            caught.value.__traceback__ = None
            del caught
    assert taken(Array(numbers("c", 2, buffers=[None, base + 1]), {"format": "c"})).data_ptr == base + 1


@isolated
def test_answers_that_are_no_pair_of_capsules():
    struct_ = Array().struct
    schema, array = {"format": "i"}, numbers()
    class Pair(tuple):
        pass
    for make in (
        lambda: None, lambda: 7, lambda: (), lambda: "ab", lambda: (None, None), lambda: (1, 2),
        lambda: (struct_.schema(**schema),),
        lambda: (struct_.schema(**schema), struct_.array(**array), None),
        lambda: [struct_.schema(**schema), struct_.array(**array)],
        lambda: (struct_.array(**array), struct_.schema(**schema)),
        lambda: (struct_.schema(**schema), struct_.schema(**schema)),
        lambda: (struct_.array(**array), struct_.array(**array)),
        lambda: (struct_.schema(**schema), None),
        lambda: (None, struct_.array(**array)),
        lambda: struct_.array(**array),
        lambda: struct_.stream(schema=schema, chunks=[array]),
        lambda: (struct_.schema(**schema), struct_.device_array(**array)),
        lambda: (struct_.schema(**schema), Producer().struct.capsule()),
        lambda: Pair((1, 2)),
    ):
        with exactly_once(struct_, exports=None):
            assert "Arrow: Arrow: the" in refuse(Answer(make()), tenon.MalformedError)


@isolated
def test_the_same_array_twice():
    producer = Base()
    with exactly_once(producer.struct, exports=2):
        answer = Answer(producer.pair())
        first = tenon.asdlpack(answer)
        assert "taken already" in refuse(answer, tenon.MalformedError)
        assert values(first) == [*range(6)] and producer.struct.given_back == (0, 0, 0)
        del first
        assert producer.struct.given_back == (0, 1, 0)
        assert "taken already" in refuse(answer, tenon.MalformedError)
        del answer


@isolated
def test_refused_array_stays_with_its_producer():
    producer = Base(numbers(null_count=1, buffers=[bitmap("011111"), pack("i", range(6))]))
    with exactly_once(producer.struct, exports=2):
        answer = Answer(producer.pair())
        refuse(answer, BufferError, "nulls")
        assert producer.struct.given_back == (0, 0, 0), "what is refused is not consumed"
        refuse(answer, BufferError, "nulls")
        del answer


# --- methods ----------------------------------------------------------------------------------------


class Mine(Exception):
    pass


def passes_unchanged(exception, method="__arrow_c_array__"):
    def raises(self, requested_schema=None):
        raise exception

    cls = type("Raises", (), {method: raises})
    with pytest.raises(type(exception)) as caught:
        tenon.asdlpack(cls())
    assert caught.value is exception


table(globals(), {
    f"test_{kind.__name__}_of_{method.strip('_')}": dict(exception=kind("mine"), method=method)
    for kind in (Mine, TypeError, BufferError, ValueError, MemoryError, NotImplementedError, KeyboardInterrupt)
    for method in ("__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__")
}, passes_unchanged)


@isolated
def test_methods_that_are_none_or_attributes():
    class None_:
        __arrow_c_array__ = __arrow_c_device_array__ = __arrow_c_stream__ = None

    assert "no __arrow_c_array__" in refuse(None_(), TypeError)
    producer = Array()

    class Plain:
        pass

    obj = Plain()
    obj.__arrow_c_array__ = producer.__arrow_c_array__
    with exactly_once(producer.struct, exports=2):
        assert take(obj).shape == (6,)

    class Asked:
        def __getattr__(self, name):
            if name == "__arrow_c_stream__":
                return Stream(numbers()).__arrow_c_stream__
            raise AttributeError(name)

    assert take(Asked()).shape == (6,)


@isolated
def test_type_that_learns_arrow_later():
    class Late:
        pass

    refuse(Late(), TypeError)
    producer = Array()
    Late.__arrow_c_array__ = lambda self: producer.pair()
    with exactly_once(producer.struct, exports=2):
        assert take(Late()).shape == (6,)
    del Late.__arrow_c_array__
    refuse(Late(), TypeError)


@isolated
def test_endless_recursion_is_an_exception():
    class Loop:
        def __arrow_c_array__(self, requested_schema=None):
            return tenon.asdlpack(self)

    refuse(Loop(), RecursionError)


@isolated
def test_order_of_the_methods():
    class All(Array, Device, Stream):
        def __init__(self):
            Base.__init__(self)
            self.chunks, self.fields = [numbers()], {}

    every = All()
    assert taken(every).size == 6 and every.calls == ["array"]

    class Two(Device, Stream):
        __init__ = All.__init__

    two = Two()
    assert taken(two).size == 6 and two.calls == ["device_array"]


@isolated
def test_array_that_refuses_the_host_gives_a_device_array():
    class Both(Device):
        def __arrow_c_array__(self, requested_schema=None):
            self.called("array")
            raise NotImplementedError("not on the host")

    both = Both({**numbers(), "device_type": CUDA, "device_id": 1})
    seen = taken(both)
    assert (seen.device, both.calls) == ("cuda:1", ["array", "device_array"])
    refused(Both({**numbers(), "device_type": CUDA, "device_id": 1}), "device asked for", device="cpu")


@isolated
def test_first_exception_of_two_passes():
    first, second = NotImplementedError("first"), ValueError("second")

    class Both:
        def __arrow_c_array__(self, requested_schema=None):
            raise first

        def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
            raise second

    with pytest.raises(NotImplementedError) as caught:
        tenon.asdlpack(Both())
    assert caught.value is first and first.__context__ is second

    class Broken(Both):
        def __arrow_c_array__(self, requested_schema=None):
            raise KeyError("broken")

        def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
            raise AssertionError("what is broken is not asked again")

    refuse(Broken(), KeyError)


# --- beside the other rungs -------------------------------------------------------------------------


@isolated
def test_dlpack_is_preferred_and_arrow_not_even_asked():
    class Both(Producer):
        def __arrow_c_array__(self, requested_schema=None):
            raise AssertionError("asked")

    both = Both()
    with exactly_once(both.struct):
        assert take(both).shape == (2, 3)


@isolated
def test_dlpack_that_says_not_this_way_leaves_it_to_arrow():
    for kind in (TypeError, ValueError, BufferError, NotImplementedError):
        class Both(Array):
            def __dlpack__(self, **keywords):
                raise kind("lists are no DLPack")

        producer = Both(lists(2, numbers()), list_schema(2))
        assert taken(producer).shape == (3, 2)
        # What Arrow refuses as well is refused in words that help; the producer's own stand behind them.
        nulls = Both(numbers(null_count=1, buffers=[bitmap("0"), pack("i", range(6))]))
        with exactly_once(nulls.struct, exports=2), pytest.raises(BufferError, match="fill_null") as caught:
            tenon.asdlpack(nulls)
        assert type(caught.value.__context__) is kind and str(caught.value.__context__) == "lists are no DLPack"
        caught.value.__traceback__ = None
        del caught


@isolated
def test_dlpack_that_is_broken_does_not():
    for kind in (RuntimeError, KeyError, MemoryError, KeyboardInterrupt, Mine):
        class Both(Array):
            def __dlpack__(self, **keywords):
                raise kind("broken")

        both = Both()
        refuse(both, kind, "broken")
        assert both.calls == [] and both.struct.exports == 0


@isolated
def test_dlpack_refused_by_us_leaves_it_to_arrow():
    class Both(Array):
        def __dlpack__(self, **keywords):
            return "no capsule"

    assert taken(Both()).size == 6


@isolated
def test_other_exceptions_of_dlpack_without_arrow_are_not_chained():
    mine = BufferError("mine")

    class Only:
        def __dlpack__(self, **keywords):
            raise mine

    with pytest.raises(BufferError) as caught:
        tenon.asdlpack(Only())
    assert caught.value is mine and mine.__context__ is None


@isolated
def test_array_interface_is_preferred():
    class Both(Array):
        memory = bytearray(b"abcd")
        __array_interface__ = dict(version=3, shape=(4,), typestr="|u1", data=memory)

    both = Both()
    assert take(both).dtype == "uint8" and both.calls == []


@isolated
def test_tried_names_arrow():
    text = refuse(object(), TypeError)
    assert "Arrow: no __arrow_c_array__, __arrow_c_device_array__ or __arrow_c_stream__" in text


# --- devices ----------------------------------------------------------------------------------------


def device_is(device, device_type, device_id=0, **fields):
    array = {**numbers(), "device_type": device_type, "device_id": device_id, **fields}
    seen = taken(Device(array))
    assert (seen.device, seen.readonly, seen.shape) == (device, True, (6,))


table(globals(), {
    "test_cpu": dict(device="cpu", device_type=1, device_id=-1),
    "test_cpu_of_any_number": dict(device="cpu", device_type=1, device_id=7),
    "test_cuda": dict(device="cuda:0", device_type=CUDA),
    "test_cuda_1": dict(device="cuda:1", device_type=CUDA, device_id=1),
    "test_pinned": dict(device="cuda_host:0", device_type=CUDA_HOST, device_id=-1),
    "test_managed": dict(device="cuda_managed:2", device_type=MANAGED, device_id=2),
    "test_rocm": dict(device="rocm:0", device_type=ROCM),
}, device_is)


@isolated
def test_device_of_an_empty_array():
    array = {"length": 0, "buffers": [None, None], "device_type": CUDA, "device_id": 0}
    seen = taken(Device(array))
    assert (seen.device, seen.shape) == ("cuda:0", (0,))


@isolated
def test_devices_that_cannot_be():
    for device_type, device_id in ((CUDA, -1), (CUDA, 2**31), (CUDA, -(2**63)), (CUDA_HOST, -2)):
        refused(Device({**numbers(), "device_type": device_type, "device_id": device_id}), "device",
                tenon.MalformedError)
    for device_type in (0, -1):
        refused(Device({**numbers(), "device_type": device_type, "device_id": 0}), "no such kind of device")


@isolated
def test_devices_without_a_name_are_carried():
    for device_type in (5, 99):
        seen = taken(Device({**numbers(), "device_type": device_type, "device_id": 3}))
        assert seen.device == f"device({device_type}):3"


@isolated
def test_device_is_asked_for():
    on_cuda = {**numbers(), "device_type": CUDA, "device_id": 0}
    assert taken(Device(on_cuda), device="cuda:0").device == "cuda:0"
    refused(Device(on_cuda), "device", device="cuda:1", copy=False)
    refused(Device(on_cuda), "device", device="cpu")
    refused(Device(numbers()), "device", device="cuda:0", copy=False)
    assert taken(Device({**numbers(), "device_type": CUDA_HOST, "device_id": 0}), device="cpu").size == 6


@isolated
def test_bitmap_on_a_device_is_not_read():
    array = numbers(null_count=-1, buffers=[NOWHERE, NOWHERE]) | {"device_type": CUDA, "device_id": 0}
    assert "not known" in refused(Device(array), "null_count")
    refused(Device(array | {"null_count": 1}), "nulls")
    assert taken(Device(array | {"null_count": 0})).data_ptr == NOWHERE


def device_is_malformed(match, **fields):
    refused(Device({**numbers(), "device_type": CUDA, "device_id": 0, **fields}), match, tenon.MalformedError)


table(globals(), {
    "test_device_array_released": dict(match="released", released=True),
    "test_device_array_askew": dict(match="array", shift=4),
    "test_device_array_under_another_name": dict(match='"arrow_device_array"', name="arrow_array"),
    "test_device_array_negative_length": dict(match="length", length=-1),
    "test_device_array_values_are_null": dict(match="buffers", buffers=[None, None]),
}, device_is_malformed)


# --- events -----------------------------------------------------------------------------------------

EVENT = ctypes.c_void_p(0xE0)  # the one event of the fake driver
STREAM = stream_handle(1)


def with_event(device_type=CUDA, event=None):
    return Device({**numbers(), "device_type": device_type, "device_id": 1,
                   "sync_event": ctypes.addressof(EVENT) if event is None else event})


def waits(number, **options):
    driver = Driver()
    assert taken(with_event(), **options).device == "cuda:1"
    waited = within(f"cuStreamWaitEvent {number} event 0", number=1)
    assert driver.calls()[:len(waited)] == waited
    assert driver.all_closed()


table(globals(), {
    "test_default_stream_waits_for_the_event": dict(number=1),
    "test_named_default_stream_waits": dict(number=1, stream=1),
    "test_per_thread_stream_waits": dict(number=2, stream=2),
    "test_stream_of_the_consumer_waits": dict(number=STREAM, stream=STREAM),
}, waits)


@isolated
def test_F79_an_array_on_a_device_is_let_go_of_after_the_consumers_work():
    driver = Driver()
    for stream in (None, 1, stream_handle(2)):
        t = tenon.asdlpack(with_event(), stream=stream)
        driver.calls()
        del t
        recorded = within(*RECORDS_ALL[4:-2], number=1)
        assert driver.calls()[-len(recorded):] == recorded, "its producer's stream has no name"


@isolated
def test_host_waits_for_what_it_reads():
    driver = Driver()
    for kind in (CUDA_HOST, MANAGED):
        taken(with_event(kind))
        assert driver.calls() == within("cuEventSynchronize event", number=1)


@isolated
def test_no_event_or_no_wish_asks_nobody():
    driver = Driver()
    taken(with_event(event=0))
    taken(with_event(), stream=-1)
    taken(with_event(ROCM), stream=-1)
    assert driver.calls() == []
    taken(with_event(event=0), stream=STREAM)
    assert not any(call.startswith("cuStreamWait") for call in driver.calls())


@isolated
def test_bitmap_of_managed_memory_is_not_read_before_the_event():
    Driver()
    array = numbers(null_count=-1, buffers=[bitmap("111111"), pack("i", range(6))])
    producer = Device({**array, "device_type": MANAGED, "device_id": 0, "sync_event": ctypes.addressof(EVENT)})
    refused(producer, "not known")


@isolated
def test_events_that_cannot_be_waited_for():
    driver = Driver()
    refused(with_event(ROCM), "stream=-1")
    refused(with_event(1), "stream=-1")
    refused(with_event(event=8), "sync_event", tenon.MalformedError)
    refused(with_event(event=ctypes.addressof(EVENT) + 1), "sync_event", tenon.MalformedError)
    refused(with_event(), "stream", stream=0)
    refused(with_event(), "stream", stream=-2)
    assert driver.calls() == []
    for function, kind in (("cuDeviceGet", CUDA), ("cuCtxPushCurrent", CUDA), ("cuStreamWaitEvent", CUDA),
                           ("cuEventSynchronize", MANAGED)):
        driver.fail(function, 719)
        refused(with_event(kind), "719")
        driver.calls()


def test_no_driver():
    run_isolated("""
import ctypes, sys
import fake_arrow, tenon
from arrow_producers import Device, numbers
from producers import exactly_once, refuse
try:
    ctypes.CDLL("libcuda.so.1")
    sys.exit(0)      # there is a real one
except OSError:
    pass
event = ctypes.c_void_p(0xE0)
producer = Device({**numbers(), "device_type": 2, "device_id": 0, "sync_event": ctypes.addressof(event)})
with exactly_once(producer.struct, exports=2):
    assert "driver cannot be loaded" in refuse(producer)
""")


# --- streams ----------------------------------------------------------------------------------------


@isolated
def test_stream_of_one_chunk():
    producer = Stream(numbers(offset=2))
    seen = taken(producer)
    assert (seen.values, seen.data_ptr) == ([2, 3, 4, 5], producer.struct.address + 8)
    assert producer.struct.handed_out == producer.struct.given_back == (1, 1, 1)
    assert not producer.struct.stream_had_gil, "a stream may wait for a thread that needs it"


@isolated
def test_stream_of_lists():
    producer = Stream(lists(3, numbers()), schema=list_schema(3))
    assert taken(producer).values == [[0, 1, 2], [3, 4, 5]]


@isolated
def test_empty_chunks_are_skipped():
    nothing = numbers(length=0)
    for chunks in ([nothing, numbers()], [numbers(), nothing], [nothing, nothing, numbers(), nothing]):
        producer = Stream(*chunks)
        with exactly_once(producer.struct, exports=len(chunks) + 2):
            tensor = tenon.asdlpack(producer)
            assert values(tensor) == [*range(6)]
            assert producer.struct.given_back == (1, len(chunks) - 1, 1)
            del tensor


@isolated
def test_stream_of_nothing_is_an_empty_tensor_of_the_type():
    for chunks in ([], [numbers(length=0)] * 3):
        for schema, shape, dtype in (({"format": "e"}, (0,), "float16"), (list_schema(3, list_schema(2, "l")),
                                                                         (0, 3, 2), "int64")):
            producer = Stream(*chunks, schema=schema)
            with exactly_once(producer.struct, exports=2 + len(chunks)):
                seen = take(producer)
                assert (seen.shape, seen.dtype, seen.readonly, seen.size) == (shape, dtype, True, 0)


@isolated
def test_stream_of_several_chunks():
    for count in (2, 3, 100):
        producer = Stream(*[numbers()] * count)
        text = refused(producer, "chunks")
        assert "got 2" in text and "at least" in text and "combine_chunks()" in text and "rechunk()" in text
        assert producer.struct.handed_out == (1, 2, 1), "no more is asked for than is needed to refuse"


@isolated
def test_endless_stream():
    producer = Stream(numbers(length=0), repeat=2**62)
    with exactly_once(producer.struct, exports=None):
        refuse(producer, BufferError, "empty chunks")


@isolated
def test_type_is_refused_before_a_chunk_is_asked_for():
    producer = Stream(numbers(), schema={"format": "+s", "children": [{"format": "i"}]})
    refused(producer, "column")
    assert producer.struct.handed_out == (1, 0, 1)


@isolated
def test_stream_read_once():
    producer = Stream(numbers())

    class Once:
        capsule = producer.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    with exactly_once(producer.struct, exports=3):
        take(Once())
        assert "taken already" in refuse(Once(), tenon.MalformedError), "not an empty tensor"
        del Once


def stream_fails(match, exception=BufferError, exports=None, **fields):
    producer = Stream(numbers(), numbers(), **fields)
    with exactly_once(producer.struct, exports=exports):
        text = refuse(producer, exception, match)
    assert "Tried" not in text or exception is tenon.MalformedError


table(globals(), {
    "test_get_schema_fails": dict(match="get_schema.*error 5: no luck", schema_error=5, error="no luck", exports=1),
    "test_get_next_fails": dict(match="get_next.*error 22: no luck", next_error=22, error="no luck", exports=2),
    "test_get_next_fails_later": dict(
        match="get_next.*error 5: no luck", next_error=5, fail_at=1, error="no luck", exports=3),
    "test_negative_error": dict(match="error -7: x", next_error=-7, error="x"),
    "test_out_of_memory_in_the_stream": dict(match="no luck", exception=MemoryError, next_error=12, error="no luck"),
    "test_no_words": dict(match="does not say why", next_error=5, error=None),
    "test_empty_words": dict(match="does not say why", next_error=5, error=""),
    "test_no_function_for_words": dict(match="does not say why", next_error=5, without="get_last_error"),
    "test_words_that_are_no_text": dict(match="\ufffd", next_error=5, error=b"\xff\xfe"),
    "test_long_words": dict(match="y{2000}", next_error=5, error="y" * 100_000),
    "test_exception_beside_the_error": dict(
        match="the stream's own", exception=KeyError, next_error=5, error="x", raises=True),
    "test_stream_without_get_schema": dict(match="null", exception=tenon.MalformedError, without="get_schema", exports=1),
    "test_stream_without_get_next": dict(match="null", exception=tenon.MalformedError, without="get_next", exports=1),
    "test_stream_released": dict(match="released", exception=tenon.MalformedError, released=True, exports=0),
    "test_stream_under_another_name": dict(
        match='"arrow_array_stream"', exception=tenon.MalformedError, name="arrow_array", exports=1),
    "test_stream_askew": dict(match="stream", exception=tenon.MalformedError, shift=4, exports=1),
}, stream_fails)


@isolated
def test_stream_that_is_no_capsule():
    for answer in (None, 7, (), (1, 2), object(), Producer().struct.capsule()):
        class Odd:
            def __arrow_c_stream__(self, requested_schema=None):
                return answer

        refuse(Odd(), tenon.MalformedError, '"arrow_array_stream"')


# --- many -------------------------------------------------------------------------------------------


@isolated
def test_released_at_exit_or_never_but_not_twice():
    run_isolated("""
import arrow_producers, tenon, threading, time, tenon_probe
kept = [tenon.asdlpack(arrow_producers.Array()) for _ in range(10)]
kept += [tenon.asdlpack(arrow_producers.Stream(arrow_producers.numbers())) for _ in range(10)]
for _ in range(10):
    tenon_probe.hold(arrow_producers.Array()).drop_later(20)
""", env=LEAKS_BY_DESIGN)


@isolated
def test_threads():
    import threading

    producer, errors = Array(), []

    def work():
        try:
            for _ in range(300):
                assert take(producer).size == 6
                refuse(Stream(numbers(), numbers()), BufferError)
        except BaseException as error:
            errors.append(error)

    with exactly_once(producer.struct, exports=None):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
