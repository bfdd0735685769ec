"""A case for every lowering of the first operators; other families have files of their own."""

import numpy as np

from tests.compiler.case import FLOAT, Case, flags, ints, normal, positive
from tests.compiler.cases_attention import CASES as ATTENTION
from tests.compiler.cases_bit_products import CASES as BIT_PRODUCTS
from tests.compiler.cases_choosing import CASES as CHOOSING
from tests.compiler.cases_elements import CASES as ELEMENTS
from tests.compiler.cases_features import CASES as FEATURES
from tests.compiler.cases_indexing import CASES as INDEXING
from tests.compiler.cases_losses import CASES as LOSSES
from tests.compiler.cases_ordering import CASES as ORDERING
from tests.compiler.cases_products import CASES as PRODUCTS
from tests.compiler.cases_recurrent import CASES as RECURRENT
from tests.compiler.cases_regions import CASES as REGIONS
from tests.compiler.cases_signal import CASES as SIGNAL
from tests.compiler.cases_sliding import CASES as SLIDING
from tests.compiler.cases_structure import CASES as STRUCTURE

X = normal(3, 5, 20)
CASES: list[Case] = [
    *(
        Case(name, (X,))
        for name in (
            "Neg",
            "Abs",
            "Exp",
            "Tanh",
            "Erf",
            "Sigmoid",
            "Floor",
            "Ceil",
            "Round",
            "Relu",
            "Gelu",
            "Softplus",
            "Softsign",
            "LeakyRelu",
            "Elu",
            "Selu",
            "Celu",
            "HardSigmoid",
            "HardSwish",
            "Swish",
            "Mish",
            "ThresholdedRelu",
            "IsNaN",
            "Identity",
            "Dropout",
        )
    ),
    *(Case(name, (positive(4, 33),)) for name in ("Sqrt", "Log", "Reciprocal")),
    Case("Gelu", (X,), {"approximate": "tanh"}, label="tanh"),
    Case("Neg", (np.arange(-5, 30),), label="int64"),
    Case("Abs", (np.arange(-5, 30, dtype=np.int32),), label="int32"),
    Case("Sqrt", (positive(3, 7).astype(np.float64),), label="double"),
    *(
        Case(name, (X, normal(5, 1)))
        for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")
    ),
    *(
        Case(name, (np.arange(40).reshape(4, 10), np.arange(-3, 7)), label="int64")
        for name in ("Add", "Sub", "Mul")
    ),
    Case("Div", (np.arange(-20, 20), np.array([3])), label="int64"),
    Case("Add", (normal(4, 1, 20), normal(5, 1)), label="both"),
    Case("Add", (X, np.array(1.5, FLOAT)), fixed=(1,), label="scalar"),
    Case("Mul", (X.astype(np.float64), normal(20).astype(np.float64)), label="double"),
    *(
        Case(name, (X, normal(5, 20)))
        for name in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
    ),
    Case("Equal", (np.arange(20) % 3, np.arange(20) % 2), label="int64"),
    *(Case(name, (flags(4, 9), flags(9))) for name in ("And", "Or", "Xor")),
    Case("Not", (flags(4, 9),)),
    Case("Where", (flags(5, 20), X, normal(1))),
    Case("Cast", (X * 9,), {"to": 7}, label="int64"),
    Case("Cast", (np.arange(37, dtype=np.int32),), {"to": 1}, label="float"),
    Case("Cast", (flags(37),), {"to": 1}, label="bool"),
    Case("Cast", (X,), {"to": 9}, label="tobool"),
    Case("Cast", (X,), {"to": 11}, label="todouble"),
    Case("Clip", (X, np.array(-0.5, FLOAT), np.array(0.5, FLOAT)), fixed=(1, 2)),
    Case("Clip", (X, None, np.array(0.5, FLOAT)), label="max"),
    *(
        Case("Pow", (positive(6, 7), np.array(value, FLOAT)), fixed=(1,), label=str(value))
        for value in (0.5, 1.0, 2.0, 3.0, -0.5, -1.0)
    ),
    Case("PRelu", (X, normal(5, 1))),
    Case("Reshape", (X, ints(15, 20)), fixed=(1,), symbolic=False),
    Case("Reshape", (X, ints(0, -1)), fixed=(1,), label="inferred"),
    Case("Flatten", (X,), {"axis": 2}),
    Case("Squeeze", (normal(3, 1, 4, 1), ints(1, 3)), fixed=(1,)),
    Case("Squeeze", (normal(3, 1, 4),), label="all", symbolic=False),
    Case("Unsqueeze", (X, ints(0, -1)), fixed=(1,)),
    Case("Transpose", (X,), {"perm": [2, 0, 1]}),
    Case("Transpose", (X,), label="reversed"),
    Case("Transpose", (normal(2, 35, 50),), {"perm": [0, 2, 1]}, label="turned"),
    Case("Transpose", (normal(3, 16, 20, 17),), {"perm": [0, 3, 1, 2]}, label="four"),
    Case("Transpose", (np.arange(33 * 18).reshape(33, 18),), label="int64"),
    Case("Expand", (normal(3, 1), ints(2, 1, 6)), fixed=(1,)),
    Case(
        "Slice",
        (X, ints(1, 2), ints(3, 18), ints(0, 2), ints(1, 3)),
        fixed=(1, 2, 3, 4),
        symbolic=False,
    ),
    Case(
        "Slice",
        (X, ints(-2), ints(-100), ints(2), ints(-2)),
        fixed=(1, 2, 3, 4),
        label="back",
        symbolic=False,
    ),
    Case("Slice", (X, ints(0), ints(3), ints(2)), fixed=(1, 2, 3), label="front"),
    Case("Split", (X, ints(4, 6, 10)), {"axis": 2}, fixed=(1,), outputs=3),
    Case(
        "Split",
        (normal(6, 4),),
        {"axis": 0, "num_outputs": 2},
        outputs=2,
        label="equal",
        symbolic=False,
    ),
    Case("Concat", (X, normal(3, 2, 20), normal(3, 1, 20)), {"axis": 1}),
    Case("Gather", (X, np.array([[4, -1], [0, 2]])), {"axis": 1}),
    Case("Gather", (normal(30, 24), np.array([5, 29, 0], np.int32)), label="rows"),
    Case("Gather", (X, np.array([1, 19])), {"axis": 2}, label="last"),
    Case("Gather", (X, np.array(-2)), {"axis": 1}, fixed=(1,), label="one", symbolic=False),
    *(
        Case(name, (X, ints(2)), fixed=(1,))
        for name in (
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceSumSquare",
            "ReduceL1",
            "ReduceL2",
        )
    ),
    Case("ReduceSum", (X,), label="all"),
    Case("ReduceMean", (X, ints(0)), {"keepdims": 0}, fixed=(1,), label="first"),
    Case("ReduceMax", (X, ints(1, 2)), {"keepdims": 0}, fixed=(1,), label="two"),
    Case("ReduceSum", (np.arange(60).reshape(3, 20), ints(1)), fixed=(1,), label="int64"),
    Case("Softmax", (normal(6, 10) * 5,)),
    Case("Softmax", (normal(2, 300),), label="long"),
    Case("Softmax", (X,), {"axis": 1}, label="middle"),
    Case("LogSoftmax", (normal(6, 33),)),
    Case("LayerNormalization", (normal(4, 70), normal(70), normal(70))),
    Case("LayerNormalization", (X, normal(5, 20)), {"axis": 1}, label="two"),
    Case("RMSNormalization", (normal(4, 70), normal(70))),
    Case("ReduceLogSum", (positive(3, 40), ints(1)), fixed=(1,)),
    Case("GlobalMaxPool", (normal(2, 5, 6, 7),)),
    Case("InstanceNormalization", (normal(2, 5, 6, 7), normal(5), normal(5)), symbolic=False),
    Case(
        "AveragePool",
        (normal(2, 20, 9, 11),),
        {"kernel_shape": [3, 2], "strides": [2, 1]},
        symbolic=False,
    ),
    Case(
        "AveragePool",
        (normal(1, 3, 8, 8),),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        label="padded",
        symbolic=False,
    ),
    Case("GlobalAveragePool", (normal(2, 5, 6, 7),)),
    Case(
        "BatchNormalization",
        (normal(2, 5, 6, 7), normal(5), normal(5), normal(5), positive(5)),
        fixed=(1, 2, 3, 4),
        symbolic=False,
    ),
    *(
        Case("MatMul", shapes, fixed=fixed, label=label)
        for shapes, fixed, label in (
            ((normal(7, 9), normal(9, 40)), (), "plain"),
            ((normal(7, 9), normal(9, 40)), (1,), "constant"),
            ((normal(2, 3, 30, 9), normal(9, 50)), (1,), "rows"),
            ((normal(2, 3, 17, 9), normal(3, 9, 18)), (), "batches"),
            ((normal(2, 1, 17, 9), normal(3, 9, 18)), (1,), "constants"),
            ((normal(9), normal(9, 18)), (), "vector"),
            ((normal(7, 9), normal(9)), (), "column"),
            ((normal(9), normal(9)), (), "dot"),
            ((normal(4, 1, 9), normal(9, 33)), (1,), "one row"),
            ((normal(2, 1, 9), normal(2, 9, 33)), (), "one row each"),
            ((normal(100, 300), normal(300, 100)), (1,), "large"),
        )
    ),
    Case("Gemm", (normal(7, 9), normal(9, 40), normal(40))),
    Case(
        "Gemm",
        (normal(9, 7), normal(40, 9), normal(7, 1)),
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
        label="turned",
    ),
    Case("Gemm", (normal(1, 64), normal(64, 10)), fixed=(1,), label="one"),
    Case(
        "Conv",
        (normal(2, 8, 9, 11), normal(20, 8, 1, 1), normal(20)),
        fixed=(1, 2),
        label="1x1",
        symbolic=False,
    ),
    Case(
        "Conv",
        (normal(2, 8, 9, 11), normal(20, 8, 3, 3)),
        {"pads": [1, 1, 1, 1]},
        fixed=(1,),
        label="3x3",
        symbolic=False,
    ),
    Case(
        "Conv",
        (normal(1, 3, 17, 33), normal(16, 3, 7, 7)),
        {"pads": [3, 3, 3, 3], "strides": [2, 2]},
        fixed=(1,),
        label="7x7",
        symbolic=False,
    ),
    Case(
        "Conv",
        (normal(1, 6, 10, 20), normal(12, 3, 3, 3), normal(12)),
        {"group": 2, "strides": [1, 2], "dilations": [2, 1], "pads": [0, 1, 2, 0]},
        fixed=(1, 2),
        label="grouped",
        symbolic=False,
    ),
    Case(
        "Conv",
        (normal(1, 20, 8, 9), normal(20, 1, 3, 3)),
        {"group": 20, "auto_pad": "SAME_UPPER"},
        fixed=(1,),
        label="depthwise",
        symbolic=False,
    ),
    Case(
        "Conv",
        (normal(2, 8, 14, 30), normal(40, 8, 1, 1)),
        {"strides": [2, 2]},
        fixed=(1,),
        label="strided",
        symbolic=False,
    ),
    Case(
        "MaxPool",
        (normal(2, 20, 9, 11),),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        symbolic=False,
    ),
    Case(
        "MaxPool",
        (normal(1, 3, 9, 11),),
        {"kernel_shape": [2, 3], "dilations": [2, 1]},
        label="dilated",
        symbolic=False,
    ),
]

ALL_CASES = [
    *CASES, *ATTENTION, *BIT_PRODUCTS, *CHOOSING, *ELEMENTS, *FEATURES, *INDEXING, *LOSSES,
    *ORDERING, *RECURRENT, *REGIONS, *PRODUCTS, *SIGNAL, *SLIDING, *STRUCTURE,
]  # fmt: skip
"""The cases of all families."""
