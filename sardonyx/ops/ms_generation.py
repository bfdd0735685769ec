# mypy: disable-error-code="misc, no-any-return"
"""Text generation: greedy search, sampling and beam search around a model given as subgraphs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.graph import Graph
from sardonyx.ops.allocate import repeat
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import plus, scalar, size_of
from sardonyx.ops.ms_generation_beams import Beams
from sardonyx.ops.ms_generation_model import DecoderOnly, EncoderDecoder, LanguageModel
from sardonyx.ops.ms_text import block_repeats
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.record import record

LOWEST = np.finfo(np.float32).min
"""The score of a token that must not come next."""


@record
class Rules:
    """What may come next, apart from what the model says."""

    eos: int
    repetition_penalty: float
    ngram_size: int
    min_length: int
    vocab_mask: Array | None
    prefix_vocab_mask: Array | None

    def apply(self, scores: Array, sequences: Array, *, first: bool) -> Array:
        """Scores of the next token for each sequence, with what is ruled out at its lowest."""
        result = scores.copy()
        if self.repetition_penalty != 1:
            seen = np.zeros(scores.shape, np.bool_)
            np.put_along_axis(seen, sequences, True, 1)
            penalty = np.float32(self.repetition_penalty)
            worse = np.where(result < 0, result * penalty, result / penalty)
            result = np.where(seen, worse, result)
        if self.ngram_size > 0:
            blocked = block_repeats(sequences, result, self.ngram_size)
            result = np.where(np.isneginf(blocked), LOWEST, result)
        if self.vocab_mask is not None:
            result = np.where(self.vocab_mask.reshape(1, -1) == 0, LOWEST, result)
        if self.prefix_vocab_mask is not None and first:
            rows = len(result) // len(self.prefix_vocab_mask)
            mask = repeat(self.prefix_vocab_mask, rows, 0)
            result = np.where(mask == 0, LOWEST, result)
        if sequences.shape[1] < self.min_length:
            result[:, self.eos] = LOWEST
        return result


def _model(
    context: Context, tokens: Array, mask: Array | None, start: Array | None,
    attributes: dict[str, Any],
) -> LanguageModel:  # fmt: skip
    """The model that a node's subgraphs make up, fed with the given prompt."""
    decoder: Graph = attributes["decoder"]
    if attributes["model_type"] == 0:
        first: Graph = attributes["init_decoder"] or decoder
        return DecoderOnly(context.run, first, decoder, tokens, mask, attributes["pad_token_id"])
    encoder: Graph | None = attributes["encoder"]
    if encoder is None:
        raise EvaluationError("a model of type encoder-decoder has no encoder")
    if start is None:
        if attributes["decoder_start_token_id"] < 0:
            raise EvaluationError("decoder_start_token_id is not given")
        start = np.full((len(tokens), 1), attributes["decoder_start_token_id"], np.int32)
    return EncoderDecoder(
        context.run, encoder, decoder, tokens, mask, start, attributes["pad_token_id"]
    )


def _logits(model: LanguageModel, vocab_size: int) -> Array:
    logits = model.run().astype(np.float32)
    return logits[:, :vocab_size] if vocab_size > 0 else logits


def _padded(sequences: Array, length: int, pad: int) -> Array:
    result = np.full((len(sequences), length), pad, np.int32)
    result[:, : sequences.shape[1]] = sequences[:, :length]
    return result


def _generate(
    model: LanguageModel, rules: Rules, choose: Callable[[Array], Array], limit: int,
    attributes: dict[str, Any],
) -> Array:  # fmt: skip
    """One token after the other for each sequence, until each has ended or is long enough."""
    eos, pad = attributes["eos_token_id"], attributes["pad_token_id"]
    sequences = model.tokens.astype(np.int64)
    ended = np.zeros(len(sequences), np.bool_)
    first = True
    while sequences.shape[1] < limit:
        scores = rules.apply(_logits(model, attributes["vocab_size"]), sequences, first=first)
        chosen = choose(scores)
        ended |= chosen == eos
        chosen = np.where(ended, pad, chosen)
        sequences = np.concatenate([sequences, chosen[:, None]], 1)
        if ended.all():
            break
        model.feed(chosen)
        first = False
    return _padded(sequences, limit, pad)


def _value(fact: Fact | None) -> Size | None:
    sizes = None if fact is None else fact.sizes()
    return sizes[0] if sizes and len(sizes) == 1 else None


def _rules(
    min_length: Array | None, penalty: Array | None, vocab_mask: Array | None,
    prefix_vocab_mask: Array | None, attributes: dict[str, Any],
) -> Rules:  # fmt: skip
    return Rules(
        attributes["eos_token_id"], float(scalar(penalty, 1.0)), attributes["no_repeat_ngram_size"],
        int(scalar(min_length, 0)), vocab_mask, prefix_vocab_mask,
    )  # fmt: skip


class GreedySearch(Operator):
    """Continues each sequence with the token of the highest score, again and again."""

    domain = "com.microsoft"
    signatures = (
        "1(input_ids: I, max_length: I, min_length?: I, repetition_penalty?: T, vocab_mask?: I,"
        " prefix_vocab_mask?: I, attention_mask?: I, decoder: graph,"
        " decoder_start_token_id: int = -1, encoder?: graph, eos_token_id: int,"
        " init_decoder?: graph, model_type: int = 0, no_repeat_ngram_size: int = 0,"
        " pad_token_id: int, vocab_size: int = -1) -> sequences: I; T: float; I: int32",
    )

    def infer(tokens: Fact, max_length: Fact, *rest: Fact | None, **_: Any) -> Fact:
        return tensor(DataType.INT32, (size_of(tokens, 0), _value(max_length)))

    def reference(
        tokens: Array, max_length: Array, min_length: Array | None = None,
        penalty: Array | None = None, vocab_mask: Array | None = None,
        prefix_vocab_mask: Array | None = None, mask: Array | None = None, *, context: Context,
        **attributes: Any,
    ) -> Array:  # fmt: skip
        model = _model(context, tokens, mask, None, attributes)
        rules = _rules(min_length, penalty, vocab_mask, prefix_vocab_mask, attributes)
        limit = int(scalar(max_length))
        return _generate(model, rules, lambda scores: scores.argmax(1), limit, attributes)


class Sampling(Operator):
    """Continues each sequence with a token drawn from the most probable ones, again and again."""

    domain = "com.microsoft"
    random = True
    signatures = (
        "1(input_ids: I, max_length: I, min_length?: I, repetition_penalty?: T, vocab_mask?: I,"
        " prefix_vocab_mask?: I, attention_mask?: I, presence_mask?: I, seed?: I, custom: int = 0,"
        " decoder: graph, decoder_start_token_id: int = -1, encoder?: graph, eos_token_id: int,"
        " filter_value: float = -1e+20, init_decoder?: graph, min_tokens_to_keep: int = 0,"
        " model_type: int = 0, no_repeat_ngram_size: int = 0, pad_token_id: int,"
        " presence_penalty: float = 0.0, temperature: float = 1.0, top_p: float = 0.0,"
        " vocab_size: int = -1) -> (sequences: I, filtered_logits?: T); T: float; I: int32",
    )

    def infer(
        tokens: Fact, max_length: Fact, *rest: Fact | None, vocab_size: int, context: InferContext,
        **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        batch = size_of(tokens, 0)
        logits = tensor(DataType.FLOAT, (batch, vocab_size if vocab_size > 0 else None))
        sequences = tensor(DataType.INT32, (batch, _value(max_length)))
        return (sequences, logits)[: context.outputs]

    def reference(
        tokens: Array, max_length: Array, min_length: Array | None = None,
        penalty: Array | None = None, vocab_mask: Array | None = None,
        prefix_vocab_mask: Array | None = None, mask: Array | None = None,
        presence_mask: Array | None = None, seed: Array | None = None, *, context: Context,
        **attributes: Any,
    ) -> tuple[Array, Array]:  # fmt: skip
        model = _model(context, tokens, mask, None, attributes)
        rules = _rules(min_length, penalty, vocab_mask, prefix_vocab_mask, attributes)
        generator = context.random(None if seed is None else float(scalar(seed)))
        kept: list[Array] = []

        def draw(scores: Array) -> Array:
            filtered = filter_scores(scores, presence_mask, attributes)
            kept[:] = [filtered]
            noise = generator.gumbel(size=filtered.shape)
            return (filtered + noise).argmax(1)

        sequences = _generate(model, rules, draw, int(scalar(max_length)), attributes)
        return sequences, kept[0] if kept else np.zeros((len(tokens), 0), np.float32)


def filter_scores(scores: Array, presence_mask: Array | None, attributes: dict[str, Any]) -> Array:
    """Scores by temperature, in which all but the most probable tokens are filtered out."""
    scores = scores / np.float32(attributes["temperature"] or 1)
    if presence_mask is not None:
        scores = scores - presence_mask * np.float32(attributes["presence_penalty"])
    top_p = attributes["top_p"]
    if not 0 < top_p < 1:
        return scores.astype(np.float32)
    order = np.argsort(scores, 1, kind="stable")
    ranked = np.take_along_axis(scores, order, 1)
    powers = np.exp(ranked - ranked[:, -1:])
    share = np.cumsum(powers / powers.sum(1, keepdims=True), 1)
    unlikely = share <= 1 - top_p
    unlikely[:, max(scores.shape[1] - max(attributes["min_tokens_to_keep"], 1), 0) :] = False
    filtered = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(filtered, order, unlikely, 1)
    return np.where(filtered, np.float32(attributes["filter_value"]), scores).astype(np.float32)


class BeamSearch(Operator):
    """Follows the most probable continuations of each sequence, several at a time."""

    domain = "com.microsoft"
    signatures = (
        "1(input_ids: F, max_length: I, min_length?: I, num_beams: I, num_return_sequences: I,"
        " length_penalty?: T, repetition_penalty?: T, vocab_mask?: M, prefix_vocab_mask?: M,"
        " attention_mask?: I, decoder_input_ids?: I, logits_processor?: I, decoder: graph,"
        " decoder_start_token_id: int = -1, early_stopping: int = 0, encoder?: graph,"
        " eos_token_id: int, init_decoder?: graph, model_type: int = 0,"
        " no_repeat_ngram_size: int = 0, pad_token_id: int, vocab_size: int = -1)"
        " -> (sequences: I, sequences_scores?: T, scores?: T);"
        " T: float float16; F: float float16 int32; I: int32; M: int32",
    )

    def infer(
        tokens: Fact, max_length: Fact, min_length: Fact | None, num_beams: Fact, count: Fact,
        length_penalty: Fact | None = None, *rest: Fact | None, vocab_size: int, model_type: int,
        context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        batch, limit, returned = size_of(tokens, 0), _value(max_length), _value(count)
        dtype = DataType.FLOAT if length_penalty is None else length_penalty.dtype
        prompt = size_of(tokens, 1) if model_type == 0 else 1
        steps = None if prompt is None else plus(limit, -prompt)
        vocabulary = vocab_size if vocab_size > 0 else None
        made = (
            tensor(DataType.INT32, (batch, returned, limit)),
            tensor(dtype, (batch, returned)),
            tensor(dtype, (steps, batch, _value(num_beams), vocabulary)),
        )
        return made[: context.outputs]

    def reference(
        tokens: Array, max_length: Array, min_length: Array | None, num_beams: Array,
        count: Array, length_penalty: Array | None = None, penalty: Array | None = None,
        vocab_mask: Array | None = None, prefix_vocab_mask: Array | None = None,
        mask: Array | None = None, start: Array | None = None,
        logits_processor: Array | None = None, *, early_stopping: int, context: Context,
        **attributes: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        beams, returned = int(scalar(num_beams)), int(scalar(count))
        if returned > beams:
            raise EvaluationError(f"{returned} sequences cannot be had from {beams} beams")
        model = _model(context, tokens, mask, start, attributes)
        model.repeat(beams)
        rules = _rules(min_length, penalty, vocab_mask, prefix_vocab_mask, attributes)
        search = Beams(
            model.tokens.astype(np.int64), beams, attributes["eos_token_id"],
            attributes["pad_token_id"], float(scalar(length_penalty, 1.0)), bool(early_stopping),
        )  # fmt: skip
        limit = int(scalar(max_length))
        history = _follow(model, rules, search, limit, attributes["vocab_size"])
        sequences, scores = search.best(returned, limit)
        dtype = np.float32 if length_penalty is None else length_penalty.dtype
        return sequences, scores.astype(dtype), history.astype(dtype)


def _follow(
    model: LanguageModel, rules: Rules, search: Beams, limit: int, vocab_size: int
) -> Array:
    """Run a beam search to its end; returns the scores of all tokens at every step."""
    steps: list[Array] = []
    first, prompt = True, search.sequences.shape[1]
    while search.sequences.shape[1] < limit:
        logits = _logits(model, vocab_size)
        shifted = logits - logits.max(1, keepdims=True)
        scores = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        scores = rules.apply(scores, search.sequences, first=first)
        total = scores + search.scores.reshape(-1, 1)
        steps.append(total.reshape(search.batch, search.beams, -1))
        chosen, sources = search.advance(total)
        if search.done.all():
            break
        model.feed(chosen, sources)
        first = False
    vocabulary = steps[0].shape[-1] if steps else max(vocab_size, 0)
    history = np.zeros((limit - prompt, search.batch, search.beams, vocabulary), np.float32)
    if steps:
        history[: len(steps)] = np.stack(steps)
    return history
