"""`checker` refuses the same messages, files and bytes as onnx, with the same exceptions."""

import inspect
import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from tests.checker.broken_models import BRANCHES, CALL, PLAIN, Broken, sound
from tests.checker.mutate_messages import mutate
from tests.checker.test_broken import CASES
from tests.compat.differential import assert_same, outcome

Call = Callable[[Any, Path], Any]
SOUND = {"plain": PLAIN, "branches": BRANCHES, "call": CALL}
OPTIONS: dict[str, dict[str, bool]] = {
    "default": {},
    "custom": {"check_custom_domain": True},
    "skip": {"skip_opset_compatibility_check": True},
}


def _model(o: Any, text: str) -> Any:
    return o.ModelProto.FromString(sound(text))


def test_names_are_those_of_onnx() -> None:
    assert sorted(ours.checker.__all__) == sorted(real.checker.__all__)
    assert ours.checker.MAXIMUM_PROTOBUF == real.checker.MAXIMUM_PROTOBUF
    public = {name for name in dir(real.checker.C) if not name.startswith("_")}
    assert public <= set(dir(ours.checker.C))


@pytest.mark.parametrize(
    "name", [name for name in real.checker.__all__ if name.startswith("check")]
)
def test_parameters_are_those_of_onnx(name: str) -> None:
    wanted = inspect.signature(getattr(real.checker, name)).parameters
    found = inspect.signature(getattr(ours.checker, name)).parameters
    assert list(found) == list(wanted)
    for key, parameter in wanted.items():
        assert found[key].kind == parameter.kind
        if isinstance(parameter.default, bool):
            assert found[key].default == parameter.default


def test_validation_error_is_an_exception_alone() -> None:
    names = [kind.__name__ for kind in real.checker.ValidationError.__mro__]
    assert [kind.__name__ for kind in ours.checker.ValidationError.__mro__] == names
    assert ours.checker.C.ValidationError is ours.checker.ValidationError


def _verdict(call: Callable[[Any], Any], o: Any) -> list[str]:
    """The classes of what a call raises; none where it accepts."""
    try:
        call(o)
    except Exception as error:  # noqa: BLE001 - any exception is an outcome to compare
        return [kind.__name__ for kind in type(error).__mro__]
    return []


def _assert_same_verdict(call: Callable[[Any], Any]) -> None:
    assert _verdict(call, ours) == _verdict(call, real)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_sound_models(text: str, options: dict[str, bool]) -> None:
    _assert_same_verdict(lambda o: o.checker.check_model(_model(o, text), **options))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_broken_models(case: Broken, options: dict[str, bool]) -> None:
    _assert_same_verdict(lambda o: o.checker.check_model(case.message(o), **options))


@pytest.mark.parametrize("seed", range(40))
def test_randomly_broken_models(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        message = real.ModelProto.FromString(sound(chance.choice(list(SOUND.values()))))
        mutate(message, chance, chance.choice((1, 1, 2, 3)))
        content = message.SerializeToString()
        _assert_same_verdict(lambda o, content=content: o.checker.check_model(content))


def _parts(message: Any) -> list[tuple[str, str, bytes]]:
    """Every part of a model with a check of its own: the check, the message's name, its bytes."""
    found: list[tuple[str, Any]] = []
    graphs = [message.graph, *message.functions]
    found += [("check_function", function) for function in message.functions]
    for graph in graphs:
        if isinstance(graph, real.GraphProto):
            found.append(("check_graph", graph))
            found += [("check_value_info", item) for item in (*graph.input, *graph.output)]
            found += [("check_tensor", item) for item in graph.initializer]
            found += [("check_sparse_tensor", item) for item in graph.sparse_initializer]
        for node in graph.node:
            found.append(("check_node", node))
            for attribute in node.attribute:
                found.append(("check_attribute", attribute))
                graphs += [attribute.g] if attribute.HasField("g") else []
                found += [("check_tensor", attribute.t)] if attribute.HasField("t") else []
    return [(check, type(part).__name__, part.SerializeToString()) for check, part in found]


@cache
def _distinct_parts() -> list[tuple[str, str, bytes]]:
    parts: dict[tuple[str, str, bytes], None] = {}
    for message in (
        *(_model(real, text) for text in SOUND.values()),
        *(c.message(real) for c in CASES),
    ):
        parts.update(dict.fromkeys(_parts(message)))
    return list(parts)


CONTEXTS = (None, (14, {"": 21, "own": 1}), (3, {"": 9}), (1, {}), (-1, {"": 13, "ai.onnx.ml": 3}))


def _check_part(o: Any, part: tuple[str, str, bytes], context: Any) -> None:
    check, kind, content = part
    message = getattr(o, kind).FromString(content)
    if context is None:
        getattr(o.checker, check)(message)
        return
    given = o.checker.C.CheckerContext()
    given.ir_version, given.opset_imports = context
    getattr(o.checker, check)(message, given)


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_parts_of_models(context: Any) -> None:
    parts = _distinct_parts()
    assert len(parts) > 500
    for part in parts:
        _assert_same_verdict(lambda o, part=part: _check_part(o, part, context))


@pytest.mark.parametrize("seed", range(20))
def test_randomly_broken_parts(seed: int) -> None:
    chance = random.Random(seed)
    parts = _distinct_parts()
    for _ in range(20):
        check, kind, content = chance.choice(parts)
        message = getattr(real, kind).FromString(content)
        mutate(message, chance, chance.choice((1, 2)))
        part, context = (check, kind, message.SerializeToString()), chance.choice(CONTEXTS)
        _assert_same_verdict(lambda o, p=part, c=context: _check_part(o, p, c))


def _external(o: Any, folder: Path, location: str, **fields: str) -> Path:
    message = _model(o, PLAIN)
    tensor = message.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = 1
    for key, value in {"location": location, **fields}.items():
        tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(message.SerializeToString())
    return path


def _with_file(o: Any, folder: Path) -> None:
    (folder / "w.bin").write_bytes(bytes(12))
    o.checker.check_model(_external(o, folder, "w.bin"))


def _with_link(o: Any, folder: Path) -> None:
    (folder / "real.bin").write_bytes(bytes(12))
    (folder / "w.bin").symlink_to(folder / "real.bin")
    o.checker.check_model(_external(o, folder, "w.bin"))


def _with_hard_link(o: Any, folder: Path) -> None:
    (folder / "real.bin").write_bytes(bytes(12))
    os.link(folder / "real.bin", folder / "w.bin")
    o.checker.check_model(_external(o, folder, "w.bin"))


def _with_linked_folder(o: Any, folder: Path, inside: bool = True) -> None:
    home = folder / "inner" if inside else folder.parent / f"{folder.name}_outer"
    home.mkdir()
    (home / "w.bin").write_bytes(bytes(12))
    (folder / "alias").symlink_to(home)
    o.checker.check_model(_external(o, folder, "alias/w.bin"))


def _with_folder(o: Any, folder: Path) -> None:
    (folder / "w.bin").mkdir()
    o.checker.check_model(_external(o, folder, "w.bin"))


def _with_dots(o: Any, folder: Path, location: str) -> None:
    (folder / "a").mkdir()
    for name in ("w.bin", "a..b", "a/w.bin", "#w"):
        (folder / name).write_bytes(bytes(12))
    o.checker.check_model(str(_external(o, folder, location)))


def _with_two_locations(o: Any, folder: Path) -> None:
    (folder / "w.bin").write_bytes(bytes(12))
    path = _external(o, folder, "w.bin")
    message = o.ModelProto.FromString(path.read_bytes())
    message.graph.initializer[0].external_data.add(key="location", value="none.bin")
    path.write_bytes(message.SerializeToString())
    o.checker.check_model(path)


def _from_elsewhere(o: Any, folder: Path) -> None:
    (folder / "w.bin").write_bytes(bytes(12))
    o.checker.check_model(_external(o, folder, "w.bin").read_bytes())


def _after_writing(o: Any, model: Path, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    o.checker.check_model(model)


FILES: dict[str, Call] = {
    "file": _with_file,
    "missing": lambda o, d: o.checker.check_model(_external(o, d, "w.bin")),
    "link": _with_link,
    "hard link": _with_hard_link,
    "linked folder": _with_linked_folder,
    "linked folder outside": lambda o, d: _with_linked_folder(o, d, inside=False),
    "folder": _with_folder,
    "two locations": _with_two_locations,
    "bytes": _from_elsewhere,
    "short file": lambda o, d: _after_writing(o, _external(o, d, "w.bin"), d / "w.bin", b"1"),
    "offset": lambda o, d: _after_writing(
        o, _external(o, d, "w.bin", offset="x"), d / "w.bin", bytes(12)
    ),
    **{
        f"at {location}": lambda o, d, location=location: _with_dots(o, d, location)
        for location in (
            "w.bin", "./w.bin", "a/../w.bin", "a/w.bin", "a..b", "../w.bin", "a/../../w.bin", "a",
            ".", "", "/etc/passwd", "w.bin/", "a//w.bin", "#w", "#none",
        )
    },
    "no file": lambda o, d: o.checker.check_model(str(d / "none.onnx")),
    "a folder": lambda o, d: o.checker.check_model(d),
    "empty file": lambda o, d: _after_writing(o, d / "m", d / "m", b""),
    "garbage": lambda o, d: _after_writing(o, d / "m", d / "m", b"\xff\xff"),
    "sound file": lambda o, d: _after_writing(o, d / "m", d / "m", sound(PLAIN)),
}  # fmt: skip


@pytest.mark.parametrize("call", FILES.values(), ids=FILES)
def test_files(call: Call, tmp_path: Path) -> None:
    assert_same(call, tmp_path)


def _context(o: Any, **values: Any) -> Any:
    context = o.checker.C.CheckerContext()
    for name, value in values.items():
        setattr(context, name, value)
    return (context.ir_version, context.opset_imports)


def _nested(o: Any, depth: int) -> Any:
    graph = o.GraphProto(name="g")
    for _ in range(depth):
        outer = o.GraphProto(name="g")
        outer.node.add(op_type="Foo", output=["o"]).attribute.add(name="b", type=5).g.CopyFrom(
            graph
        )
        graph = outer
    return graph


CALLS: dict[str, Call] = {
    "garbage": lambda o, _: o.checker.check_model(b"\xff\xff"),
    "empty": lambda o, _: o.checker.check_model(b""),
    "bytearray": lambda o, _: o.checker.check_model(bytearray(sound(PLAIN))),
    "none": lambda o, _: o.checker.check_model(None),
    "number": lambda o, _: o.checker.check_model(3),
    "options": lambda o, _: o.checker.check_model(_model(o, PLAIN), 1),
    "option names": lambda o, _: o.checker.check_model(
        model=_model(o, PLAIN), full_check=False, check_custom_domain=False
    ),
    "unknown option": lambda o, _: o.checker.check_model(_model(o, PLAIN), strict=True),
    "wrong message": lambda o, _: o.checker.check_node(o.TensorProto()),
    "graph for model": lambda o, _: o.checker.check_model(_model(o, PLAIN).graph),
    "no message": lambda o, _: o.checker.check_tensor(None),
    "wrong context": lambda o, _: o.checker.check_node(o.NodeProto(), 3),
    "wrong scope": lambda o, _: o.checker.check_node(
        o.NodeProto(), o.checker.DEFAULT_CONTEXT, o.checker.DEFAULT_CONTEXT
    ),
    "names": lambda o, _: o.checker.check_graph(
        graph=_model(o, PLAIN).graph,
        ctx=o.checker.DEFAULT_CONTEXT,
        lexical_scope_ctx=o.checker.LEXICAL_SCOPE_CONTEXT,
    ),
    "default context": lambda o, _: (
        o.checker.DEFAULT_CONTEXT.ir_version,
        o.checker.DEFAULT_CONTEXT.opset_imports,
    ),
    "new context": _context,
    "version": lambda o, _: _context(o, ir_version=7),
    "truth": lambda o, _: _context(o, ir_version=True),
    "text version": lambda o, _: _context(o, ir_version="7"),
    "broken version": lambda o, _: _context(o, ir_version=7.0),
    "large version": lambda o, _: _context(o, ir_version=2**40),
    "imports": lambda o, _: _context(o, opset_imports={"": 3, "a": 1}),
    "list of imports": lambda o, _: _context(o, opset_imports=[("", 3)]),
    "numbered imports": lambda o, _: _context(o, opset_imports={1: 3}),
    "text imports": lambda o, _: _context(o, opset_imports={"": "3"}),
    "other field": lambda o, _: _context(o, other=1),
    "context argument": lambda o, _: o.checker.C.CheckerContext(1),
    "scope field": lambda o, _: setattr(o.checker.C.LexicalScopeContext(), "other", 1),
    "bytes for C": lambda o, _: o.checker.C.check_model(sound(PLAIN)),
    "named bytes for C": lambda o, _: o.checker.C.check_model(bytes=sound(PLAIN), full_check=False),
    "text for C": lambda o, _: o.checker.C.check_model("model"),
    "path for C": lambda o, d: o.checker.C.check_model_path(str(d / "none")),
    "garbage for C": lambda o, _: o.checker.C.check_tensor(b"\xff", o.checker.DEFAULT_CONTEXT),
    "copied imports": lambda o, _: o.checker.DEFAULT_CONTEXT.opset_imports.clear(),
    "shallow": lambda o, _: o.checker.check_graph(_nested(o, 3)),
    "function without context": lambda o, _: o.checker.check_function(_model(o, CALL).functions[0]),
    "function of another version": lambda o, _: o.checker.check_function(
        _model(o, CALL).functions[1], o.checker.DEFAULT_CONTEXT
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call: Call, tmp_path: Path) -> None:
    assert_same(call, tmp_path)


@pytest.mark.parametrize("op_type", ["LayerNormalization", "RMSNormalization"])
def test_surplus_attributes(op_type: str) -> None:
    def call(o: Any) -> None:
        node = o.NodeProto(op_type=op_type, input=["x", "s"], output=["y"])
        node.attribute.add(name="surplus", type=1, f=1)
        o.checker.check_node(node)

    _assert_same_verdict(call)


def _registered(o: Any, check: Callable[[Any, Any], Any]) -> Any:
    schema = o.defs.OpSchema(
        "Foo", "own", 1,
        inputs=[o.defs.OpSchema.FormalParameter("x", "T")],
        outputs=[o.defs.OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
    )  # fmt: skip
    model = _model(o, PLAIN)
    model.opset_import.add(domain="own", version=1)
    node = model.graph.node.add(op_type="Foo", domain="own", input=["x"], output=["q"])
    o.defs.register_schema(schema)
    try:
        return check(model, node)
    finally:
        o.defs.deregister_schema("Foo", 1, "own")


@pytest.mark.parametrize("attributes", [0, 1])
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("custom", [False, True])
def test_registered_operators(attributes: int, inputs: int, custom: bool, tmp_path: Path) -> None:
    def call(o: Any, _: Path) -> Any:
        def check(model: Any, node: Any) -> None:
            node.input.extend(["x"] * (inputs - 1))
            node.attribute.extend([o.AttributeProto(name="k", type=1, f=1)] * attributes)
            o.checker.check_model(model, check_custom_domain=custom)

        return _registered(o, check)

    assert_same(call, tmp_path)


FULL = {
    "sound": "g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }",
    "sizes": "g (float[2,3] x, float[4,5] z) => (float[2,3] y) { y = MatMul (x, z) }",
    "broadcast": "g (float[2] x, float[3] z) => (float[3] y) { y = Add (x, z) }",
    "rank": "g (float[2,3] x) => (float[2] y) { y = Relu (x) }",
    "output type": "g (float[2] x) => (int64[2] y) { y = Relu (x) }",
    "input type": "g (string[2] x) => (string[2] y) { y = Relu (x) }",
    "two types": "g (float[2] x, int64[2] z) => (float[2] y) { y = Add (x, z) }",
    "axis": "g (float[2] x) => (float[2] y) { y = Concat <axis = 3> (x, x) }",
    "structure": "g (float[2] x) => (float[2] y) { y = Relu (nowhere) }",
    "symbols": "g (float[N,3] x) => (float[N,3] y) { y = Neg (x) }",
    "permutation": "g (float[2,3] x) => (float[2,3] y) { y = Transpose <perm = [1, 0]> (x) }",
}


@pytest.mark.parametrize("text", FULL.values(), ids=FULL)
def test_full_check(text: str, tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> ' + text
    assert_same(lambda o, _: o.checker.check_model(_model(o, text), full_check=True), tmp_path)


def test_too_deep_a_message_is_refused(tmp_path: Path) -> None:
    graph = _nested(real, 60)
    found = outcome(lambda o, _: o.checker.check_graph(_nested(o, 60)), ours, tmp_path / "ours")
    with pytest.raises(ValueError, match="malformed"):
        real.checker.check_graph(graph)
    assert found == ("raises", ["ValueError", "Exception", "BaseException", "object"])


def test_messages_say_where_and_what_to_do() -> None:
    model = _model(ours, PLAIN)
    model.graph.node[1].input[0] = "nowhere"
    with pytest.raises(ours.checker.ValidationError) as caught:
        ours.checker.check_model(model)
    assert str(caught.value).startswith("graph 'g' > node 'relu' (Relu) > input 0: 'nowhere'")
    assert "correct the name" in str(caught.value)


def test_a_checked_model_stays_as_it_is() -> None:
    model = _model(ours, CALL)
    before = model.SerializeToString()
    ours.checker.check_model(model, full_check=True)
    assert model.SerializeToString() == before


def test_numpy_weights(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    assert_same(lambda o, _: o.checker.check_tensor(o.numpy_helper.from_array(array)), tmp_path)
