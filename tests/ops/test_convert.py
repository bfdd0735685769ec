"""Conversion as a whole: what is refused, what is kept, and what is said about it."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import ConversionError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import text_model
from tests.ops.one_node import run_model, run_there

NEAR_LIMITS = np.float32(
    [0, -0.0, 1.5, 448, 464, 464.1, -464, -480, 240, 247.9, 248, -248, 57344, 61439, 61440, -61440,
     1e30, np.inf, -np.inf, np.nan]
)  # fmt: skip


def _quantize(kind: str, attributes: str = "") -> str:
    return (
        f"g (float[n] x, float s, {kind} z) => ({kind}[n] y)"
        f" {{ y = QuantizeLinear{attributes}(x, s, z) }}"
    )


def test_types_are_kept_only_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    model = text_model(_quantize("int4"), 21)
    with pytest.raises(ConversionError, match=r"opset that works is 21; .*types='keep'") as raised:
        convert_opset(model, 17)
    assert "int4 is not allowed" in str(raised.value)
    older = convert_opset(model, 17, types="keep")
    assert "outside of opset 17: node of 'y' (QuantizeLinear): tensor(int4)" in caplog.text
    assert older.opset == 17
    assert {finding.rule for finding in sx.find_problems(older)} == {"type-not-allowed"}
    x = np.float32([-20, -1.5, 0.5, 3, 100])
    inputs = {"x": x, "s": np.float32(1), "z": np.asarray(1, ml_dtypes.int4)}
    assert run_model(older, inputs)[0].tolist() == run_model(model, inputs)[0].tolist()


def test_everything_else_is_still_refused_while_types_are_kept() -> None:
    text = "g (string[n] a, int4[n] x) => (string[n] c, float[n] y)"
    text += " { c = StringConcat(a, a)  y = Cast<to=1>(x) }"
    for types in ("strict", "keep"):
        with pytest.raises(ConversionError, match="StringConcat") as raised:
            convert_opset(text_model(text, 21), 17, types=types)  # type: ignore[arg-type]
        assert ("int4" in str(raised.value)) == (types == "strict")
        assert "keep" not in str(raised.value)


def test_a_rule_for_types_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConversionError, match="'strict' or 'keep'"):
        convert_opset(text_model("g (float x) => (float y) { y = Relu(x) }"), 17, types="loose")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2fnuz"])
@pytest.mark.parametrize("operator", ["Cast", "CastLike", "QuantizeLinear"])
def test_overflow_stays_nan_where_saturate_is_not_there(operator: str, kind: str) -> None:
    element = sx.DataType[kind.upper()]
    text = {
        "Cast": f"g (float[n] x) => ({kind}[n] y) {{ y = Cast<to={int(element)}, saturate=0>(x) }}",
        "CastLike": f"g (float[n] x, {kind} z) => ({kind}[n] y)"
        " { y = CastLike<saturate=0>(x, z) }",
        "QuantizeLinear": _quantize(kind, "<saturate=0>"),
    }[operator]
    model = text_model(text, 21)
    inputs = {"x": NEAR_LIMITS, "s": np.float32(1), "z": np.zeros((), element.numpy)}
    given = {value.name: inputs[value.name] for value in model.graph.inputs}
    older = convert_opset(model, 17, types="keep")
    left, right = run_model(older, given)[0], run_model(model, given)[0]
    assert left.dtype == right.dtype
    np.testing.assert_array_equal(left.astype(np.float32), right.astype(np.float32))


def test_attributes_that_say_nothing_for_a_type_are_dropped() -> None:
    text = "g (float[n] x) => (float16[n] y) { y = Cast<to=10, saturate=0, round_mode='down'>(x) }"
    older = convert_opset(text_model(text.replace("'", '"'), 24), 17)
    assert set(older.graph.nodes[0].attributes) == {"to"}


def test_infinities_of_float8_are_not_said_before_saturate() -> None:
    text = "g (float[n] x) => (float8e5m2[n] y) { y = Cast<to=19, saturate=0>(x) }"
    with pytest.raises(ConversionError, match="saturate=0 with float8e5m2"):
        convert_opset(text_model(text, 21), 17, types="keep")


@pytest.mark.parametrize("kind", ["float8e4m3fn", "int4", "int2"])
def test_blocks_of_kept_types_are_spelled_out(kind: str) -> None:
    text = (
        f"g (float[2,6] x, float[2,3] s, {kind}[2,3] z) => ({kind}[2,6] y)"
        " { y = QuantizeLinear<block_size=2, axis=1>(x, s, z) }"
    )
    model = text_model(text, 28)
    random = np.random.default_rng(0)
    zero = np.zeros((2, 3), sx.DataType[kind.upper()].numpy)
    x = (random.standard_normal((2, 6)) * 20).astype(np.float32)
    inputs = {"x": x, "s": np.float32([[1, 2, 4], [8, 16, 0.5]]), "z": zero}
    older = convert_opset(model, 17, types="keep")
    assert run_model(older, inputs)[0].tolist() == run_model(model, inputs)[0].tolist()


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 1), (3,)), ((), (4,)), ((0,), (1,))])
def test_texts_are_compared_by_numbers_before_opset_19(shapes: Any) -> None:
    words = np.array(["", "a", "b", "ä", "a\0"], object)
    random = np.random.default_rng(1)
    a, b = (np.asarray(random.choice(words, shape), object) for shape in shapes)
    sizes = [",".join(map(str, shape)) for shape in shapes]
    text = f"g (string[{sizes[0]}] a, string[{sizes[1]}] b) => (bool y) {{ y = Equal(a, b) }}"
    text = text.replace("[]", "").replace("bool y", "y")
    older = convert_opset(text_model(text, 19), 17)
    result = run_model(older, {"a": a, "b": b})[0]
    assert result.tolist() == np.asarray(a == b).tolist()
    if a.size and b.size:
        there = run_there(sx.to_bytes(older), {"a": a, "b": b})[0]
        assert there.tolist() == result.tolist()


EVERY_16 = np.arange(2**16, dtype=np.uint16)
SOME_32 = np.random.default_rng(2).integers(0, 2**32, 4000, np.uint32)
EDGES_32 = np.uint32([0, 1, 2**31, 2**31 + 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
                      0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000])  # fmt: skip
SOME_64 = np.random.default_rng(3).integers(0, 2**64, 4000, np.uint64)
EDGES_64 = np.uint64([0, 1, 2**63, 2**63 + 1, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, (1 << 52) - 1,
                      1 << 52, (0x7FF << 52) - 1, 0x3FF << 52])  # fmt: skip


@pytest.mark.parametrize(
    ("source", "kind", "codes"),
    [
        ("uint16", "float16", EVERY_16),
        ("int16", "float16", EVERY_16.view(np.int16)),
        ("int16", "bfloat16", EVERY_16.view(np.int16)),
        ("uint32", "float", np.concatenate([SOME_32, EDGES_32])),
        ("int32", "float", np.concatenate([SOME_32, EDGES_32]).view(np.int32)),
        ("int64", "double", np.concatenate([SOME_64, EDGES_64]).view(np.int64)),
    ],
)
def test_numbers_are_made_of_bits_before_opset_26(source: str, kind: str, codes: Any) -> None:
    element = sx.DataType[kind.upper()]
    text = f"g ({source}[n] x) => ({kind}[n] y) {{ y = BitCast<to={int(element)}>(x) }}"
    older = convert_opset(text_model(text, 26), 17)
    wanted = codes.view(element.numpy)
    results = [run_model(older, {"x": codes})[0]]
    if kind != "bfloat16":
        results += run_there(sx.to_bytes(older), {"x": codes})
    for result in results:
        assert result.dtype == wanted.dtype
        same = wanted == wanted  # noqa: PLR0124 - not a NaN
        assert np.array_equal(result == result, same)  # noqa: PLR0124
        assert result[same].tobytes() == wanted[same].tobytes()
