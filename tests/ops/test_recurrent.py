"""RNN, GRU and LSTM against onnxruntime, over options, versions, types and edges."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import ConversionError, InferenceError, SardonyxError
from sardonyx.ops.convert import convert_opset
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_there, same

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 2, 5


def layer(op_type, direction="forward", *, bias=True, states=True, lengths=None, peepholes=False,
          layout=0, dtype=np.float32, seed=0):  # fmt: skip
    """Inputs of a layer, drawn at random."""
    draw = np.random.default_rng(seed)
    gates, directions = GATES[op_type], 2 if direction == "bidirectional" else 1

    def make(*shape):
        return (draw.normal(size=shape) * 0.8).astype(dtype)

    state = (BATCH, directions, HIDDEN) if layout else (directions, BATCH, HIDDEN)
    inputs = {
        "X": make(BATCH, STEPS, WIDTH) if layout else make(STEPS, BATCH, WIDTH),
        "W": make(directions, gates * HIDDEN, WIDTH),
        "R": make(directions, gates * HIDDEN, HIDDEN),
        "B": make(directions, 2 * gates * HIDDEN) if bias else None,
        "sequence_lens": None if lengths is None else np.array(lengths, np.int32),
        "initial_h": make(*state) if states else None,
    }
    if op_type == "LSTM":
        inputs["initial_c"] = make(*state) if states else None
        inputs["P"] = make(directions, 3 * HIDDEN) if peepholes else None
    return inputs


def outputs(op_type):
    return ["Y", "Y_h", "Y_c"] if op_type == "LSTM" else ["Y", "Y_h"]


def agree(op_type, inputs, **attributes):
    content = one_node(op_type, inputs, outputs(op_type), hidden_size=HIDDEN, **attributes)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("lengths", [None, [4, 2, 3], [1, 0, 4]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", GATES)
def test_directions_and_lengths(op_type, direction, lengths):
    for bias, states in [(True, True), (False, False)]:
        agree(op_type, layer(op_type, direction, bias=bias, states=states, lengths=lengths),
              direction=direction)  # fmt: skip


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm_peepholes_clip_and_coupled_gates(direction):
    inputs = layer("LSTM", direction, peepholes=True, lengths=[4, 2, 3])
    agree("LSTM", inputs, direction=direction)
    agree("LSTM", inputs, direction=direction, input_forget=1)
    agree("LSTM", inputs, direction=direction, clip=0.4)
    agree("LSTM", inputs, direction=direction, clip=0.4, input_forget=1)


@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gru_reset_and_clip(direction, reset):
    inputs = layer("GRU", direction, lengths=[4, 2, 3])
    agree("GRU", inputs, direction=direction, linear_before_reset=reset)
    agree("GRU", inputs, direction=direction, linear_before_reset=reset, clip=0.3)


def test_rnn_clip():
    agree("RNN", layer("RNN"), clip=0.3)


@pytest.mark.parametrize(
    "name", ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"]
)
def test_activation_defaults(name):
    agree("RNN", layer("RNN"), activations=[name])
    agree("LSTM", layer("LSTM"), activations=["Sigmoid", name, "Tanh"])


def test_defaults_are_those_of_the_operators():
    """onnxruntime takes 0 for what ThresholdedRelu, Affine and ScaledTanh are not given."""
    inputs = layer("RNN", states=False)
    for name, alpha, beta in [("ThresholdedRelu", 1, 0), ("Affine", 1, 0), ("ScaledTanh", 1, 1)]:
        plain = one_node("RNN", inputs, ["Y"], activations=[name])
        said = one_node("RNN", inputs, ["Y"], hidden_size=HIDDEN, activations=[name],
                        activation_alpha=[float(alpha)], activation_beta=[float(beta)])  # fmt: skip
        same(run_here(plain, inputs), run_there(said, inputs))


def test_alphas_and_betas_go_to_activations_in_order():
    agree("LSTM", layer("LSTM", "bidirectional"), direction="bidirectional",
          activations=["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "ScaledTanh", "Affine"],
          activation_alpha=[0.3, 0.2, 0.9, 0.7], activation_beta=[0.4, 0.8, 0.1])  # fmt: skip
    agree("GRU", layer("GRU", "bidirectional"), direction="bidirectional",
          activations=["HardSigmoid", "Elu", "HardSigmoid", "Softplus"],
          activation_alpha=[0.3, 0.5, 0.25], activation_beta=[0.4, 0.6])  # fmt: skip
    agree("RNN", layer("RNN", "bidirectional"), direction="bidirectional",
          activations=["ThresholdedRelu", "Affine"], activation_alpha=[0.2, 0.6],
          activation_beta=[0.1])  # fmt: skip


@pytest.mark.parametrize("op_type", GATES)
def test_batch_first_is_the_transposed_layer(op_type):
    for direction in ("reverse", "bidirectional"):
        inputs = layer(op_type, direction, lengths=[4, 2, 3], layout=1)
        content = one_node(op_type, inputs, outputs(op_type), direction=direction, layout=1)
        straight = dict(inputs)
        for name in ("X", "initial_h", "initial_c"):
            if name in inputs:
                straight[name] = inputs[name].swapaxes(0, 1)
        plain = one_node(
            op_type, straight, outputs(op_type), direction=direction, hidden_size=HIDDEN
        )
        y, *states = run_there(plain, straight)
        same(
            run_here(content, inputs),
            [y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in states)],
        )


@pytest.mark.parametrize("op_type", GATES)
def test_old_versions(op_type):
    for direction in ("forward", "bidirectional"):
        inputs = layer(op_type, direction, lengths=[4, 2, 3])
        named = {} if direction == "forward" else {"direction": direction}
        expected = run_there(
            one_node(op_type, inputs, outputs(op_type), hidden_size=HIDDEN, **named), inputs
        )
        for opset in (1, 3, 6, 7, 13, 14, 21):
            extra = {"output_sequence": 1} if opset < 7 else {}
            content = one_node(op_type, inputs, outputs(op_type), opset, **named, **extra)
            same(run_here(content, inputs), expected)


def test_the_first_version_of_gru_misspells_its_default():
    inputs = layer("GRU")
    content = one_node("GRU", inputs, outputs("GRU"), 1, direction="foward")
    plain = one_node("GRU", inputs, outputs("GRU"), hidden_size=HIDDEN)
    same(run_here(content, inputs), run_there(plain, inputs))


@pytest.mark.parametrize("made", [["Y", "Y_h"], ["Y"], ["", "Y_h"]])
@pytest.mark.parametrize("op_type", GATES)
def test_downgrades(op_type, made):
    inputs = layer(op_type, "bidirectional", layout=1)
    content = one_node(op_type, inputs, made, direction="bidirectional", layout=1)
    expected = run_here(content, inputs)
    for opset in (21, 17, 13, 7):
        same(run_converted(content, inputs, opset), expected)


def test_downgrade_to_the_first_versions():
    for op_type, lowest in (("RNN", 1), ("LSTM", 1), ("GRU", 3)):
        inputs = layer(op_type)
        content = one_node(op_type, inputs, ["Y", "Y_h"], hidden_size=HIDDEN)
        model = convert_opset(load(content), lowest)
        (node,) = model.graph.nodes
        assert node.attribute("output_sequence") == 1
    content = one_node("GRU", inputs, ["Y", "Y_h"], linear_before_reset=1)
    with pytest.raises(ConversionError, match="linear_before_reset"):
        convert_opset(load(content), 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("op_type", GATES)
def test_element_types(op_type, dtype):
    inputs = layer(op_type, "bidirectional", dtype=dtype)
    content = one_node(op_type, inputs, outputs(op_type), direction="bidirectional")
    wide = {
        name: None if item is None else item.astype(np.float32) for name, item in inputs.items()
    }
    expected = run_here(one_node(op_type, wide, outputs(op_type), direction="bidirectional"), wide)
    actual = run_here(content, inputs)
    assert all(item.dtype == dtype for item in actual)
    same([item.astype(np.float32) for item in actual],
         [item.astype(dtype).astype(np.float32) for item in expected], rtol=1e-5)  # fmt: skip


@pytest.mark.parametrize("op_type", GATES)
def test_nothing_to_do(op_type):
    for shape in [(0, BATCH, WIDTH), (STEPS, 0, WIDTH)]:
        inputs = layer(op_type, states=False)
        inputs["X"] = np.zeros(shape, np.float32)
        y, last, *_ = run_here(one_node(op_type, inputs, outputs(op_type)), inputs)
        assert y.shape == (shape[0], 1, shape[1], HIDDEN)
        assert last.shape == (1, shape[1], HIDDEN)
        assert not last.any()


@pytest.mark.parametrize("op_type", GATES)
def test_inference(op_type):
    shapes = {"X": ["steps", "batch", WIDTH]}
    inputs = layer(op_type, "bidirectional", states=False)
    content = one_node(op_type, inputs, outputs(op_type), shapes=shapes, direction="bidirectional")
    states = ["float[2,batch,5]"] * (len(outputs(op_type)) - 1)
    assert inferred(content) == ["float[steps,2,batch,5]", *states]
    content = one_node(op_type, inputs, ["Y", "Y_h"], shapes={"X": ["b", "s", 2]}, layout=1,
                       direction="bidirectional")  # fmt: skip
    assert inferred(content) == ["float[b,s,2,5]", "float[b,2,5]"]
    unknown = dict.fromkeys(("X", "W", "R", "B"))
    content = one_node(op_type, inputs, ["Y", "Y_h"], shapes=unknown, direction="bidirectional")
    assert inferred(content) == ["float[?,2,?,?]", "float[2,?,?]"]


def test_inference_contradictions():
    inputs = layer("LSTM")
    with pytest.raises(InferenceError, match="directions of W"):
        inferred(one_node("LSTM", inputs, ["Y"], direction="bidirectional"))
    with pytest.raises(InferenceError, match="hidden size"):
        inferred(one_node("LSTM", inputs, ["Y"], hidden_size=6))
    with pytest.raises(InferenceError, match="rank 2"):
        inferred(one_node("LSTM", inputs, ["Y"], shapes={"X": [3, 2]}))
    with pytest.raises(InferenceError, match="input size"):
        inferred(one_node("LSTM", inputs, ["Y"], shapes={"X": [4, 3, 7]}))
    with pytest.raises(InferenceError, match="sideways"):
        inferred(one_node("LSTM", inputs, ["Y"], direction="sideways"))


def test_wrong_models_are_refused():
    inputs = layer("RNN")
    with pytest.raises(SardonyxError, match="Gelu"):
        run_here(one_node("RNN", inputs, ["Y"], activations=["Gelu"]), inputs)
    with pytest.raises(SardonyxError, match="1 activations where 2 are needed"):
        both = layer("RNN", "bidirectional")
        run_here(
            one_node("RNN", both, ["Y"], activations=["Tanh"], direction="bidirectional"), both
        )
    with pytest.raises(SardonyxError, match="sequence_lens"):
        long = layer("RNN", lengths=[5, 1, 1])
        run_here(one_node("RNN", long, ["Y"]), long)


def test_biases_of_another_shape():
    inputs = {
        "x": np.ones((1, 3, 3), np.float32),
        "w": np.ones((1, 16, 3), np.float32),
        "r": np.ones((1, 16, 4), np.float32),
        "b": np.ones((17, 32), np.float32),
    }
    with pytest.raises(SardonyxError, match=r"biases need the shape \[1, 32\], not \[17, 32\]"):
        run_here(one_node("LSTM", inputs, ["y"], hidden_size=4), inputs)
