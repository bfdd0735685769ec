"""What the compiler knows of a processor: one record for each kind."""

from dataclasses import replace

from sardonyx.errors import UnsupportedError
from sardonyx.record import record


@record
class Target:
    """A processor: its vector lanes of 32 bits, its registers, its caches in bytes.

    `cpu` and `features` are LLVM's words; an empty `cpu` is the one the program runs on. A register
    tile of `rows` x `vectors` is what the contraction kernels keep in registers.
    """

    name: str
    lanes: int
    registers: int
    rows: int
    vectors: int
    needs: tuple[str, ...]
    cpu: str
    features: str
    machine: str = "x86_64"
    """Whose instructions; empty: those of the machine the program runs on."""
    dots: str = ""
    """The instruction that adds four products of bytes to each lane, if there is one."""
    pairs: str = ""
    """The instruction that adds two products of bfloat16 to each lane, if there is one."""
    narrow: bool = False
    """Whether products may round their factors to bfloat16: what is asked for, not what it has."""
    checked: str = ""
    """What is checked while a program runs, one of CHECKS: asked for, as `narrow` is."""
    first_cache: int = 32 << 10
    second_cache: int = 512 << 10


GENERIC = Target("generic", 4, 16, 4, 2, (), "generic", "", machine="")
AVX2 = Target("avx2", 8, 16, 6, 2, ("avx2", "fma"), "haswell", "")
AVX512 = Target(
    "avx512", 16, 32, 12, 2, ("avx512f", "avx512vl", "avx512dq", "avx512bw"), "", "",
    second_cache=1 << 20,
)  # fmt: skip
AVX512_VNNI = replace(
    AVX512, name="avx512vnni", needs=(*AVX512.needs, "avx512vnni"), dots="vpdpbusd"
)
AVX512_BF16 = replace(
    AVX512_VNNI, name="avx512bf16", needs=(*AVX512_VNNI.needs, "avx512bf16"), pairs="vdpbf16ps"
)
NEON = Target(
    "neon", 4, 32, 8, 2, ("neon",), "generic", "+neon", machine="aarch64", second_cache=256 << 10
)
NEON_DOT = replace(
    NEON, name="neondot", needs=(*NEON.needs, "dotprod"), features="+neon,+dotprod", dots="sdot"
)
NEON_I8MM = replace(
    NEON_DOT, name="neoni8mm", needs=(*NEON_DOT.needs, "i8mm"), features="+neon,+dotprod,+i8mm",
    dots="usdot",
)  # fmt: skip
NEON_BF16 = replace(
    NEON_I8MM, name="neonbf16", needs=(*NEON_I8MM.needs, "bf16"),
    features="+neon,+dotprod,+i8mm,+bf16", pairs="bfdot",
)  # fmt: skip
WASM = Target(
    "wasm", 4, 16, 4, 2, ("simd128",), "generic",
    "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext,+mutable-globals", machine="wasm32",
    second_cache=256 << 10,
)  # fmt: skip
"""What browsers run, which no process of ours does: code is made for it, never chosen here."""
TARGETS = (
    AVX512_BF16, AVX512_VNNI, AVX512, AVX2, NEON_BF16, NEON_I8MM, NEON_DOT, NEON, GENERIC,
)  # fmt: skip
"""What a process may run on, best first."""


def choose_target(features: frozenset[str], name: str | None = None) -> Target:
    """The best target a processor with these features runs, or the one called `name`.

    >>> choose_target(frozenset({"avx2", "fma"})).name
    'avx2'
    >>> choose_target(frozenset({"neon", "dotprod"})).name
    'neondot'
    """
    fitting = [target for target in TARGETS if features.issuperset(target.needs)]
    if name is None:
        return fitting[0]
    for target in fitting:
        if target.name == name:
            return target
    known = ", ".join(target.name for target in fitting)
    raise UnsupportedError(
        f"this processor does not run the target '{name}'", hint=f"it runs: {known}"
    )


PRECISIONS = ("highest", "high", "medium")
"""What products of float32 may lose, the least first."""


MEMORY, ACCESSES = "memory", "accesses"
CHECKS = ("", MEMORY, ACCESSES)
"""Nothing; that all memory is written before it is read, each block in memory of its own; that and
that every access of every kernel lies inside its memory."""


def checking(target: Target, checked: str) -> Target:
    """A target whose programs check themselves.

    >>> checking(GENERIC, ACCESSES).checked
    'accesses'
    """
    if checked not in CHECKS:
        known = ", ".join(filter(None, CHECKS))
        raise UnsupportedError(f"there is no check of '{checked}'", hint=f"choose one of: {known}")
    return replace(target, checked=checked)


def allowing(target: Target, precision: str) -> Target:
    """A target whose products may be as inexact as a precision allows.

    >>> allowing(GENERIC, "medium").narrow, allowing(GENERIC, "high").narrow
    (True, False)
    """
    if precision not in PRECISIONS:
        raise UnsupportedError(
            f"there is no precision '{precision}'", hint=f"choose one of: {', '.join(PRECISIONS)}"
        )
    return replace(target, narrow=precision == "medium")
