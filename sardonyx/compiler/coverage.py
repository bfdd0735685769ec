"""Which operators run as native code, and why the others do not."""

from dataclasses import dataclass

from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.ops.catalog import Catalog, standard

_STAYS = {
    "strings have no place in kernels": """
        RegexFullMatch StringConcat StringNormalizer StringSplit
        ai.onnx.ml:CategoryMapper ai.onnx.ml:LabelEncoder com.microsoft:MurmurHash3
        com.microsoft:Tokenizer com.microsoft:WordConvEmbedding""",
    "lists and options are handed on as they are": """
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt
        SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
        SplitToSequence""",
    "maps are Python's dictionaries": """
        ai.onnx.ml:CastMap ai.onnx.ml:DictVectorizer ai.onnx.ml:ZipMap""",
    "random numbers come from one generator for all providers": """
        Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike""",
    "pictures are decoded by a library": "ImageDecoder",
    "generation runs its inner graphs step by step": """
        com.microsoft:BeamSearch com.microsoft:GreedySearch com.microsoft:Sampling""",
    "its sizes are those that kernels are given": "Constant Shape Size",
    "an older operator that is replaced before anything runs": "Scatter Upsample",
    "its bodies are programs, between which Python goes on": "If Loop Scan",
}
"""Reasons, with the operators they are for."""
RARE = "it is rare, and its reference is fast enough so far"


@dataclass(frozen=True, slots=True)
class NativeForm:
    """How an operator runs: `kernels`, its `function`'s body, or its `reference` for a reason."""

    domain: str
    name: str
    how: str
    reason: str = ""


def cover_native(catalog: Catalog | None = None) -> list[NativeForm]:
    """How every operator runs, ordered by domain and name; the default domain is `ai.onnx`.

    >>> [form.how for form in cover_native() if form.name in ("Celu", "Conv", "StringSplit")]
    ['function', 'kernels', 'reference']
    """
    known = standard() if catalog is None else catalog
    reasons = stays()
    found = []
    for key, operator in sorted(known.items()):
        how, reason = "reference", reasons.get(key, RARE)
        if key in LOWERINGS or getattr(operator, "lower", None) is not None:
            how, reason = "kernels", ""
        elif operator.function is not None and operator.expands and not operator.random:
            how, reason = "function", ""
        found.append(NativeForm(key[0] or "ai.onnx", key[1], how, reason))
    return found


def stays() -> dict[tuple[str, str], str]:
    """Operators that stay with their reference, and why.

    >>> stays()["", "ImageDecoder"]
    'pictures are decoded by a library'
    """
    found = {}
    for reason, words in _STAYS.items():
        for word in words.split():
            domain, _, name = word.rpartition(":")
            found[domain, name] = reason
    return found
