"""Cases of recurrent layers: every option, rows around the tile's, units around a vector's."""

from typing import Any

import numpy as np

from tests.compiler.case import Case, normal

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
NAMES = ("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
         "HardSigmoid", "Elu", "Softsign", "Softplus")  # fmt: skip


def layer(
    op_type: str, label: str, *, steps: int = 4, batch: int = 3, hidden: int = 5,
    direction: str = "forward", bias: bool = True, lengths: list[int] | None = None,
    states: bool = False, peepholes: bool = False, fixed: tuple[int, ...] = (1, 2, 3),
    dtype: Any = np.float32, symbolic: bool = True, **attributes: Any,
) -> Case:  # fmt: skip
    """A layer with 7 inputs, its weights constants unless told otherwise."""
    directions, columns = 1 + (direction == "bidirectional"), GATES[op_type] * hidden
    first = attributes.get("layout", 0)
    state = (batch, directions, hidden) if first else (directions, batch, hidden)
    inputs: list[Any] = [
        normal(*((batch, steps) if first else (steps, batch)), 7),
        normal(directions, columns, 7) * 0.5,
        normal(directions, columns, hidden) * 0.5,
        normal(directions, 2 * columns) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        normal(*state) if states else None,
    ]
    if op_type == "LSTM":
        inputs += [normal(*state) if states else None]
        inputs += [normal(directions, 3 * hidden) if peepholes else None]
    given = tuple(
        array if array is None or array.dtype == np.int32 else array.astype(dtype)
        for array in inputs
    )
    options = {"direction": direction, "hidden_size": hidden} | attributes
    count = 3 if op_type == "LSTM" else 2
    constants = tuple(place for place in fixed if given[place] is not None)
    return Case(
        op_type, given, options, fixed=constants, outputs=count, label=label, symbolic=symbolic,
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip


CASES: list[Case] = [
    *(
        layer(op_type, f"{direction}-{layout}", direction=direction, layout=layout, states=True,
              lengths=[4, 1, 0])
        for op_type in GATES
        for direction in ("forward", "reverse", "bidirectional")
        for layout in (0, 1)
    ),
    *(
        layer(op_type, f"{batch}x{hidden}", batch=batch, hidden=hidden, bias=hidden != 16)
        for op_type in GATES
        for batch, hidden in ((1, 1), (2, 16), (4, 16), (9, 17), (17, 33))
    ),
    *(layer(op_type, "panels", hidden=33, direction="bidirectional") for op_type in GATES),
    *(layer("LSTM", f"fixed-{place}", hidden=33, fixed=(place,)) for place in (1, 3)),
    *(layer(op_type, "fed", fixed=(), clip=0.3, states=True, batch=6) for op_type in GATES),
    *(layer(op_type, "float16", dtype=np.float16, symbolic=False) for op_type in GATES),
    *(layer(op_type, "no-steps", steps=0, states=True) for op_type in GATES),
    layer("GRU", "linear", linear_before_reset=1, direction="bidirectional"),
    layer("GRU", "linear-clip", linear_before_reset=1, clip=0.2, bias=False),
    layer("LSTM", "peepholes", peepholes=True, direction="bidirectional", clip=0.7),
    layer("LSTM", "input-forget", peepholes=True, input_forget=1, fixed=(2, 7)),
    layer("LSTM", "two-ways", direction="bidirectional",
          activations=["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Softsign", "Relu"]),
    *(layer("RNN", name.lower(), activations=[name], symbolic=False) for name in NAMES),
    *(
        layer("RNN", f"{name.lower()}-given", activations=[name], activation_alpha=[0.4],
              activation_beta=[0.7], symbolic=False)
        for name in ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
    ),
]  # fmt: skip
