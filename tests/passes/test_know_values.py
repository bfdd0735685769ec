"""What is known of values, found piece by piece."""

import gc

import pytest

import sardonyx as sx
from sardonyx.graph import Graph, Model, Node, Opsets, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.collect import collection_paused, disband
from sardonyx.ops.catalog import standard
from sardonyx.ops.infer import infer_facts
from sardonyx.passes import know_values
from sardonyx.passes.know_values import Knowledge
from tests.passes.cases import model_of, weights

OLD = """
    a = Squeeze<axes = [1]>(x)
    k = Constant<value = int64[2] {-1, 4}>()
    b = Reshape(a, k)
    c = Softmax<axis = 0>(b)
    s = Shape(c)
    d = ReduceSum<axes = [1], keepdims = 0>(c)
    e = ConstantOfShape(s)
    f = Add(e, c)
    p, q = Split<axis = 1, split = [1, 3]>(f)
    y = Concat<axis = 1>(q, p)
"""


def old_model() -> Model:
    return model_of("(float[n,1,8] x) => (float[m,4] y)", OLD, opset=11)


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_pieces_tell_the_same(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(know_values, "PIECE", piece)
    model = old_model()
    expected = infer_facts(model)
    found = Knowledge(standard()).update(model)
    assert [str(found[value]) for value in model.graph.values()] == [
        str(expected[value]) for value in model.graph.values()
    ]


@pytest.mark.parametrize("piece", [1, 3])
def test_simplified_piece_by_piece(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    expected = sx.to_bytes(sx.simplify(old_model()))
    monkeypatch.setattr(know_values, "PIECE", piece)
    assert sx.to_bytes(sx.simplify(old_model())) == expected


def test_nodes_made_later_are_inferred_alone() -> None:
    model = old_model()
    knowledge = Knowledge(standard())
    before = dict(knowledge.update(model))
    node = Node("Squeeze", [model.graph.value("x")], ["late"], {"axes": [1]})
    model.graph.nodes.append(node)
    found = knowledge.update(model)
    assert found[node.output].shape == found[model.graph.value("a")].shape
    assert all(found[value] is fact for value, fact in before.items())


def count(kind: type) -> int:
    return sum(isinstance(item, kind) for item in gc.get_objects())


def test_a_disbanded_model_is_gone_at_once() -> None:
    branch = """z = Abs(x) y = If(c) <then_branch = t () => (float[3] u) { u = Exp(z) },
                                      else_branch = e () => (float[3] v) { v = Mul(z, w) }>"""
    signature = "(bool c, float[3] x) => (float[3] y, float[3] z)"
    model = model_of(signature, branch, weights("w", 3))
    gc.collect()
    with collection_paused():
        before = count(Node), count(Value)
        twin = clone_model(model)
        assert (count(Node), count(Value)) == (before[0] + 4, before[1] + 7)
        disband(twin)
        assert (count(Node), count(Value)) == before
    assert len(sx.to_bytes(model)) > 100


def test_models_without_nodes() -> None:
    model = Model(Graph("g"), Opsets({"": 11}), 8)
    assert Knowledge(standard()).update(model) == {}
    disband(model)
    assert model.graph is not None
