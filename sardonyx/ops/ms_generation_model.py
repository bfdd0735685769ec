"""Language models made of subgraphs, fed token by token."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, UnsupportedError
from sardonyx.graph import Graph, TensorType, Value
from sardonyx.ops.allocate import repeat
from sardonyx.ops.precision import Array

Run = Callable[[Graph, Sequence[Any]], list[Any]]


SHARED = frozenset({"past_sequence_length", "beam_width", "cache_indirection"})
"""Inputs of decoders that write keys and values into memory that steps share."""
GIVEN = frozenset({
    "input_ids", "attention_mask", "position_ids", "encoder_input_ids", "encoder_attention_mask",
    "decoder_input_ids", "encoder_hidden_states",
})  # fmt: skip
"""Inputs that are known by their names; the others are keys and values, known by their order."""


class LanguageModel(ABC):
    """Gives scores for the next token of each row; `feed` says which tokens came instead.

    What a subgraph returns behind its scores is what it is fed in the next step, in the same order,
    whatever it is called.
    """

    past_axis = 0
    """The axis along which rows lie in keys and values."""

    def __init__(self, run: Run, tokens: Array) -> None:
        self.run_graph = run
        self.tokens = tokens
        self.values: dict[str, Any] = {}
        self.past: list[Array] = []

    @abstractmethod
    def run(self) -> Array:
        """Scores [rows, vocabulary] of the next token."""

    def feed(self, chosen: Array, sources: Array | None = None) -> None:
        """Go on with one token a row, each behind the row that `sources` names."""
        if sources is not None:
            self.reorder(sources)
        self.values["input_ids"] = chosen.astype(np.int32)[:, None]

    def repeat(self, times: int) -> None:
        """Make each row so many equal ones."""
        rows = repeat(np.arange(len(self.tokens)), times, 0)
        self.tokens = self.tokens[rows]
        self.reorder(rows)

    def reorder(self, rows: Array) -> None:
        """Let each row go on from another one."""
        for name, value in self.values.items():
            self.values[name] = value.take(rows, 0)
        self.past = [item.take(rows, self.past_axis) for item in self.past]

    def call(self, graph: Graph, past: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Run a subgraph on the values as they are; its scores, and what it returns behind them."""
        results = self.run_graph(graph, self._inputs(graph, past))
        if not graph.outputs or graph.outputs[0].name != "logits":
            raise EvaluationError(f"the first output of subgraph '{graph.name}' is not 'logits'")
        return results[0][:, -1], results[1:]

    def _inputs(self, graph: Graph, past: Sequence[Array]) -> list[Any]:
        """What a subgraph is fed: values by their names, keys and values in their order."""
        kept = past_inputs(graph)
        if len(kept) != len(past):
            raise EvaluationError(
                f"subgraph '{graph.name}' takes {len(kept)} keys and values of earlier positions, "
                f"and there are {len(past)}",
                hint="what is returned behind the scores must be what is taken in the next step",
            )
        places = dict(zip(kept, past, strict=True))
        return [places[value] if value in places else self._value(value) for value in graph.inputs]

    def _value(self, value: Value) -> Any:
        if value.name in self.values:
            return self.values[value.name]
        raise UnsupportedError(f"a subgraph's input '{value.name}' has no known meaning")

    def nothing(self, value: Value) -> Array:
        """What stands for the past before the first step: no positions."""
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None or len(kind.shape) < 4:
            raise EvaluationError(f"the shape of '{value.name}' is not declared")
        shape = [size if isinstance(size, int) else 0 for size in kind.shape]
        shape[self.past_axis] = len(self.tokens)
        shape[-2] = 0
        element = kind.element if isinstance(kind.element, DataType) else DataType.FLOAT
        return np.zeros(shape, element.numpy)


def past_inputs(graph: Graph) -> list[Value]:
    """The inputs of a subgraph that are keys and values: those behind all with known names."""
    known = [place for place, value in enumerate(graph.inputs, 1) if value.name in GIVEN]
    rest = graph.inputs[max(known, default=len(graph.inputs)) :]
    return [value for value in rest if value.name not in SHARED]


class DecoderOnly(LanguageModel):
    """A model of one decoder, as GPT-2; another one may take the prompt.

    Keys and values of a layer lie behind each other on the first axis.
    """

    past_axis = 1

    def __init__(
        self, run: Run, first: Graph, decoder: Graph, tokens: Array, mask: Array | None, pad: int
    ) -> None:
        super().__init__(run, tokens)
        self.next, self.decoder = first, decoder
        real = tokens != pad
        places = np.where(real, np.cumsum(real, 1) - 1, 0).astype(np.int32)
        seen = (real if mask is None else mask).astype(np.int32)
        self.values = {"input_ids": tokens, "attention_mask": seen, "position_ids": places}
        self.past = [self.nothing(value) for value in past_inputs(first)]

    def run(self) -> Array:
        """Scores of the next token; the past grows by what was fed."""
        logits, self.past = self.call(self.next, self.past)
        self.next = self.decoder
        return logits

    def feed(self, chosen: Array, sources: Array | None = None) -> None:
        """Go on with one token a row, which every later one sees."""
        super().feed(chosen, sources)
        mask = self.values["attention_mask"]
        places = self.values["position_ids"].max(1, keepdims=True) + 1
        self.values["position_ids"] = places.astype(np.int32)
        self.values["attention_mask"] = np.pad(mask, ((0, 0), (0, 1)), constant_values=1)


class EncoderDecoder(LanguageModel):
    """A model of an encoder, which is run once, and a decoder, as T5 and Whisper.

    The decoder takes keys and values of its own tokens, those of all layers, and then as many of
    the source; it returns the former. One that declares its tokens as more than one column is
    fed all of them in each step.
    """

    def __init__(
        self, run: Run, encoder: Graph, decoder: Graph, source: Array, mask: Array | None,
        start: Array, pad: int,
    ) -> None:  # fmt: skip
        super().__init__(run, start)
        self.encoder, self.decoder = encoder, decoder
        if mask is None and source.ndim == 2 and source.dtype.kind == "i":
            mask = np.maximum.accumulate(source != pad, 1).astype(np.int32)
        self.values = {"encoder_input_ids": source, "decoder_input_ids": start, "input_ids": start}
        if mask is not None:
            self.values["encoder_attention_mask"] = mask
        self.fresh = True
        self.whole = _takes_all_tokens(decoder)
        self.own = len(decoder.outputs) - 1

    def run(self) -> Array:
        """Scores of the next token; at first the encoder's, where it gives some."""
        if self.fresh:
            self.fresh = False
            scores = self._encode()
            if scores is not None:
                return scores
        logits, grown = self.call(self.decoder, self.past)
        self.past[: self.own] = grown
        return logits

    def feed(self, chosen: Array, sources: Array | None = None) -> None:
        """Go on with one token a row."""
        before = self.values["input_ids"] if self.whole else None
        super().feed(chosen, sources)
        if before is not None:
            former = before if sources is None else before.take(sources, 0)
            self.values["input_ids"] = np.concatenate([former, self.values["input_ids"]], 1)

    def _encode(self) -> Array | None:
        """Run the encoder, and keep its keys and values; scores, where it gives some."""
        results = self.run_graph(self.encoder, self._inputs(self.encoder, ()))
        scores: Array | None = None
        made: list[Array] = []
        for value, result in zip(self.encoder.outputs, results, strict=True):
            if value.name == "logits":
                scores = result[:, -1]
            elif value.name == "encoder_hidden_states":
                self.values[value.name] = result
            else:
                made.append(result)
        kept = past_inputs(self.decoder)
        if scores is None:
            made = [*(self.nothing(value) for value in kept[: self.own]), *made]
        if len(made) != len(kept) or self.own > len(kept):
            raise EvaluationError(
                f"subgraph '{self.decoder.name}' takes {len(kept)} keys and values, "
                f"and there are {len(made)} before its first step",
                hint="it takes those of its own tokens first, then those of the source",
            )
        self.past = made
        return scores


def _takes_all_tokens(decoder: Graph) -> bool:
    """Whether a decoder is fed all tokens in each step: unless it declares one column."""
    kind = next((value.type for value in decoder.inputs if value.name == "input_ids"), None)
    shape = kind.shape if isinstance(kind, TensorType) else None
    return shape is not None and len(shape) == 2 and shape[1] != 1
