"""All operators, found by domain and name."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from sardonyx.ops.operator import Operator

OPERATORS: dict[str, dict[str, str]] = {
    "": {
        "activations": (
            "Celu Clip Elu Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink "
            "SwiGLU Swish ThresholdedRelu"
        ),
        "arithmetic": "Add Div Max Mean Min Mod Mul Pow Sub Sum",
        "attention": "Attention",
        "batch_normalization": "BatchNormalization",
        "bitwise": "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor",
        "cast": "BitCast Cast CastLike",
        "comparison": "And Equal Greater GreaterOrEqual Less LessOrEqual Or Xor",
        "constant": "Constant ConstantOfShape EyeLike Range",
        "control_flow": "If Loop Scan",
        "convolution": "CausalConvWithState Conv ConvTranspose",
        "cumulative": "CumProd CumSum",
        "einsum": "Einsum",
        "folding": "Col2Im DeformConv",
        "grid": "AffineGrid GridSample",
        "image": "ImageDecoder",
        "indexing": "Gather GatherElements GatherND",
        "joining": "Concat Split",
        "linear_attention": "LinearAttention",
        "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
        "movement": "DepthToSpace Expand ReverseSequence SpaceToDepth Tile Transpose Trilu",
        "ms_normalization": "SimplifiedLayerNormalization",
        "normalization": (
            "GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization "
            "MeanVarianceNormalization RMSNormalization"
        ),
        "optional": "Optional OptionalGetElement OptionalHasElement",
        "padding": "CenterCropPad Pad",
        "pooling": (
            "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool"
        ),
        "product": "Det Gemm MatMul",
        "quantization": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
        "quantized_product": "ConvInteger MatMulInteger QLinearConv QLinearMatMul",
        "random_numbers": (
            "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform "
            "RandomUniformLike"
        ),
        "recurrent": "GRU LSTM RNN",
        "reduction": (
            "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
            "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
        ),
        "regions": "MaxRoiPool NonMaxSuppression RoiAlign",
        "resize": "Resize Upsample",
        "rotary": "RotaryEmbedding",
        "scatter": "Scatter ScatterElements ScatterND TensorScatter",
        "selection": "Compress NonZero OneHot TopK Unique Where",
        "sequence": (
            "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase "
            "SequenceInsert SequenceLength SequenceMap SplitToSequence"
        ),
        "shape": "Flatten Identity Reshape Shape Size Squeeze Unsqueeze",
        "signal": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
        "slicing": "Slice",
        "softmax": "Hardmax LogSoftmax Softmax",
        "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
        "unary": (
            "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor IsInf IsNaN Log "
            "Neg Not Reciprocal Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh"
        ),
    },
    "ai.onnx.ml": {
        "ml_features": (
            "ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer Normalizer Scaler"
        ),
        "ml_labels": "CategoryMapper LabelEncoder OneHotEncoder",
        "ml_linear": "LinearClassifier LinearRegressor",
        "ml_maps": "CastMap DictVectorizer ZipMap",
        "ml_svm": "SVMClassifier SVMRegressor",
        "ml_trees": "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    },
    "ai.onnx.preview": {
        "attention": "FlexAttention",
    },
    "ai.onnx.preview.training": {
        "training": "Adagrad Adam Gradient Momentum",
    },
    "com.microsoft": {
        "ms_activation": (
            "BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu FastGelu Gelu QuickGelu"
        ),
        "ms_attention": "Attention PackedAttention PackedMultiHeadAttention QAttention",
        "ms_generation": "BeamSearch GreedySearch Sampling",
        "ms_group_attention": "GroupQueryAttention RotaryEmbedding",
        "ms_image": (
            "ConvTransposeWithDynamicPads CropAndResize FusedConv GridSample NhwcMaxPool "
            "QLinearAveragePool QLinearConv QLinearGlobalAveragePool"
        ),
        "ms_matmul_bits": "GatherBlockQuantized MatMulNBits",
        "ms_movement": "ExpandDims GatherND Pad Range Trilu Unique",
        "ms_multihead_attention": "DecoderMaskedMultiHeadAttention MultiHeadAttention",
        "ms_normalization": (
            "EmbedLayerNormalization SimplifiedLayerNormalization SkipLayerNormalization "
            "SkipSimplifiedLayerNormalization"
        ),
        "ms_product": (
            "CDist DynamicQuantizeMatMul FusedGemm FusedMatMul Inverse MatMulInteger16 "
            "MatMulIntegerToFloat QGemm TransposeMatMul"
        ),
        "ms_quantized": (
            "DequantizeLinear QLinearAdd QLinearConcat QLinearLeakyRelu QLinearMul "
            "QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere QuantizeLinear"
        ),
        "ms_recurrent": "DynamicQuantizeLSTM",
        "ms_text": "MurmurHash3 NGramRepeatBlock Tokenizer WordConvEmbedding",
    },
}
"""Names of operators, by domain and by the module of `sardonyx.ops` that holds them."""

NEWEST_OPSETS = {
    "": 28,
    "ai.onnx.ml": 5,
    "ai.onnx.preview.training": 1,
    "ai.onnx.preview": 1,
    "com.microsoft": 1,
}
"""The newest version of each domain that is known; of `com.microsoft`, what real models use."""

Key = tuple[str, str]
Catalog = Mapping[Key, type[Operator]]


def canonical_domain(domain: str) -> str:
    """A domain's usual spelling: the default one is also written `ai.onnx`."""
    return "" if domain == "ai.onnx" else domain


class LazyCatalog(Catalog):
    """Operators by domain and name; those in `families` are imported when they are asked for."""

    def __init__(self, families: Mapping[Key, str], own: Catalog | None = None) -> None:
        self._families = families
        self._own = dict(own or {})

    def __getitem__(self, key: Key) -> type[Operator]:
        found = self._own.get(key)
        return _family(self._families[key])[key] if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self._own or key in self._families

    def __iter__(self) -> Iterator[Key]:
        return iter({**self._families, **self._own})

    def __len__(self) -> int:
        return len(self._families.keys() | self._own.keys())

    def __or__(self, more: Catalog) -> "LazyCatalog":
        return LazyCatalog(self._families, self._own | dict(more))


@cache
def standard() -> LazyCatalog:
    """The operators of ONNX and of `com.microsoft`.

    >>> standard()["", "Relu"].name
    'Relu'
    """
    return of_domains(*OPERATORS)


def of_domains(*domains: str) -> LazyCatalog:
    """The known operators of some domains."""
    return LazyCatalog(
        {
            (domain, name): family
            for domain in domains
            for family, names in OPERATORS[domain].items()
            for name in names.split()
        }
    )


@cache
def _family(name: str) -> Catalog:
    """The operators that a module of `sardonyx.ops` defines."""
    module = import_module(f"sardonyx.ops.{name}")
    return {
        (item.domain, item.name): item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Operator) and item.signatures
    }
