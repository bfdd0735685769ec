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


class LanguageModel(ABC):
    """Gives scores for the next token of each row; `feed` says which tokens came instead.

    Subgraphs are fed by the names of their inputs; what they return as `present_x` is what they
    are fed as `past_x` in the next step.
    """

    def __init__(self, run: Run, tokens: Array) -> None:
        self.run_graph = run
        self.tokens = tokens
        self.values: dict[str, Any] = {}

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
            self.values[name] = value.take(rows, self.row_axis(name))

    def row_axis(self, name: str) -> int:
        """The axis of an input along which rows lie."""
        return 0

    def call(self, graph: Graph) -> Array:
        """Run a subgraph on the values as they are, keep what it returns, and give its scores."""
        results = self.run_graph(graph, [self._input(value) for value in graph.inputs])
        logits: Array | None = None
        for value, result in zip(graph.outputs, results, strict=True):
            if value.name == "logits":
                logits = result
            else:
                self.values[value.name.replace("present", "past", 1)] = result
        if logits is None:
            raise EvaluationError(f"subgraph '{graph.name}' has no output 'logits'")
        return logits[:, -1]

    def _input(self, value: Value) -> Any:
        if value.name in self.values:
            return self.values[value.name]
        if value.name.startswith("past_") and value.name != "past_sequence_length":
            return self._nothing(value)
        raise UnsupportedError(f"a subgraph's input '{value.name}' has no known meaning")

    def _nothing(self, value: Value) -> Array:
        """What stands for the past before the first step: no positions."""
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None or len(kind.shape) < 4:
            raise EvaluationError(f"the shape of '{value.name}' is not declared")
        shape = [size if isinstance(size, int) else 0 for size in kind.shape]
        shape[self.row_axis(value.name)] = len(self.tokens)
        shape[-2] = 0
        element = kind.element if isinstance(kind.element, DataType) else DataType.FLOAT
        return np.zeros(shape, element.numpy)


class DecoderOnly(LanguageModel):
    """A model of one decoder, as GPT-2; another one may take the prompt."""

    def __init__(
        self, run: Run, first: Graph, decoder: Graph, tokens: Array, mask: Array | None, pad: int
    ) -> None:
        super().__init__(run, tokens)
        self.next, self.decoder = first, decoder
        real = tokens != pad
        places = np.where(real, np.cumsum(real, 1) - 1, 0).astype(np.int32)
        seen = (real if mask is None else mask).astype(np.int32)
        self.values = {"input_ids": tokens, "attention_mask": seen, "position_ids": places}

    def row_axis(self, name: str) -> int:
        """Keys and values lie behind each other on the first axis."""
        return 1 if name.startswith("past_") else 0

    def run(self) -> Array:
        """Scores of the next token; the past grows by what was fed."""
        logits = self.call(self.next)
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
    """A model of an encoder, which is run once, and a decoder, as T5."""

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

    def run(self) -> Array:
        """Scores of the next token; at first the encoder's, where it gives some."""
        if not self.fresh:
            return self.call(self.decoder)
        self.fresh = False
        names = [value.name for value in self.encoder.outputs]
        if "logits" in names:
            return self.call(self.encoder)
        results = self.run_graph(self.encoder, [self._input(item) for item in self.encoder.inputs])
        for name, result in zip(names, results, strict=True):
            self.values[name.replace("present", "past", 1)] = result
        return self.call(self.decoder)
