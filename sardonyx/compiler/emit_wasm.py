"""What kernels call that WebAssembly does not have: memory, and functions of float64.

A browser's `Math` has most of C's functions under their names and is imported as it is. It has no
`erf` and no `fmod`, and its `pow` knows less about 1, so these are made here.
"""

from collections.abc import Sequence

from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.targets import WASM
from sardonyx.compiler.wasm_object import WasmObject

MATH = {
    name: ("Math", name)
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log",
                 "sin", "sinh", "tan", "tanh")
} | {"math_pow": ("Math", "pow")}  # fmt: skip
"""Functions of one or two float64 that modules import, by the names that code has for them."""

_MEMORY = r"""
; Kernels run one after another and each takes memory once, so all of them get the same, which lies
; behind everything else.
@__heap_base = external global i8
declare i32 @llvm.wasm.memory.size.i32(i32)
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)
define ptr @malloc(i64 %size) {
 %begin = ptrtoint ptr @__heap_base to i64
 %end = add i64 %begin, %size
 %pages = call i32 @llvm.wasm.memory.size.i32(i32 0)
 %wide = zext i32 %pages to i64
 %there = shl i64 %wide, 16
 %lack = sub i64 %end, %there
 %enough = icmp sle i64 %lack, 0
 br i1 %enough, label %done, label %more
more:
 %above = add i64 %lack, 65535
 %wanted = lshr i64 %above, 16
 %most = icmp ugt i64 %wanted, 65536
 br i1 %most, label %none, label %grow
grow:
 %number = trunc i64 %wanted to i32
 %before = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %number)
 %failed = icmp eq i32 %before, -1
 br i1 %failed, label %none, label %done
none:
 ret ptr null
done:
 ret ptr @__heap_base
}
define void @free(ptr %block) {
 ret void
}
"""

_ERF = r"""
; With a = |x| below 2: 2 / sqrt(pi) * a * exp(-a*a) * sum((2*a*a)**n / (1 * 3 * ... * (2*n + 1))).
; From 2 on: 1 - exp(-a*a) / sqrt(pi) / (a + (1/2) / (a + (2/2) / (a + (3/2) / ...))).
; It is right up to a dozen units in the last place.
declare double @exp(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
define double @erf(double %x) {
entry:
 %a = call double @llvm.fabs.f64(double %x)
 %square = fmul double %a, %a
 %twice = fadd double %square, %square
 %minus = fneg double %square
 %power = call double @exp(double %minus)
 %far = fcmp oge double %a, 2.0
 br i1 %far, label %fraction, label %series
series:
 %term = phi double [1.0, %entry], [%after, %series]
 %sum = phi double [0.0, %entry], [%total, %series]
 %odd = phi double [1.0, %entry], [%following, %series]
 %total = fadd double %sum, %term
 %following = fadd double %odd, 2.0
 %grown = fmul double %term, %twice
 %after = fdiv double %grown, %following
 %least = fmul double %total, 1.0e-17
 %more = fcmp ogt double %after, %least
 br i1 %more, label %series, label %near
near:
 %scaled = fmul double %a, 0x3FF20DD750429B6D
 %weight = fmul double %scaled, %power
 %small = fmul double %weight, %total
 br label %end
fraction:
 %level = phi double [30.0, %entry], [%outer, %fraction]
 %inner = phi double [%a, %entry], [%value, %fraction]
 %part = fdiv double %level, %inner
 %value = fadd double %a, %part
 %outer = fsub double %level, 0.5
 %again = fcmp ogt double %outer, 0.0
 br i1 %again, label %fraction, label %rest
rest:
 %below = fmul double %value, 0x3FFC5BF891B4EF6A
 %missing = fdiv double %power, %below
 %large = fsub double 1.0, %missing
 br label %end
end:
 %size = phi double [%small, %near], [%large, %rest]
 %made = call double @llvm.copysign.f64(double %size, double %x)
 ret double %made
}
"""

_FMOD = r"""
; Every step is exact: y is doubled while it fits twice, then taken away and halved down to itself.
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
define double @fmod(double %x, double %y) {
entry:
 %a = call double @llvm.fabs.f64(double %x)
 %b = call double @llvm.fabs.f64(double %y)
 %finite = fcmp olt double %a, 0x7FF0000000000000
 %some = fcmp ogt double %b, 0.0
 %sane = and i1 %finite, %some
 br i1 %sane, label %compare, label %nothing
nothing:
 ret double 0x7FF8000000000000
compare:
 %small = fcmp olt double %a, %b
 br i1 %small, label %same, label %up
same:
 ret double %x
up:
 %t = phi double [%b, %compare], [%doubled, %twice]
 %rest = fsub double %a, %t
 %again = fcmp ole double %t, %rest
 br i1 %again, label %twice, label %down
twice:
 %doubled = fadd double %t, %t
 br label %up
down:
 %part = phi double [%t, %up], [%halved, %half]
 %left = phi double [%a, %up], [%kept, %half]
 %fits = fcmp ole double %part, %left
 %less = fsub double %left, %part
 %kept = select i1 %fits, double %less, double %left
 %last = fcmp oeq double %part, %b
 br i1 %last, label %end, label %half
half:
 %halved = fmul double %part, 0.5
 br label %down
end:
 %made = call double @llvm.copysign.f64(double %kept, double %x)
 ret double %made
}
"""

_POW = r"""
; 1 to any power, and 1 or -1 to an infinite one, is 1 in C.
declare double @math_pow(double, double)
declare double @llvm.fabs.f64(double)
define double @pow(double %x, double %y) {
 %made = call double @math_pow(double %x, double %y)
 %one = fcmp oeq double %x, 1.0
 %size = call double @llvm.fabs.f64(double %x)
 %unit = fcmp oeq double %size, 1.0
 %length = call double @llvm.fabs.f64(double %y)
 %endless = fcmp oeq double %length, 0x7FF0000000000000
 %always = and i1 %unit, %endless
 %known = or i1 %one, %always
 %result = select i1 %known, double 1.0, double %made
 ret double %result
}
"""

_OWN = {"malloc": _MEMORY, "free": _MEMORY, "erf": _ERF, "fmod": _FMOD, "pow": _POW}
"""By name, the module that has a function."""


def support_objects(objects: Sequence[bytes]) -> list[bytes]:
    """Objects with those functions that others call and that are made here."""
    called = {item.name for content in objects for item in WasmObject(content).outside}
    texts = dict.fromkeys(text for name, text in _OWN.items() if name in called)
    return [compile_module(text, WASM) for text in texts]
