"""Which operators run as native code, and why the others do not."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from sardonyx.compiler.build import needed_between
from sardonyx.compiler.expand import lower_model
from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.compiler.specialize import LARGEST_CONTENT, with_contents
from sardonyx.graph import Model, Node
from sardonyx.graph.clone import clone_model
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.pipeline import CLEAN, run_pipeline
from sardonyx.record import record

_STAYS = {
    "strings have no place in kernels": """
        RegexFullMatch StringConcat StringNormalizer StringSplit
        ai.onnx.ml:CategoryMapper ai.onnx.ml:LabelEncoder com.microsoft:MurmurHash3
        com.microsoft:Tokenizer com.microsoft:WordConvEmbedding""",
    "lists and options are handed on as they are": """
        ConcatFromSequence Optional OptionalHasElement SequenceAt
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


@record
class NativeForm:
    """How an operator runs: `kernels`, its `function`'s body, or its `reference` for a reason."""

    domain: str
    name: str
    how: str
    reason: str = ""


def cover_native(catalog: Catalog | None = None) -> list[NativeForm]:
    """How every operator runs, ordered by domain and name; the default domain is `ai.onnx`.

    >>> [form.how for form in cover_native() if form.name in ("Conv", "Shrink", "StringSplit")]
    ['kernels', 'function', 'reference']
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


def fallbacks(model: Model, feeds: Mapping[str, Any]) -> tuple[str, ...]:
    """The operators of a model's main graph that run their reference, fed with such inputs.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (string[n] x, string[n] z) => (string[n] y)'
    ...                      '{ y = StringConcat(x, z) }')
    >>> fallbacks(model, {})
    ('StringConcat',)
    """
    while True:
        evaluator = Evaluator(clone_model(model), catalog=standard())
        lowered, _ = lower_model(evaluator, standard())
        names = [value.name for value in lowered.wanted if value.name in feeds]
        contents = {name: np.asarray(feeds[name]) for name in names}
        sizes = [item.size for item in contents.values()]
        if len(sizes) < len(lowered.wanted) or not sizes or max(sizes) > LARGEST_CONTENT:
            break
        model = run_pipeline(with_contents(model, contents), CLEAN)
    steps = needed_between(evaluator.graph, lowered)
    nodes = [step for step in steps if isinstance(step, Node) and not any(step.subgraphs)]
    return tuple(sorted({node.op_type for node in nodes}))


@record
class OfficialCases:
    """What was recorded of the official node cases: whose they are, how many there are, and the
    operators that run their reference in those that do not run natively from end to end."""

    version: str
    count: int
    fallbacks: dict[str, tuple[str, ...]]

    @property
    def native(self) -> int:
        """Cases in which nothing runs its reference."""
        return self.count - len(self.fallbacks)


_RECORD = files("sardonyx.compiler") / "official_cases.txt"


def official_cases() -> OfficialCases:
    """The record of the official node cases, which a test compares with the cases themselves.

    >>> cases = official_cases()
    >>> cases.native / cases.count > 0.95
    True
    """
    head, *lines = _RECORD.read_text().splitlines()
    version, count = head.split()
    rows = [line.split() for line in lines]
    return OfficialCases(version, int(count), {name: tuple(rest) for name, *rest in rows})
