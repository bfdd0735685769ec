"""What may be fed: any stride, alignment and byte order, narrow types, empty, strings; and outputs
that belong to nobody else."""

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import InputError

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
HEAD = '<ir_version: 10, opset_import: ["": 21]>'


def session(text: str, provider: str) -> sx.InferenceSession:
    return sx.InferenceSession(sx.load_text(f"{HEAD} g {text}"), providers=[provider])


@pytest.fixture(params=PROVIDERS)
def twice(request: pytest.FixtureRequest) -> sx.InferenceSession:
    return session("(float[n,3] x) => (float[n,3] y) { y = Add(x, x) }", request.param)


def arrays() -> dict[str, np.ndarray]:
    base = np.arange(12, dtype=np.float32).reshape(4, 3)
    unaligned = np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 3)
    frozen = base.copy()
    frozen.setflags(write=False)
    return {
        "transposed": np.ascontiguousarray(base.T).T,
        "strided": np.repeat(base, 2, 0)[::2],
        "reversed": base[::-1],
        "columns": np.repeat(base, 2, 1)[:, ::2],
        "repeated": np.broadcast_to(base[:1], (4, 3)),
        "fortran": np.asfortranarray(base),
        "unaligned": unaligned,
        "read only": frozen,
        "other byte order": base.astype(">f4"),
        "empty": base[:0],
        "masked": np.ma.MaskedArray(base),
    }


@pytest.mark.parametrize("name", list(arrays()))
def test_any_array_is_read_right(twice: sx.InferenceSession, name: str) -> None:
    array = arrays()[name]
    for _ in range(3):
        (result,) = twice.run(None, {"x": array})
        np.testing.assert_array_equal(result, np.asarray(array, "=f4") * 2)
        assert result.dtype == np.dtype("=f4") and result.flags.writeable
        assert type(result) is np.ndarray


def test_numbers_of_python(twice: sx.InferenceSession) -> None:
    assert twice.run(None, {"x": [[1, 2, 3]]})[0].tolist() == [[2, 4, 6]]
    assert twice.run(None, {"x": ((0.5, 1.0, 2.0),)})[0].tolist() == [[1, 2, 4]]
    torch = pytest.importorskip("torch")
    assert twice.run(None, {"x": torch.ones(1, 3)})[0].tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        (np.ones((2, 3)), ["'x'", "double", "float", "astype('float32')"]),
        (np.ones((2, 3), np.int64), ["int64", "float", "astype"]),
        (np.ones((2, 3), ">i8"), ["int64", "float"]),
        (np.ones(3, np.float32), ["'x'", "[3]", "float[n,3]", "shape"]),
        (np.ones((2, 4), np.float32), ["[2, 4]", "float[n,3]"]),
        (np.ones((2, 3), "V5"), ["V5"]),
        (np.array([["a"]]), ["string"]),
        ([[1.0, 2.0], [3.0]], ["'x'", "equal lengths"]),
        (None, ["'x'", "NoneType", "float[n,3]"]),
        ({"a": 1}, ["'x'", "dict"]),
        (np.ones((2, 3), ml_dtypes.bfloat16), ["bfloat16", "float"]),
        ([["a", "b", "c"]], ["string", "float"]),
    ],
)
def test_what_does_not_fit_is_said(
    twice: sx.InferenceSession, feed: object, words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        twice.run(None, {"x": feed})
    for word in words:
        assert word in str(caught.value)


def test_names_that_do_not_fit(twice: sx.InferenceSession) -> None:
    x = np.ones((1, 3), np.float32)
    with pytest.raises(InputError, match=r"no input 'z'.*its inputs are: x"):
        twice.run(None, {"x": x, "z": x})
    with pytest.raises(InputError, match=r"input 'x' is missing; feed a float\[n,3\]"):
        twice.run(None, {})
    with pytest.raises(InputError, match=r"no output 'q'.*it has: y"):
        twice.run(["q"], {"x": x})


NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4,
          ml_dtypes.uint4, np.float16, ml_dtypes.float4_e2m1fn, ml_dtypes.int2]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", NARROW, ids=lambda kind: np.dtype(kind).name)
def test_narrow_types_go_in_and_out(provider: str, kind: type) -> None:
    from sardonyx.dtypes import from_numpy

    name = from_numpy(kind).text
    text = f"({name}[n] x) => ({name}[n] y, float[n] f) {{ y = Identity(x) f = Cast<to = 1>(x) }}"
    x = np.array([0, 1, 1, 0], np.float32).astype(kind)
    head = '<ir_version: 13, opset_import: ["": 25]>'
    runs = sx.InferenceSession(sx.load_text(f"{head} g {text}"), providers=[provider])
    y, f = runs.run(None, {"x": x})
    assert y.dtype == x.dtype and not np.shares_memory(y, x)
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))
    assert f.tolist() == [0, 1, 1, 0]
    (value,) = runs.run_with_ort_values(["y"], {"x": sx.OrtValue(x[::2])})
    assert value.data_type() == f"tensor({name})" and value.shape() == [2]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_bfloat16_is_computed(provider: str) -> None:
    runs = session("(bfloat16[n,2] x) => (bfloat16[n,2] y) { y = Add(x, x) }", provider)
    x = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    assert runs.run(None, {"x": x})[0].astype(float).tolist() == [[3, -4]]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_outputs_have_memory_of_their_own(provider: str) -> None:
    runs = session(
        "(float[n] x) => (float[n] y, float[n] same, float[n,1] r, float[2] c, float[2] k)"
        "<float[2] k = {1.0, 2.0}, int64[2] s = {-1, 1}>"
        "{ y = Identity(x) same = Identity(x) r = Reshape(x, s) c = Identity(k) }",
        provider,
    )
    x = np.arange(2, dtype=np.float32)
    first = runs.run(None, {"x": x})
    kept = [item.copy() for item in first]
    for item in first:
        assert not np.shares_memory(item, x)
        assert sum(np.shares_memory(item, other) for other in first) == 1
    second = runs.run(None, {"x": x + 1})
    for mine, before, later in zip(first, kept, second, strict=True):
        np.testing.assert_array_equal(mine, before)
        assert not np.shares_memory(mine, later)
        np.add(mine, 100, out=mine)
    assert x.tolist() == [0, 1] and runs.run(["c"], {"x": x})[0].tolist() == [1, 2]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_outputs_are_not_the_models_own_arrays(provider: str) -> None:
    weights = np.ones(2, np.float32)
    model = sx.load_text(
        f"{HEAD} g (float[2] x) => (float[2] a, float[2] b, float[2] y)"
        "<float[2] w = {0.0, 0.0}> { a = Identity(w) b = Constant<value = float[2] {0.0, 0.0}>() "
        " y = Add(x, w) }"
    )
    model.graph.initializers[0].tensor = sx.Tensor(weights, "w")
    next(iter(model.graph.nodes[1].attributes.values())).value = sx.Tensor(weights)
    runs = sx.InferenceSession(model, providers=[provider])
    for _ in range(2):
        for item in runs.run(["a", "b"], {"x": np.zeros(2, np.float32)}):
            assert item.tolist() == [1, 1]
            np.add(item, 1, out=item)
    assert weights.tolist() == [1, 1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_empty_tensors_and_scalars(provider: str) -> None:
    runs = session(
        "(float[n,m] x, float s) => (float[n,m] y, float[m] t)"
        "<int64[1] a = {0}> { y = Mul(x, s) t = ReduceSum<keepdims = 0>(x, a) }",
        provider,
    )
    for shape in ((0, 3), (3, 0), (0, 0), (1, 1)):
        y, t = runs.run(None, {"x": np.ones(shape, np.float32), "s": np.float32(2)})
        assert y.shape == shape and t.tolist() == [shape[0]] * shape[1]
        assert y.sum() == 2 * shape[0] * shape[1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_strings(provider: str) -> None:
    runs = session("(string[n] x) => (string[n] y) { y = Identity(x) }", provider)
    for feed in (np.array(["a", "ü"]), np.array(["a", "ü"], object), ["a", "ü"],
                 np.array([b"a", "ü".encode()])):  # fmt: skip
        (y,) = runs.run(None, {"x": feed})
        assert y.dtype == object and y.tolist() == ["a", "ü"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_sequences_and_optionals(provider: str) -> None:
    text = (
        "(seq(float[n]) x, float[n] a) => (seq(float[n]) y, float[n] last, int64 size)"
        "{ y = SequenceInsert(x, a) size = SequenceLength(y) m = Constant<value_int = -1>()"
        " last = SequenceAt(y, m) }"
    )
    runs = session(text, provider)
    parts = [np.ones(2, np.float32), np.zeros(1, np.float32)[::1]]
    peer = onnxruntime.InferenceSession(sx.to_bytes(sx.load_text(f"{HEAD} g {text}")))
    feeds = {"x": parts, "a": np.full(3, 7, np.float32)}
    mine, theirs = runs.run(None, feeds), peer.run(None, feeds)
    assert type(mine[0]) is type(theirs[0]) is list
    assert [item.tolist() for item in mine[0]] == [item.tolist() for item in theirs[0]]
    assert mine[1].tolist() == theirs[1].tolist() and int(mine[2]) == int(theirs[2]) == 3
    assert not any(np.shares_memory(item, part) for item in mine[0] for part in parts)
    with pytest.raises(InputError, match="where a seq"):
        runs.run(None, {"x": 5, "a": feeds["a"]})
    (value, *_) = runs.run_with_ort_values(None, feeds)
    assert value.is_tensor_sequence() and len(value.numpy()) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
def test_maps_as_onnxruntime_returns_them(provider: str) -> None:
    text = ('<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 1]>'
            "g (float[n,2] x) => (seq(map(int64, float)) z)"
            "{ z = ai.onnx.ml.ZipMap<classlabels_int64s = [10, 20]>(x) }")  # fmt: skip
    model = sx.load_text(text)
    x = np.array([[0.25, 0.75], [1, 0]], np.float32)
    (mine,) = sx.InferenceSession(model, providers=[provider]).run(None, {"x": x})
    (theirs,) = onnxruntime.InferenceSession(sx.to_bytes(model)).run(None, {"x": x})
    assert mine == theirs and [type(item) for item in mine] == [dict, dict]


@pytest.mark.parametrize(
    ("keys", "good", "bad"),
    [("int64", {1: 0.5}, {"1": 0.5}), ("int64", {np.int64(1): 0.5}, {1.0: 0.5}),
     ("int64", {}, {True: 0.5}), ("string", {"a": 0.5}, {1: 0.5})],
)  # fmt: skip
def test_keys_of_maps_have_the_declared_type(keys: str, good: dict, bad: dict) -> None:
    vocabulary = "int64_vocabulary = [1, 2]" if keys == "int64" else 'string_vocabulary = ["a"]'
    model = sx.load_text('<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 1]>'
                         f"g (map({keys}, float) x) => (float[1, n] y)"
                         f"{{ y = ai.onnx.ml.DictVectorizer <{vocabulary}> (x) }}")  # fmt: skip
    for provider in PROVIDERS:
        session = sx.InferenceSession(sx.to_bytes(model), providers=[provider])
        session.run(None, {"x": good})
        with pytest.raises(InputError, match="has the key"):
            session.run(None, {"x": bad})


@pytest.mark.parametrize("odd", [np.nan, None, 1, 1.5, True, b"ab", np.float32(0.1), np.str_("q")])
def test_objects_become_text_as_in_onnxruntime(odd: object) -> None:
    model = sx.load_text(f"{HEAD} g (string[n] x) => (string[n] y) {{ y = Identity (x) }}")
    fed = np.empty(3, object)
    fed[:] = ["a", odd, "c"]
    (theirs,) = onnxruntime.InferenceSession(sx.to_bytes(model)).run(None, {"x": fed})
    for provider in PROVIDERS:
        (mine,) = sx.InferenceSession(model, providers=[provider]).run(None, {"x": fed})
        assert mine.tolist() == theirs.tolist()
    assert fed[1] is odd
