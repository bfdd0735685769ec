"""What onnx says of single versions of operators beyond their signatures."""

EXPERIMENTAL = frozenset({("", "Upsample", 1), ("ai.onnx.preview", "FlexAttention", 1)})

NONDETERMINISTIC = frozenset(
    {
        "AffineGrid",
        "Bernoulli",
        "Dropout",
        "If",
        "Loop",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Scan",
        "SequenceMap",
    }
)
"""Operators said to give other results for the same inputs, or to hold graphs that may."""

UNDECIDED = frozenset(
    {
        ("", "CausalConvWithState", 27),
        ("", "DepthToSpace", 28),
        ("", "LinearAttention", 27),
        ("", "SpaceToDepth", 28),
    }
)
"""Versions of which nothing is said about determinism."""


def _versions(text: str) -> frozenset[tuple[str, int]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return frozenset((line[0], int(number)) for line in lines for number in line[1:])


WITHOUT_INFERENCE = _versions("""
Abs 1
Add 1
BatchNormalization 1
Cast 1
Ceil 1
Clip 1
Compress 9
Concat 1
Div 1
Dropout 1
Elu 1
Exp 1
FeatureVectorizer 1
Floor 1
GRU 1
Gemm 1
GlobalLpPool 1
Gradient 1
GreaterOrEqual 12
GroupNormalization 18 21
HardSigmoid 1
Imputer 1
InstanceNormalization 1
LeakyRelu 1
LessOrEqual 12
LinearRegressor 1
Log 1
LpPool 1
Max 1
Mean 1
MeanVarianceNormalization 9 13
Min 1
Mul 1
Neg 1
Normalizer 1
PRelu 1
Pad 1
Reciprocal 1
Relu 1
Reshape 1
SVMRegressor 1
Scaler 1
Selu 1
Sigmoid 1
Split 1
Sqrt 1
Sub 1
Sum 1
Tanh 1
TreeEnsembleClassifier 5
TreeEnsembleRegressor 1 5
Upsample 1
""")
"""Versions onnx has no inference for; here every operator of the catalog has one."""

WITH_PROPAGATION = _versions("""
Add 14
Cast 13 19 21 23 24 25 28
Concat 13
Gather 1 11 13
Mul 14
Shape 1 13 15 19 21 23 24 25
Size 13 19 21 23 24 25
Slice 13
Squeeze 13 21 23 24 25
Sub 14
Unsqueeze 13 21 23 24 25
""")
"""Versions through which onnx follows the contents of small tensors."""
