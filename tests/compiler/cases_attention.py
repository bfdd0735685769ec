"""Cases of attention in its spellings, and of operators that join several others."""

import numpy as np

from tests.compiler.case import FLOAT, Case, flags, normal

MICROSOFT = "com.microsoft"


def counts(*values: int) -> np.ndarray:
    """An int32 tensor of one axis."""
    return np.array(values, np.int32)


def _some(*shape: int) -> np.ndarray:
    """Truth values, of which the first along the last axis is true."""
    made = flags(*shape)
    made[..., 0] = True
    return made


Q, K, V = normal(2, 4, 9, 8), normal(2, 4, 11, 8), normal(2, 4, 11, 5)
GK, GV = normal(2, 2, 11, 8), normal(2, 2, 11, 8)
HIDDEN = normal(2, 9, 32)
LOWEST = np.where(flags(2, 1, 9, 11), 0, -np.inf).astype(FLOAT)
NOTHING = np.zeros((9, 11), bool)
HEADS = {"q_num_heads": 4, "kv_num_heads": 4}
ATTENTION = [
    Case("Attention", (Q, K, V)),
    Case("Attention", (Q, GK, GV), label="groups", symbolic=False),
    Case("Attention", (Q.astype(np.float16), GK.astype(np.float16), GV.astype(np.float16)),
         label="half", symbolic=False),
    Case("Attention", (HIDDEN, HIDDEN, HIDDEN), HEADS, label="packed", symbolic=False),
    Case("Attention", (HIDDEN, normal(2, 11, 16), normal(2, 11, 16)),
         {"q_num_heads": 4, "kv_num_heads": 2}, label="packed groups", symbolic=False),
    Case("Attention", (Q, K, V, LOWEST), label="mask"),
    Case("Attention", (Q, K, V, _some(9, 11)), label="flags"),
    Case("Attention", (Q, K, V, NOTHING), label="no keys seen"),
    Case("Attention", (Q, GK, GV, normal(2, 4, 9, 11)), label="mask of groups", symbolic=False),
    Case("Attention", (Q, K, V), {"is_causal": 1, "scale": 0.3}, label="causal"),
    Case("Attention", (Q, K, V), {"softcap": 2.0, "left_window_size": 3, "right_window_size": 1},
         label="windows"),
    Case("Attention", (Q, K, V, None, normal(2, 4, 6, 8), normal(2, 4, 6, 5)), {"is_causal": 1},
         outputs=3, label="past", symbolic=False),
    Case("Attention", (Q, K, V, None, None, None, np.array([3, 11])), {"is_causal": 1},
         label="lengths"),
]  # fmt: skip
LONG = normal(2, 9, 24)
BIASES = normal(24)
PAST = (normal(2, 4, 6, 8), normal(2, 4, 6, 8))
MULTI = [
    Case("MultiHeadAttention", inputs, {"num_heads": 4, **extra}, domain=MICROSOFT, label=label,
         outputs=outputs, symbolic=False)
    for label, inputs, extra, outputs in [
        ("plain", (HIDDEN, normal(2, 7, 32), normal(2, 7, 16)), {}, 1),
        ("bias", (HIDDEN, HIDDEN, normal(2, 9, 24), normal(88)), {"scale": 0.2}, 1),
        ("heads", (HIDDEN, normal(2, 4, 7, 8), normal(2, 4, 7, 6), normal(96)), {}, 1),
        ("one", (normal(2, 9, 4, 3, 8), None, None, normal(96)), {"unidirectional": 1}, 1),
        ("pairs", (HIDDEN, normal(2, 7, 4, 2, 8), None), {}, 1),
        ("joint", (normal(2, 9, 96), None, None, normal(96)), {}, 1),
        ("past", (HIDDEN, HIDDEN, HIDDEN, None, None, None, *PAST), {"unidirectional": 1}, 3),
        ("ends", (HIDDEN, HIDDEN, HIDDEN, None, counts(3, 9)), {}, 1),
        ("spans", (HIDDEN, HIDDEN, HIDDEN, None, counts(3, 9, 1, 0)), {}, 1),
        ("keys", (HIDDEN, HIDDEN, HIDDEN, None, _some(2, 9).astype(np.int32), normal(1, 4, 9, 9)),
         {"mask_filter_value": -50.0}, 1),
    ]
]  # fmt: skip
WEIGHTS, SHIFT = normal(24, 96), normal(96)
SELF = [
    Case("Attention", inputs, {"num_heads": 4, **extra}, fixed=(1, 2), domain=MICROSOFT,
         label=f"self {label}", outputs=outputs, symbolic=False, rtol=2e-4, atol=2e-4)
    for label, inputs, extra, outputs in [
        ("plain", (LONG, WEIGHTS, SHIFT), {}, 1),
        ("present", (LONG, WEIGHTS, SHIFT), {"unidirectional": 1}, 2),
        ("past", (LONG, WEIGHTS, SHIFT, None, normal(2, 2, 4, 6, 8)), {"unidirectional": 1}, 2),
        ("mask", (LONG, WEIGHTS, SHIFT, _some(2, 9).astype(np.int32)), {}, 1),
        ("pairs", (LONG, WEIGHTS, SHIFT, _some(2, 9, 9).astype(np.int32)), {}, 1),
        ("wide", (LONG, WEIGHTS, SHIFT, _some(2, 1, 12, 12).astype(np.int32)), {}, 1),
        ("sizes", (LONG, normal(24, 80), normal(80)), {"qkv_hidden_sizes": [32, 32, 16]}, 1),
    ]
]  # fmt: skip
ANGLES = (normal(20, 4), normal(20, 4))
GROUPS = {"num_heads": 4, "kv_num_heads": 2}
CACHE = (normal(2, 2, 6, 8), normal(2, 2, 6, 8))
WIDE_CACHE = (normal(2, 2, 20, 8), normal(2, 2, 20, 8))
NEW = (normal(2, 3, 32), normal(2, 3, 16), normal(2, 3, 16))
SHARED = [
    Case("GroupQueryAttention", inputs, {**GROUPS, **extra}, fixed=(6,), domain=MICROSOFT,
         label=label, outputs=3, symbolic=False)
    for label, inputs, extra in [
        ("first", (*NEW, None, None, counts(2, 1), counts(3)), {}),
        ("step", (*NEW, *CACHE, counts(8, 6), counts(9)), {"softcap": 3.0}),
        ("room", (*NEW, *WIDE_CACHE, counts(8, 6), counts(9)), {"local_window_size": 4}),
        ("joint", (normal(2, 3, 64), None, None, *CACHE, counts(8, 8), counts(9)), {}),
        ("turned", (*NEW, *CACHE, counts(8, 6), counts(9), *ANGLES), {"do_rotary": 1}),
        ("pairs", (*NEW, None, None, counts(2, 2), counts(3), *ANGLES),
         {"do_rotary": 1, "rotary_interleaved": 1}),
        ("bias", (*NEW, *CACHE, counts(8, 8), counts(9), None, None, None, normal(1, 4, 3, 9)),
         {"causal": 0}),
        ("one", (normal(2, 1, 32), normal(2, 1, 16), normal(2, 1, 16), *CACHE, counts(6, 3),
                 counts(7)), {}),
    ]
]  # fmt: skip
IDS = (np.arange(18).reshape(2, 9) % 7).astype(np.int32)
TABLES = (normal(7, 24), normal(16, 24), normal(3, 24))
JOINED = [
    Case("ExpandDims", (LONG, np.array(-2, np.int32)), fixed=(1,), domain=MICROSOFT),
    Case("Trilu", (normal(2, 5, 7),), {"upper": 0}, domain=MICROSOFT, label="microsoft"),
    Case("GatherND", (LONG, np.array([[1, 2], [0, 8]], np.int32)), domain=MICROSOFT,
         label="microsoft", symbolic=False),
    Case("Gelu", (LONG,), domain=MICROSOFT, label="microsoft"),
    Case("BiasGelu", (LONG, BIASES), domain=MICROSOFT),
    Case("FastGelu", (LONG, BIASES), domain=MICROSOFT),
    Case("FastGelu", (LONG,), domain=MICROSOFT, label="alone"),
    Case("QuickGelu", (LONG,), {"alpha": 1.5}, domain=MICROSOFT),
    Case("BiasAdd", (LONG, BIASES, LONG), domain=MICROSOFT),
    Case("BiasSplitGelu", (LONG, BIASES), domain=MICROSOFT, symbolic=False),
    Case("BiasSoftmax", (Q, normal(2, 1, 1, 8)), {"axis": 3, "is_inner_broadcast": 1},
         domain=MICROSOFT),
    Case("BiasSoftmax", (Q, normal(1, 1, 9, 8)), {"axis": 3, "is_inner_broadcast": 0},
         domain=MICROSOFT, label="outer"),
    Case("BiasDropout", (LONG, BIASES, LONG), domain=MICROSOFT),
    Case("FusedMatMul", (normal(3, 5, 4), normal(3, 6, 5)),
         {"alpha": 0.5, "transA": 1, "transB": 1}, domain=MICROSOFT),
    Case("FusedMatMul", (normal(5, 3, 4), normal(3, 4, 6)), {"transBatchA": 1}, domain=MICROSOFT,
         label="batch"),
    Case("TransposeMatMul", (normal(5, 4), normal(5, 6)), {"transA": 1}, domain=MICROSOFT),
    Case("SkipLayerNormalization", (LONG, LONG + 1, BIASES, BIASES, BIASES), {"epsilon": 1e-5},
         domain=MICROSOFT, outputs=4),
    Case("SkipSimplifiedLayerNormalization", (LONG, LONG + 1, BIASES), domain=MICROSOFT,
         outputs=4),
    Case("SimplifiedLayerNormalization", (LONG, BIASES), outputs=2),
    Case("SimplifiedLayerNormalization", (LONG, BIASES), domain=MICROSOFT, label="microsoft"),
    Case("EmbedLayerNormalization",
         (IDS, IDS % 3, *TABLES, BIASES, BIASES, (IDS > 2).astype(np.int32)), domain=MICROSOFT,
         fixed=(2, 3, 4), outputs=3, symbolic=False),
    Case("EmbedLayerNormalization", (IDS, None, *TABLES[:2], None, BIASES, BIASES, None, IDS),
         domain=MICROSOFT, fixed=(2, 3), outputs=2, label="places", symbolic=False),
    *(
        Case("RotaryEmbedding", (x, places, normal(20, half), normal(20, half)), attributes,
             domain=MICROSOFT, label=label, symbolic=False)
        for label, x, places, half, attributes in [
            ("heads", Q, np.array([3]), 4, {}),
            ("pairs", Q, np.array([3]), 4, {"interleaved": 1}),
            ("packed", HIDDEN, IDS.astype(np.int64), 4, {}),
            ("few", HIDDEN, IDS.astype(np.int64), 2, {"rotary_embedding_dim": 4, "num_heads": 4}),
        ]
    ),
    *(
        Case("FusedGemm", (normal(5, 4), normal(4, 6), normal(6)),
             {"activation": name, "alpha": 0.5}, domain=MICROSOFT, label=name)
        for name in ("Relu", "LeakyRelu", "Tanh")
    ),
    Case("FusedConv", (normal(1, 3, 8, 8), normal(4, 3, 3, 3), normal(4), normal(1, 4, 6, 6)),
         {"activation": "Clip", "activation_params": [-0.5, 0.75]}, fixed=(1, 2), domain=MICROSOFT,
         symbolic=False),
]  # fmt: skip
CASES: list[Case] = [*ATTENTION, *MULTI, *SELF, *SHARED, *JOINED]
