"""Pictures and texts of one small model at the stages it goes through, for the pages about them."""

from collections.abc import Callable, Mapping
from functools import cache
from html import escape

import numpy as np

import sardonyx as sx
from sardonyx.compiler.plan import Lifetime, arrange
from sardonyx.compiler.program import compile_model
from sardonyx.viewer.boxes import OPERATION
from sardonyx.viewer.describe import describe_model

PALETTE = ("#3d6fb4", "#2f8393", "#b35f4d", "#4e8a5b", "#8b5fa8", "#8c7566", "#8f7a3b", "#66758a")
PORT = "#3f4853"
FONT = 'font-family="system-ui,sans-serif"'


@cache
def example() -> sx.Model:
    """A layer as exporters write it: a product by heads, whose shape the model computes itself."""
    chance = np.random.default_rng(0)
    graph = sx.Graph("layer")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("batch", "words", 32)))
    op = sx.Builder(graph, opset=17)
    weight = chance.standard_normal((32, 32)).astype(np.float32)
    inner = op.Relu(op.Add(op.MatMul(x, weight), np.ones(32, np.float32)))
    sizes = op.Shape(inner)
    first, second = (op.Unsqueeze(op.Gather(sizes, at), [0]) for at in (0, 1))
    heads = op.Reshape(inner, op.Concat(first, second, [4], [8], axis=0))
    scores = op.Softmax(op.Mul(heads, 0.5), axis=-1)
    scores.name, scores.type = "y", sx.TensorType(sx.DataType.FLOAT, ("batch", "words", 4, 8))
    graph.outputs.append(scores)
    return sx.Model(graph, sx.Opsets({"": 17}), 8)


def draw_graph(model: sx.Model, kernels: Mapping[str, int] | None = None) -> str:
    """A model's main graph as SVG; `kernels` gives the number of the kernel that makes a value."""
    graph = describe_model(model)["graphs"][0]
    width, height = graph["width"] + 8, graph["height"] + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" {FONT}>'
    ]
    for edge in graph["edges"]:
        x, y, *way, end_x, end_y = edge[4:]
        path = f"M{x:g} {y:g}"
        for at in range(0, len(way), 3):
            path += f" L{way[at]:g} {way[at + 1]:g} L{way[at]:g} {way[at + 2]:g}"
        parts.append(f'<path d="{path} L{end_x:g} {end_y:g}" fill="none" stroke="#8a94a0"/>')
    for node in graph["nodes"]:
        made = [graph["values"][number][0] for _, number in node.get("outputs", ())]
        if node["kind"] != OPERATION:
            colour = PORT
        elif kernels is None:
            colour = PALETTE[0]
        else:
            number = next((kernels[name] for name in made if name in kernels), None)
            colour = "#9aa3ad" if number is None else PALETTE[number % len(PALETTE)]
        left, top, across, down = node["box"]
        parts.append(
            f'<rect x="{left:g}" y="{top:g}" width="{across:g}" height="{down:g}" rx="5" '
            f'fill="{colour}"/>'
            f'<text x="{left + across / 2:g}" y="{top + 16:g}" font-size="12" fill="#fff" '
            f'text-anchor="middle">{escape(node["title"])}</text>'
        )
        for line, row in enumerate(node.get("rows", ())):
            parts.append(
                f'<text x="{left + across / 2:g}" y="{top + 33 + 15 * line:g}" font-size="10" '
                f'fill="#fff" text-anchor="middle">{escape(" ".join(row).strip())}</text>'
            )
    return "\n".join([*parts, "</svg>"])


def exported() -> str:
    """The example as it comes from a file."""
    return draw_graph(example())


def simplified() -> str:
    """The example after `simplify`."""
    return draw_graph(sx.simplify(example()))


def kernels() -> str:
    """The simplified example, with one colour for each kernel."""
    model = sx.simplify(example())
    assert model.graph is not None
    groups: dict[str, int] = {}
    made: dict[str, int] = {}
    kernels = {row.node: row.kernel for row in compile_model(model).explain()}
    for node in model.graph.nodes:
        kernel = kernels.get(node.where(), "")
        if kernel[-1:].isdigit():
            made[node.output.name] = groups.setdefault(kernel, len(groups))
    return draw_graph(model, made)


def memory() -> str:
    """Where inner values of the example lie in the arena, and from which node to which."""
    model = sx.infer_shapes(sx.simplify(example(), overwrite_input_shapes={"x": (1, 16, 32)}))
    assert model.graph is not None
    nodes = list(model.graph.nodes)
    spans = {
        value: Lifetime(at, max(nodes.index(user) for user in value.users))
        for at, node in enumerate(nodes)
        for value in node.outputs
        if value.users
    }
    lengths = [4 * int(np.prod(value.type.shape)) for value in spans]
    ends: dict[int, int] = {}
    offsets = [0] * len(lengths)
    for block, below in arrange(lengths, list(spans.values())):
        offsets[block] = max((ends[other] for other in below), default=0)
        ends[block] = offsets[block] + lengths[block]
    step, scale = 90, 220 / max(ends.values(), default=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {step * len(nodes) + 20} 280" '
        f'width="{step * len(nodes) + 20}" height="280" {FONT}>'
    ]
    for at, node in enumerate(nodes):
        parts.append(
            f'<text x="{10 + at * step + step / 2}" y="270" font-size="12" fill="#66758a" '
            f'text-anchor="middle">{escape(node.op_type)}</text>'
        )
    for number, (span, offset, length) in enumerate(
        zip(spans.values(), offsets, lengths, strict=True)
    ):
        left, across = 10 + span.first * step, (span.last - span.first + 1) * step
        top, down = 10 + offset * scale, max(length * scale - 2, 4)
        parts.append(
            f'<rect x="{left}" y="{top:.1f}" width="{across}" height="{down:.1f}" rx="4" '
            f'fill="{PALETTE[number % len(PALETTE)]}"/><text x="{left + 8}" y="{top + 18:.1f}" '
            f'font-size="12" fill="#fff">{length:,} bytes</text>'
        )
    return "\n".join([*parts, "</svg>"])


def fused() -> str:
    """The kernels of the simplified example, with what each computes."""
    return sx.text_after(sx.simplify(example()), "fuse")


def loops() -> str:
    """The first kernel of the simplified example in the kernel language."""
    return sx.text_after(sx.simplify(example()), "loops").split("\n\n")[0]


def assembly() -> str:
    """The part of the machine code in which the first kernel multiplies and adds."""
    lines = sx.text_after(sx.simplify(example()), "assembly").splitlines()
    products = [at for at, line in enumerate(lines) if "fmadd" in line or "mulps" in line]
    start = max(products[0] - 4, 0) if products else 0
    return "\n".join(line.expandtabs(4) for line in lines[start : start + 30])


PICTURES: dict[str, Callable[[], str]] = {
    "pictures/exported.svg": exported,
    "pictures/simplified.svg": simplified,
    "pictures/kernels.svg": kernels,
    "pictures/memory.svg": memory,
}
"""Files that pages show, and what draws them."""
TEXTS: dict[str, Callable[[], str]] = {"fused": fused, "loops": loops, "assembly": assembly}
"""What stands for `{{ name }}` alone in a line of a page."""
