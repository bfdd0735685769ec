"""Small language models as subgraphs: a decoder alone, and an encoder with a decoder."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, HEADS, SIZE = 30, 2, 4
HIDDEN = HEADS * SIZE
INT, FLOAT = TensorProto.INT32, TensorProto.FLOAT
_KEYS = ["B", HEADS, "S", SIZE]


class Weights:
    """The same random weights for every graph, under a prefix of its own."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        shapes = {"words": (WORDS, HIDDEN), "sources": (WORDS, HIDDEN), "places": (40, HIDDEN)}
        shapes |= dict.fromkeys(("sq", "sk", "sv", "cq", "ck", "cv"), (HIDDEN, HIDDEN))
        shapes |= {"merged": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, WORDS)}
        self.arrays = {
            name: (generator.standard_normal(shape) * 0.7).astype(np.float32)
            for name, shape in shapes.items()
        } | {"none": np.zeros(3 * HIDDEN, np.float32), "heads": np.array([0, 0, HEADS, SIZE])}

    def initializers(self, prefix: str, nodes: list[Any]) -> list[Any]:
        """The weights that nodes read under a prefix."""
        used = {name for node in nodes for name in node.input}
        return [
            numpy_helper.from_array(array, prefix + name)
            for name, array in self.arrays.items()
            if prefix + name in used
        ]


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    """A node; attention comes from `com.microsoft`."""
    domain = "com.microsoft" if "Attention" in op else ""
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def value(name: str, kind: int, shape: list[Any]) -> Any:
    """A declared value."""
    return helper.make_tensor_value_info(name, kind, shape)


def decoder_only(weights: Weights, prefix: str) -> Any:
    """input_ids, position_ids, attention_mask, past_0 -> logits, present_0."""
    p = prefix
    nodes = [
        node("Gather", [f"{p}words", "input_ids"], [f"{p}x"]),
        node("Gather", [f"{p}places", "position_ids"], [f"{p}y"]),
        node("Add", [f"{p}x", f"{p}y"], [f"{p}z"]),
        node(
            "Attention",
            [f"{p}z", f"{p}merged", f"{p}none", "attention_mask", "past_0"],
            [f"{p}a", "present_0"],
            num_heads=HEADS,
            unidirectional=1,
        ),
        node("Add", [f"{p}z", f"{p}a"], [f"{p}b"]),
        node("MatMul", [f"{p}b", f"{p}out"], ["logits"]),
    ]
    inputs = [value(name, INT, ["B", "S"]) for name in ("input_ids", "position_ids")]
    inputs += [value("attention_mask", INT, ["B", "T"])]
    inputs += [value("past_0", FLOAT, [2, "B", HEADS, "P", SIZE])]
    outputs = [value("logits", FLOAT, ["B", "S", WORDS])]
    outputs += [value("present_0", FLOAT, [2, "B", HEADS, "T", SIZE])]
    return helper.make_graph(nodes, f"{p}gpt", inputs, outputs, weights.initializers(p, nodes))


def _decoder_nodes(p: str, tokens: str, cross: str, past: list[str]) -> list[Any]:
    nodes = [node("Gather", [f"{p}words", tokens], [f"{p}x"])]
    nodes += [node("MatMul", [f"{p}x", f"{p}{w}"], [f"{p}{w}x"]) for w in ("sq", "sk", "sv", "cq")]
    own = [f"{p}sqx", f"{p}skx", f"{p}svx", *(["", "", "", *past] if past else [])]
    presents = [f"{p}s", "present_key_self_0", "present_value_self_0"]
    keys = [f"{cross}_key_cross_0", f"{cross}_value_cross_0"]
    nodes += [
        node("MultiHeadAttention", own, presents, num_heads=HEADS),
        node(
            "MultiHeadAttention",
            [f"{p}cqx", *keys, "", "encoder_attention_mask"],
            [f"{p}c"],
            num_heads=HEADS,
        ),
        node("Add", [f"{p}x", f"{p}s"], [f"{p}a"]),
        node("Add", [f"{p}a", f"{p}c"], [f"{p}b"]),
        node("MatMul", [f"{p}b", f"{p}out"], ["logits"]),
    ]
    return nodes


def encoder(weights: Weights, *, with_first_step: bool) -> Any:
    """Keys and values of the source; with a first step of the decoder, its scores and keys too."""
    p = "encoder_"
    nodes = [node("Gather", [f"{p}sources", "encoder_input_ids"], ["encoder_hidden_states"])]
    for name, made in (("ck", "key"), ("cv", "value")):
        nodes += [
            node("MatMul", ["encoder_hidden_states", f"{p}{name}"], [f"{p}{name}m"]),
            node("Reshape", [f"{p}{name}m", f"{p}heads"], [f"{p}{name}r"]),
            node("Transpose", [f"{p}{name}r"], [f"present_{made}_cross_0"], perm=[0, 2, 1, 3]),
        ]
    inputs = [value(f"encoder_{name}", INT, ["B", "S"]) for name in ("input_ids", "attention_mask")]
    outputs = [value(f"present_{name}_cross_0", FLOAT, _KEYS) for name in ("key", "value")]
    if with_first_step:
        nodes += _decoder_nodes(p, "decoder_input_ids", "present", [])
        inputs.append(value("decoder_input_ids", INT, ["B", 1]))
        first = [value("logits", FLOAT, ["B", 1, WORDS])]
        first += [value("encoder_hidden_states", FLOAT, ["B", "S", HIDDEN])]
        own = ["B", HEADS, 1, SIZE]
        first += [value(f"present_{name}_self_0", FLOAT, own) for name in ("key", "value")]
        outputs = first + outputs
    return helper.make_graph(nodes, "encoder", inputs, outputs, weights.initializers(p, nodes))


def decoder(weights: Weights, *, hidden_states: bool) -> Any:
    """One step behind an encoder."""
    p = "decoder_"
    nodes = _decoder_nodes(p, "input_ids", "past", ["past_key_self_0", "past_value_self_0"])
    inputs = [value("input_ids", INT, ["B", 1]), value("encoder_attention_mask", INT, ["B", "S"])]
    if hidden_states:
        inputs.append(value("encoder_hidden_states", FLOAT, ["B", "S", HIDDEN]))
    own = ["B", HEADS, "P", SIZE]
    inputs += [value(f"past_{name}_self_0", FLOAT, own) for name in ("key", "value")]
    inputs += [value(f"past_{name}_cross_0", FLOAT, _KEYS) for name in ("key", "value")]
    grown = ["B", HEADS, "Q", SIZE]
    outputs = [value("logits", FLOAT, ["B", 1, WORDS])]
    outputs += [value(f"present_{name}_self_0", FLOAT, grown) for name in ("key", "value")]
    return helper.make_graph(nodes, "decoder", inputs, outputs, weights.initializers(p, nodes))


def without_mask(nodes: list[Any]) -> list[Any]:
    """Nodes that see every position of the source."""
    for item in nodes:
        item.input[:] = ["" if name == "encoder_attention_mask" else name for name in item.input]
    return nodes


def whisper_encoder(weights: Weights) -> Any:
    """Keys and values of features, and a first step of the decoder on any number of tokens."""
    p = "encoder_"
    nodes = [node("Transpose", ["encoder_input_ids"], ["encoder_hidden_states"], perm=[0, 2, 1])]
    nodes += list(encoder(weights, with_first_step=False).node)[1:]
    nodes += without_mask(_decoder_nodes(p, "decoder_input_ids", "present", []))
    nodes[-5].attribute.append(helper.make_attribute("unidirectional", 1))
    inputs = [value("encoder_input_ids", FLOAT, ["B", HIDDEN, "S"])]
    inputs += [value("decoder_input_ids", INT, ["B", "L"])]
    outputs = [value("logits", FLOAT, ["B", "L", WORDS])]
    outputs += [value("encoder_hidden_states", FLOAT, ["B", "S", HIDDEN])]
    own = ["B", HEADS, "L", SIZE]
    outputs += [value(f"present_{name}_self_0", FLOAT, own) for name in ("key", "value")]
    outputs += [value(f"present_{name}_cross_0", FLOAT, _KEYS) for name in ("key", "value")]
    return helper.make_graph(nodes, "encoder", inputs, outputs, weights.initializers(p, nodes))


def whisper_decoder(weights: Weights, *, hidden_states: bool, columns: int | str) -> Any:
    """One step behind an encoder of features, fed one token or all so far."""
    graph = decoder(weights, hidden_states=hidden_states)
    without_mask(graph.node)
    del graph.input[1]
    for item in (graph.input[0], graph.output[0]):
        size = item.type.tensor_type.shape.dim[1]
        size.CopyFrom(value("", INT, [columns]).type.tensor_type.shape.dim[0])
    return graph


def model_of(
    op: str, feeds: dict[str, Any], outputs: dict[str, int], attributes: dict[str, Any]
) -> onnx.ModelProto:
    """A model of one node; an input that is None is absent."""
    names = [name if item is not None else "" for name, item in feeds.items()]
    search = helper.make_node(op, names, list(outputs), domain="com.microsoft", **attributes)
    inputs = [
        value(name, FLOAT if item.dtype == np.float32 else INT, list(item.shape))
        for name, item in feeds.items()
        if item is not None
    ]
    results = [value(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph([search], "g", inputs, results)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)
