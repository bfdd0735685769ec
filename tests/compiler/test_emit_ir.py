"""The text that kernels are written in: what is shared, what is not, and exact constants."""

import ctypes
import math
from typing import Any

import numpy as np
import pytest

from sardonyx.compiler import emit_ir as ir
from tests.compiler.native import engine_of

I64 = ir.IntType(64)


def binary_function() -> tuple[ir.Module, ir.Function]:
    module = ir.Module("test")
    return module, ir.Function(module, ir.FunctionType(I64, [I64, I64]), "f")


def call(module: ir.Module, *numbers: int) -> int:
    engine = engine_of(module)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(numbers))
    return int(prototype(engine.address("f"))(*numbers))


def test_an_instruction_is_written_once_where_it_is_known() -> None:
    module, function = binary_function()
    left, right = function.args
    entry, then, after = (function.append_basic_block(name) for name in ("entry", "then", "after"))
    b = ir.IRBuilder(entry)
    total = b.add(left, right)
    assert b.add(left, right) is total
    assert b.add(left, right, flags=("nsw",)) is not total
    b.cbranch(b.icmp_signed("<", left, right), then, after)
    b.position_at_end(then)
    assert b.add(left, right) is total
    inner = b.mul(left, right)
    b.branch(after)
    b.position_at_end(after)
    assert b.add(left, right) is total
    again = b.mul(left, right)
    assert again is not inner
    b.ret(b.add(total, again))
    assert call(module, 2, 3) == 11 and call(module, 5, 4) == 29


def test_branches_beside_each_other_share_nothing() -> None:
    module, function = binary_function()
    left, right = function.args
    entry, then, other, after = (
        function.append_basic_block(name) for name in ("entry", "then", "other", "after")
    )
    b = ir.IRBuilder(entry)
    b.cbranch(b.icmp_signed("<", left, right), then, other)
    made = []
    for block in (then, other):
        b.position_at_end(block)
        made.append(b.mul(left, right))
        b.branch(after)
    b.position_at_end(after)
    made.append(b.mul(left, right))
    assert len({value.text for value in made}) == 3
    result = b.phi(I64)
    result.add_incoming(made[0], then)
    result.add_incoming(made[1], other)
    b.ret(b.sub(result, made[2]))
    assert call(module, 2, 3) == 0 == call(module, 3, 2)


def test_a_loop_sees_what_stands_before_it_and_not_the_other_way() -> None:
    module, function = binary_function()
    count, step = function.args
    entry, loop, after = (function.append_basic_block(name) for name in ("entry", "loop", "after"))
    b = ir.IRBuilder(entry)
    zero = ir.Constant(I64, 0)
    twice = b.add(step, step)
    b.cbranch(b.icmp_signed("<", zero, count), loop, after)
    b.position_at_end(loop)
    number, total = b.phi(I64), b.phi(I64)
    assert b.add(step, step) is twice
    following, sum_ = b.add(number, ir.Constant(I64, 1)), b.add(total, twice)
    assert b.mul(step, step).block is entry
    quotient = b.sdiv(count, step)
    assert quotient.block is loop
    assert b.sdiv(count, ir.Constant(I64, 3)).block is entry
    for phi, value in ((number, following), (total, sum_)):
        phi.add_incoming(zero, entry)
        phi.add_incoming(value, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, after)
    b.position_at_end(after)
    result = b.phi(I64)
    result.add_incoming(zero, entry)
    result.add_incoming(sum_, loop)
    assert b.sdiv(count, step) is not quotient
    b.ret(result)
    assert call(module, 4, 3) == 24 and call(module, 0, 3) == 0


@pytest.mark.parametrize("number", [0.0, -0.0, 0.1, 1e-45, -3.5, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(
    "type_, dtype",
    [(ir.HalfType(), np.float16), (ir.FloatType(), np.float32), (ir.DoubleType(), np.float64)],
)
def test_floats_keep_their_bits(type_: Any, dtype: Any, number: float) -> None:
    module = ir.Module("test")
    signature = ir.FunctionType(ir.VoidType(), [type_.as_pointer()])
    function = ir.Function(module, signature, "f")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    vector = ir.VectorType(type_, 4)
    constant = ir.Constant(vector, [number, 1.0, number, -1.0])
    pointer = b.bitcast(function.args[0], vector.as_pointer())
    b.store(constant, pointer, align=1)
    b.store(ir.Constant(type_, number), b.gep(function.args[0], [ir.Constant(I64, 1)]))
    b.ret_void()
    found = np.zeros(4, dtype)
    engine = engine_of(module)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.address("f"))(found.ctypes.data)
    wanted = np.array([number, number, number, -1.0]).astype(dtype)
    np.testing.assert_array_equal(found, wanted)
    assert (np.signbit(found) == np.signbit(wanted)).all()
