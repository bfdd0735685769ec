"""Sums of products of the parts of words in every lane: four of bytes, or two of bfloat16."""

from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_math import declare, intrinsic, like, splat

_PAIRS = {
    ("x86_64", 4): "llvm.x86.sse2.pmadd.wd",
    ("x86_64", 8): "llvm.x86.avx2.pmadd.wd",
    ("x86_64", 16): "llvm.x86.avx512.pmaddw.d.512",
    ("wasm32", 4): "llvm.wasm.dot",
}
"""By machine and lanes: products of int16, two and two added to an int32."""
_PAIR_SUMS = {
    ("vdpbf16ps", 16): "llvm.x86.avx512bf16.dpbf16ps.512",
    ("bfdot", 4): "llvm.aarch64.neon.bfdot.v4f32.v8bf16",
}
"""By instruction and lanes: products of bfloat16, two and two added to a float32."""


def emit_dot(b: ir.IRBuilder, left: Any, right: Any, total: Any) -> Any:
    """`total` plus the products of left's bytes, without sign, by right's, with sign."""
    lanes = left.type.count if isinstance(left.type, ir.VectorType) else 1
    match b.module.dots, lanes:
        case "vpdpbusd", 16:
            name = "llvm.x86.avx512.vpdpbusd.512"
            function = declare(b.module, name, left.type, [left.type] * 3)
            return b.call(function, [total, left, right])
        case "usdot", 4:
            return _neon_dot(b, "usdot", left, right, total)
        case "sdot", 4:
            return _signed_dot(b, left, right, total)
    for part in range(2):
        total = b.add(total, _pairs(b, _low(b, left, part), _signed(b, right, part), lanes))
    return total


def emit_pairs(b: ir.IRBuilder, left: Any, right: Any, total: Any) -> Any:
    """`total` plus the products of both bfloat16 of left and right, in float32."""
    lanes = left.type.count if isinstance(left.type, ir.VectorType) else 1
    name = _PAIR_SUMS.get((b.module.pairs, lanes))
    if name is not None:
        halves = ir.VectorType(ir.BrainType(), 2 * lanes)
        function = declare(b.module, name, total.type, [total.type, halves, halves])
        return b.call(function, [total, b.bitcast(left, halves), b.bitcast(right, halves)])
    for part in range(2):
        factors = [_float(b, word, part, total.type) for word in (left, right)]
        total = intrinsic(b, "llvm.fmuladd", *factors, total)
    return total


def _neon_dot(b: ir.IRBuilder, name: str, left: Any, right: Any, total: Any) -> Any:
    """`total` plus products of bytes, by an instruction of aarch64."""
    parts = ir.VectorType(ir.IntType(8), 4 * left.type.count)
    types = [total.type, parts, parts]
    function = declare(b.module, f"llvm.aarch64.neon.{name}.v4i32.v16i8", total.type, types)
    return b.compute(function, [total, b.bitcast(left, parts), b.bitcast(right, parts)])


def _signed_dot(b: ir.IRBuilder, left: Any, right: Any, total: Any) -> Any:
    """The same where both factors of an instruction have signs.

    Left less 128 has one; what that takes away is 128 times the sum of right's bytes, which does
    not depend on left, so that a tile computes it once for all its rows.
    """
    zero, ones = splat(right.type, 0), splat(right.type, 0x01010101)
    taken = b.shl(_neon_dot(b, "sdot", right, ones, zero), splat(right.type, 7))
    less = b.xor(left, splat(left.type, 0x80808080))
    return _neon_dot(b, "sdot", right, less, b.add(total, taken))


def _float(b: ir.IRBuilder, word: Any, part: int, type_: Any) -> Any:
    """The float32 whose upper half is one half of a word."""
    upper = splat(word.type, 0xFFFF0000)
    bits = b.and_(word, upper) if part else b.shl(word, splat(word.type, 16))
    return b.bitcast(bits, type_)


def _low(b: ir.IRBuilder, word: Any, part: int) -> Any:
    """Every other byte of a word, from `part` on, as int16 without sign."""
    halves = b.lshr(word, splat(word.type, 8)) if part else word
    return b.and_(halves, splat(word.type, 0x00FF00FF))


def _signed(b: ir.IRBuilder, word: Any, part: int) -> Any:
    """Every other byte of a word, from `part` on, as int16 with its sign."""
    count = 2 * word.type.count if isinstance(word.type, ir.VectorType) else 2
    halves = b.bitcast(word, ir.VectorType(ir.IntType(16), count))
    eight = splat(halves.type, 8)
    halves = halves if part else b.shl(halves, eight)
    return b.bitcast(b.ashr(halves, eight), word.type)


def _pairs(b: ir.IRBuilder, left: Any, right: Any, lanes: int) -> Any:
    """Products of both int16 of two words, added."""
    halves = ir.VectorType(ir.IntType(16), 2 * lanes)
    name = _PAIRS.get((b.module.machine, lanes))
    if name is not None:
        function = declare(b.module, name, left.type, [halves, halves])
        return b.call(function, [b.bitcast(word, halves) for word in (left, right)])
    sixteen = splat(left.type, 16)
    narrow = like(left.type, ir.IntType(16))

    def low(word: Any) -> Any:
        return b.sext(b.trunc(word, narrow), word.type)

    def high(word: Any) -> Any:
        return b.ashr(word, sixteen)

    return b.add(b.mul(low(left), low(right)), b.mul(high(left), high(right)))
