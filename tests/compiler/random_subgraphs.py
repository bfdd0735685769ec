"""Random models of nested subgraphs that capture what lies around them, for the compiler.

All numbers are integers of a few digits, so that every result is exact. Some values are called by
plain numbers, as programs of subgraphs call theirs.
"""

from collections.abc import Callable

import numpy as np

import sardonyx as sx
from tests.compiler.random_maker import Case

VECTOR, NUMBER, TRUTH, LIST, MAYBE = "vector", "number", "truth", "list", "maybe"
TYPES = {
    VECTOR: "int64[N]", NUMBER: "int64", TRUTH: "bool", LIST: "seq(int64[N])",
    MAYBE: "optional(int64[N])",
}  # fmt: skip
OPEN = {VECTOR: "int64[]", NUMBER: "int64", TRUTH: "bool", LIST: "seq(int64[])",
        MAYBE: "optional(int64[])"}  # fmt: skip
DEEPEST = 3

Scope = dict[str, list[str]]
"""Names of the values of each kind that can be read."""


class Writer:
    """Writes one model as text."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.count = 0
        self.size = self.integer(1, 5)

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def choose(self, *options: str) -> str:
        return options[int(self.random.integers(len(options)))]

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, scope: Scope, kind: str) -> str:
        """A value of a kind, rather a late one."""
        found = scope[kind][-4:] if self.random.random() < 0.6 else scope[kind]
        return self.choose(*found)

    def let(self, scope: Scope, kind: str, text: str) -> str:
        """A line that makes a value of a kind."""
        name = self.name()
        scope[kind].append(name)
        return f"{name} = {text}"

    def type(self, kind: str) -> str:
        return OPEN[kind] if self.random.random() < 0.2 else TYPES[kind]

    def small(self, scope: Scope, kind: str, text: str) -> list[str]:
        """A value that stays below 1000."""
        raw, limit = self.name(), self.name()
        constant = f"{limit} = Constant<value_int = {self.integer(11, 997)}>()"
        return [f"{raw} = {text}", constant, self.let(scope, kind, f"Mod({raw}, {limit})")]

    def block(self, scope: Scope, depth: int, length: int) -> list[str]:
        """Lines that make more values out of those in scope."""
        steps: list[Callable[[Scope, int], list[str]]] = [
            self.constant, self.arithmetic, self.arithmetic, self.reduced, self.compared,
            self.sliced, self.listed, self.optional, self.chosen,
        ]  # fmt: skip
        if depth < DEEPEST:
            steps += [self.branches, self.branches, self.loop, self.loop, self.scan]
        lines: list[str] = []
        for _ in range(length):
            lines += steps[self.integer(0, len(steps) - 1)](scope, depth)
        return lines

    def constant(self, scope: Scope, depth: int) -> list[str]:
        if self.integer(0, 1):
            return [self.let(scope, NUMBER, f"Constant<value_int = {self.integer(-9, 9)}>()")]
        numbers = ", ".join(str(self.integer(-9, 9)) for _ in range(self.size))
        return [self.let(scope, VECTOR, f"Constant<value_ints = [{numbers}]>()")]

    def arithmetic(self, scope: Scope, depth: int) -> list[str]:
        kind, operator = self.choose(VECTOR, NUMBER), self.choose("Add", "Sub", "Mul", "Max")
        left, right = self.pick(scope, kind), self.pick(scope, self.choose(kind, NUMBER))
        return self.small(scope, kind, f"{operator}({left}, {right})")

    def reduced(self, scope: Scope, depth: int) -> list[str]:
        operator = self.choose("ReduceSum", "ReduceMax")
        text = f"{operator}<keepdims = 0>({self.pick(scope, VECTOR)})"
        return self.small(scope, NUMBER, text)

    def compared(self, scope: Scope, depth: int) -> list[str]:
        if self.integer(0, 3) == 0:
            return [self.let(scope, TRUTH, f"Not({self.pick(scope, TRUTH)})")]
        pair = f"{self.pick(scope, NUMBER)}, {self.pick(scope, NUMBER)}"
        return [self.let(scope, TRUTH, f"{self.choose('Less', 'Equal', 'Greater')}({pair})")]

    def sliced(self, scope: Scope, depth: int) -> list[str]:
        """The sum of what lies behind a place that a number tells."""
        axis, place, end, part = (self.name() for _ in range(4))
        return [
            f"{axis} = Constant<value_ints = [0]>()", f"{end} = Constant<value_ints = [99]>()",
            f"{place} = Unsqueeze({self.pick(scope, NUMBER)}, {axis})",
            f"{part} = Slice({self.pick(scope, VECTOR)}, {place}, {end})",
            *self.small(scope, NUMBER, f"ReduceSum<keepdims = 0>({part})"),
        ]  # fmt: skip

    def listed(self, scope: Scope, depth: int) -> list[str]:
        """Lists are never empty."""
        item = self.pick(scope, VECTOR)
        match self.integer(0, 4):
            case 0:
                text = f"SequenceConstruct({item}, {self.pick(scope, VECTOR)})"
                return [self.let(scope, LIST, text)]
            case 1 | 2:
                text = f"SequenceInsert({self.pick(scope, LIST)}, {item})"
                return [self.let(scope, LIST, text)]
            case 3:
                return [self.let(scope, NUMBER, f"SequenceLength({self.pick(scope, LIST)})")]
        last = self.name()
        text = f"SequenceAt({self.pick(scope, LIST)}, {last})"
        return [f"{last} = Constant<value_int = -1>()", self.let(scope, VECTOR, text)]

    def optional(self, scope: Scope, depth: int) -> list[str]:
        match self.integer(0, 2):
            case 0:
                return [self.let(scope, MAYBE, f"Optional({self.pick(scope, VECTOR)})")]
            case 1:
                text = f"OptionalHasElement({self.pick(scope, MAYBE)})"
                return [self.let(scope, TRUTH, text)]
        return [self.let(scope, VECTOR, f"OptionalGetElement({self.pick(scope, MAYBE)})")]

    def chosen(self, scope: Scope, depth: int) -> list[str]:
        pair = f"{self.pick(scope, VECTOR)}, {self.pick(scope, VECTOR)}"
        return [self.let(scope, VECTOR, f"Where({self.pick(scope, TRUTH)}, {pair})")]

    def graph(
        self, scope: Scope, depth: int, inputs: list[tuple[str, str]], kinds: list[str]
    ) -> str:
        """A subgraph with typed inputs that gives values of some kinds."""
        inner = {kind: list(names) for kind, names in scope.items()}
        for name, kind in inputs:
            inner[kind].append(name)
        lines = self.block(inner, depth + 1, self.integer(0, 4))
        outputs = []
        for kind in kinds:
            name = self.name()
            lines.append(f"{name} = Identity({self.pick(inner, kind)})")
            outputs.append(f"{self.type(kind)} {name}")
        formals = ", ".join(f"{self.type(kind)} {name}" for name, kind in inputs)
        return f"{self.name()} ({formals}) => ({', '.join(outputs)}) {{ {' '.join(lines)} }}"

    def kinds(self, *options: str) -> list[str]:
        return [self.choose(*options) for _ in range(self.integer(1, 3))]

    def made(self, scope: Scope, kinds: list[str]) -> str:
        names = [self.name() for _ in kinds]
        for name, kind in zip(names, kinds, strict=True):
            scope[kind].append(name)
        return ", ".join(names)

    def branches(self, scope: Scope, depth: int) -> list[str]:
        kinds = self.kinds(*TYPES)
        condition = self.pick(scope, TRUTH)
        parts = [self.graph(scope, depth, [], kinds) for _ in range(2)]
        body = f"<then_branch = {parts[0]}, else_branch = {parts[1]}>"
        return [f"{self.made(scope, kinds)} = If({condition}){body}"]

    def loop(self, scope: Scope, depth: int) -> list[str]:
        """States of any kind; a number may be gathered over the rounds, and is summed."""
        kinds, gathered = self.kinds(*TYPES), self.integer(0, 1)
        states = [self.pick(scope, kind) for kind in kinds]
        inputs = [(self.name(), NUMBER), (self.name(), TRUTH)]
        inputs += [(self.name(), kind) for kind in kinds]
        body = self.graph(scope, depth, inputs, [TRUTH, *kinds, *[NUMBER] * gathered])
        count, going, stacked = self.name(), self.name(), self.name()
        rounds = f"{count} = Constant<value_int = {self.integer(0, 3)}>()"
        start = f"{going} = Constant<value = bool {{1}}>()"
        call = f"Loop({count}, {going}, {', '.join(states)})<body = {body}>"
        names = self.made(scope, kinds) + (f", {stacked}" if gathered else "")
        total = f"ReduceSum<keepdims = 0>({stacked})"
        rest = self.small(scope, NUMBER, total) if gathered else []
        return [rounds, start, f"{names} = {call}", *rest]

    def scan(self, scope: Scope, depth: int) -> list[str]:
        kinds = self.kinds(VECTOR, NUMBER)
        states = [self.pick(scope, kind) for kind in kinds]
        inputs = [*((self.name(), kind) for kind in kinds), (self.name(), NUMBER)]
        body = self.graph(scope, depth, inputs, [*kinds, NUMBER])
        given = ", ".join([*states, self.pick(scope, VECTOR)])
        names = self.made(scope, [*kinds, VECTOR])
        return [f"{names} = Scan({given})<num_scan_inputs = 1, body = {body}>"]

    def case(self) -> Case:
        """The model, and what to feed."""
        scope: Scope = {kind: [] for kind in TYPES}
        scope |= {VECTOR: ["x", "y"], NUMBER: ["n"], TRUTH: ["t"]}
        lines = [
            self.let(scope, LIST, "SequenceConstruct(x, y)"),
            self.let(scope, MAYBE, "Optional(y)"),
            *self.block(scope, 0, self.integer(3, 8)),
        ]
        outputs = []
        for kind in (VECTOR, NUMBER, TRUTH, LIST, MAYBE):
            name = self.name()
            lines.append(f"{name} = Identity({self.pick(scope, kind)})")
            outputs.append(f"{TYPES[kind]} {name}")
        text = (
            '<ir_version: 10, opset_import: ["": 21]>'
            f"g (int64[N] x, int64[N] y, int64 n, bool t) => ({', '.join(outputs)})"
            f" {{ {' '.join(lines)} }}"
        )
        model = sx.load_text(text)
        values = [value for graph in model.graphs() for value in graph.values()]
        named = [value for value in values if value.name.startswith("v")]
        for number, place in enumerate(self.random.permutation(len(named))[:12]):
            named[place].name = f"{number}"
        feeds = {
            "x": self.random.integers(-9, 10, self.size), "y": self.random.integers(-9, 10,
            self.size), "n": np.array(self.integer(-3, 5)), "t": np.array(bool(self.integer(0, 1))),
        }  # fmt: skip
        return Case(model, feeds)


def random_subgraphs(seed: int) -> Case:
    """A random model with nested subgraphs, the same for the same seed."""
    return Writer(seed).case()
