"""The three models that decide: right at every size, and near onnxruntime."""

import numpy as np
import pytest

import sardonyx as sx
from benchmarks.slice import bert, bottleneck, mlp, peer_session
from sardonyx.compiler.program import compile_model


@pytest.mark.parametrize("rows", [1, 2, 5, 13, 64])
def test_mlp(rows: int) -> None:
    model, _ = mlp()
    program = compile_model(model, threads=1)
    feeds = {"x": np.random.default_rng(rows).standard_normal((rows, 64), np.float32)}
    (found,) = program.run(feeds)
    np.testing.assert_allclose(found, sx.evaluate(model, feeds)[0], rtol=1e-4)
    np.testing.assert_allclose(found, peer_session(model, 1).run(None, feeds)[0], rtol=1e-4)
    assert program.kernels == 3 and program.segments == 1


@pytest.mark.parametrize(("batch", "size"), [(1, 7), (2, 14), (1, 20)])
def test_bottleneck(batch: int, size: int) -> None:
    model, _ = bottleneck(size, 64, 32)
    feeds = {"x": np.random.default_rng(0).standard_normal((batch, 64, size, size), np.float32)}
    one, two = (compile_model(model, threads=count).run(feeds)[0] for count in (1, 2))
    np.testing.assert_allclose(one, sx.evaluate(model, feeds)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        one, peer_session(model, 1).run(None, feeds)[0], rtol=1e-4, atol=1e-5
    )
    assert one.tobytes() == two.tobytes()


def test_bert_layer_at_several_lengths_with_one_compilation() -> None:
    model, _ = bert(96, 4)
    program, session = compile_model(model, threads=2), peer_session(model, 1)
    assert all(row.kernel != "reference" for row in program.explain())
    for batch, length in [(1, 1), (1, 16), (2, 33), (3, 7)]:
        feeds = {"x": np.random.default_rng(1).standard_normal((batch, length, 96), np.float32)}
        (found,) = program.run(feeds)
        np.testing.assert_allclose(found, sx.evaluate(model, feeds)[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found, session.run(None, feeds)[0], rtol=1e-4, atol=1e-4)


def test_bert_layer_has_no_copy_kernels() -> None:
    model, _ = bert(96, 4)
    program = compile_model(model, threads=1)
    kinds = [row.kernel.split()[0] for row in program.explain()]
    assert set(kinds) == {"attention", "contraction", "rows", "view"}
    assert program.kernels == 9
