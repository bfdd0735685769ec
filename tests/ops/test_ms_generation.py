"""Greedy search, sampling and beam search, with small models as subgraphs."""

from functools import cache

import numpy as np
import onnxruntime
import pytest

from sardonyx.errors import EvaluationError, UnsupportedError
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import Draw, read
from tests.ops.generation_models import (
    FLOAT,
    HIDDEN,
    INT,
    WORDS,
    Weights,
    decoder,
    decoder_only,
    encoder,
    model_of,
    whisper_decoder,
    whisper_encoder,
)

PROMPT = np.array([[5, 9, 13, 4], [21, 7, 8, 26]], np.int32)
PADDED = np.array([[0, 0, 13, 4], [21, 0, 8, 26]], np.int32)
MASK = np.array([[0, 1, 1, 1], [1, 1, 1, 1]], np.int32)
ALL = {"sequences": INT, "sequences_scores": FLOAT, "scores": FLOAT}


@cache
def weights():
    return Weights(3)


def whole(number):
    return np.array([number], np.int32)


def real(number):
    return np.array([number], np.float32)


def run_here(proto, feeds, seed=0):
    given = {name: item for name, item in feeds.items() if item is not None}
    return Evaluator(read(proto), seed=seed).run(None, given)


def run_there(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {name: item for name, item in feeds.items() if item is not None})


def check(proto, feeds):
    found, expected = run_here(proto, feeds), run_there(proto, feeds)
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)
    return found


def greedy(op="GreedySearch", prompt=PROMPT, first=False, outputs=None, more=None, **options):
    feeds = {
        "input_ids": prompt, "max_length": whole(options.pop("max_length", 10)),
        "min_length": whole(options.pop("min_length", 0)),
        "repetition_penalty": real(options.pop("penalty", 1.0)),
        "vocab_mask": options.pop("vocab_mask", None),
        "prefix_vocab_mask": options.pop("prefix_vocab_mask", None),
        "attention_mask": options.pop("mask", None), **(more or {}),
    }  # fmt: skip
    attributes = {"eos_token_id": 1, "pad_token_id": 0, **options}
    attributes["decoder"] = decoder_only(weights(), "decoder_")
    if first:
        attributes["init_decoder"] = decoder_only(weights(), "first_")
    return model_of(op, feeds, outputs or {"sequences": INT}, attributes), feeds


def ending(prompt=PROMPT):
    """A token that greedy search comes to after a while."""
    proto, feeds = greedy(prompt=prompt)
    return int(run_here(proto, feeds)[0][0, 6])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("prompt", [PROMPT, PADDED, PROMPT[:, :1]], ids=["full", "padded", "one"])
def test_greedy_search(first, prompt):
    check(*greedy(first=first, prompt=prompt))


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": 1.5},
        {"penalty": 0.7},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2},
        {"mask": MASK},
        {"max_length": 5},
        {"min_length": 8, "penalty": 1.3},
    ],
    ids=str,
)
def test_greedy_search_by_rules(options):
    check(*greedy(**options))


def test_greedy_search_ends():
    """What onnxruntime leaves behind the end of the last sequence is not compared."""
    proto, feeds = greedy(eos_token_id=ending(), pad_token_id=2)
    (found,), (expected,) = run_here(proto, feeds), run_there(proto, feeds)
    last = (found == 2).all(0).argmax()
    assert 4 < last < 9
    np.testing.assert_array_equal(found[:, : last + 1], expected[:, : last + 1])
    assert (found[:, last:] == 2).all()


def test_greedy_search_does_not_end_too_early():
    check(*greedy(eos_token_id=ending(), pad_token_id=2, min_length=10))


def test_greedy_search_with_masked_words():
    draw = Draw()
    check(*greedy(vocab_mask=draw.whole(0, 2, WORDS)))
    check(*greedy(prefix_vocab_mask=draw.whole(0, 2, 2, WORDS)))


def test_greedy_search_is_inferred():
    proto, _ = greedy()
    model = read(proto)
    facts = infer_facts(model, strict=True)
    assert str(facts[model.graph.outputs[0]]).startswith("int32[2,")


def sampling(seed, **options):
    more = {"presence_mask": options.pop("presence_mask", None), "seed": whole(seed)}
    return greedy("Sampling", max_length=5, more=more, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"top_p": 0.001},
        {"top_p": 0.5},
        {"top_p": 0.4, "temperature": 0.5},
        {"top_p": 0.001, "min_tokens_to_keep": 3},
    ],
    ids=str,
)
def test_sampling_draws_from_the_same_words(options):
    found, expected = set(), set()
    for seed in range(60):
        proto, feeds = sampling(seed, **options)
        found |= set(enumerate(run_here(proto, feeds)[0][:, 4].tolist()))
        expected |= set(enumerate(run_there(proto, feeds)[0][:, 4].tolist()))
    assert len(found ^ expected) <= len(expected) // 4


def test_sampling_is_repeatable_by_its_seed():
    proto, feeds = sampling(5, top_p=0.9)
    (left,), (right,) = run_here(proto, feeds, seed=1), run_here(proto, feeds, seed=2)
    np.testing.assert_array_equal(left, right)


def test_sampling_gives_out_filtered_scores():
    outputs = {"sequences": INT, "filtered_logits": FLOAT}
    proto, feeds = sampling(5, top_p=0.5, filter_value=-7.5, outputs=outputs)
    sequences, scores = run_here(proto, feeds)
    assert scores.shape == (2, WORDS)
    assert (scores == -7.5).any()
    assert (scores[[0, 1], sequences[:, 4]] != -7.5).all()


def beam_feeds(prompt, options):
    return {
        "input_ids": prompt, "max_length": whole(options.pop("max_length", 10)),
        "min_length": whole(options.pop("min_length", 0)),
        "num_beams": whole(options.pop("beams", 3)),
        "num_return_sequences": whole(options.pop("returned", 2)),
        "length_penalty": real(options.pop("length_penalty", 1.0)),
        "repetition_penalty": real(options.pop("penalty", 1.0)),
        "vocab_mask": options.pop("vocab_mask", None),
        "prefix_vocab_mask": options.pop("prefix_vocab_mask", None),
        "attention_mask": options.pop("mask", None),
    }  # fmt: skip


def beams(prompt=PROMPT, first=False, outputs=None, **options):
    feeds = beam_feeds(prompt, options)
    attributes = {"eos_token_id": 1, "pad_token_id": 0, **options}
    attributes["decoder"] = decoder_only(weights(), "decoder_")
    if first:
        attributes["init_decoder"] = decoder_only(weights(), "first_")
    return model_of("BeamSearch", feeds, outputs or ALL, attributes), feeds


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("prompt", [PROMPT, PADDED, PROMPT[:, :1]], ids=["full", "padded", "one"])
def test_beam_search(first, prompt):
    check(*beams(first=first, prompt=prompt))


@pytest.mark.parametrize(
    "options",
    [
        {"beams": 1, "returned": 1},
        {"beams": 4, "returned": 4, "length_penalty": 2.0},
        {"length_penalty": 0.0},
        {"penalty": 1.5},
        {"no_repeat_ngram_size": 2},
        {"mask": MASK},
        {"max_length": 5},
        {"outputs": {"sequences": INT}},
        {"outputs": {"sequences": INT, "sequences_scores": FLOAT}},
    ],
    ids=str,
)
def test_beam_search_by_rules(options):
    check(*beams(**options))


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("min_length", [0, 8])
def test_beam_search_ends(early, penalty, min_length):
    options = {"early_stopping": early, "length_penalty": penalty, "min_length": min_length}
    check(*beams(beams=4, returned=3, eos_token_id=ending(), pad_token_id=2, **options))


def test_beam_search_with_masked_words():
    draw = Draw()
    check(*beams(vocab_mask=draw.whole(0, 2, WORDS)))
    check(*beams(prefix_vocab_mask=draw.whole(0, 2, 2, WORDS)))


def test_beam_search_is_inferred():
    proto, _ = beams(vocab_size=WORDS)
    model = read(proto)
    facts = infer_facts(model, strict=True)
    ranks = [facts[value].rank for value in model.graph.outputs]
    assert ranks == [3, 2, 4]
    assert facts[model.graph.outputs[2]].shape[-1] == WORDS


def translation(source, with_first_step=True, hidden_states=True, **options):
    feeds = beam_feeds(source, options)
    attributes = {
        "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 2, "model_type": 1,
        "encoder": encoder(weights(), with_first_step=with_first_step),
        "decoder": decoder(weights(), hidden_states=hidden_states), **options,
    }  # fmt: skip
    return model_of("BeamSearch", feeds, ALL, attributes), feeds


TRAILING = np.array([[5, 9, 13, 0], [0, 7, 8, 26]], np.int32)


@pytest.mark.parametrize("graphs", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("source", [PROMPT, TRAILING], ids=["full", "padded"])
def test_beam_search_behind_an_encoder(graphs, source):
    check(*translation(source, *graphs))


@pytest.mark.parametrize(
    "options",
    [
        {"mask": MASK},
        {"beams": 4, "returned": 4, "early_stopping": 1, "eos_token_id": 7},
        {"length_penalty": 2.0, "penalty": 1.2, "eos_token_id": 9},
    ],
    ids=str,
)
def test_beam_search_behind_an_encoder_by_rules(options):
    check(*translation(PROMPT, **options))


@pytest.mark.parametrize("columns", [1, "all"])
@pytest.mark.parametrize("hidden_states", [False, True])
@pytest.mark.parametrize("start", [None, [[3], [3]], [[3, 8, 5], [3, 4, 6]]], ids=str)
def test_beam_search_behind_features(columns, hidden_states, start):
    feeds = beam_feeds(Draw().floats(2, HIDDEN, 5), {})
    if start is not None:
        feeds["decoder_input_ids"] = np.array(start, np.int32)
    attributes = {
        "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 2, "model_type": 2,
        "encoder": whisper_encoder(weights()),
        "decoder": whisper_decoder(weights(), hidden_states=hidden_states, columns=columns),
    }  # fmt: skip
    check(model_of("BeamSearch", feeds, ALL, attributes), feeds)


def subgraph(proto, name):
    """A subgraph of the only node."""
    return next(item.g for item in proto.graph.node[0].attribute if item.name == name)


def rename(graph, names):
    """Give values of a subgraph other names."""
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for item in (*graph.input, *graph.output):
        item.name = names.get(item.name, item.name)


KEYS = [f"{kind}_{side}_0" for side in ("self", "cross") for kind in ("key", "value")]
OTHERWISE = {f"past_{name}": f"kv_{place}" for place, name in enumerate(KEYS)}
SWAPPED = {"past_key_self_0": "past_value_self_0", "past_value_self_0": "past_key_self_0"}


@pytest.mark.parametrize("names", [OTHERWISE, SWAPPED], ids=["others", "swapped"])
@pytest.mark.parametrize("graphs", [(True, False), (True, True)])
def test_keys_and_values_are_known_by_their_order(names, graphs):
    proto, feeds = translation(PROMPT, *graphs)
    expected = run_there(proto, feeds)
    rename(subgraph(proto, "decoder"), names)
    for left, right in zip(check(proto, feeds), expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


def test_keys_and_values_of_a_decoder_alone_are_known_by_their_order():
    proto, feeds = beams()
    expected = run_here(proto, feeds)
    rename(subgraph(proto, "decoder"), {"past_0": "kept", "present_0": "grown"})
    for left, right in zip(run_here(proto, feeds), expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("name", "place"), [("decoder", 4), ("encoder", 3)])
def test_keys_and_values_that_do_not_match_are_refused(name, place):
    proto, feeds = translation(PROMPT, True, False)
    graph = subgraph(proto, name)
    del (graph.input if name == "decoder" else graph.output)[place]
    with pytest.raises(EvaluationError, match="keys and values"):
        run_here(proto, feeds)


def test_a_decoder_that_declares_a_sequence_is_fed_all_tokens():
    proto, feeds = translation(PROMPT, True, False)
    graph = subgraph(proto, "decoder")
    graph.input[0].type.tensor_type.shape.dim[1].dim_param = "S"
    graph.output[0].type.tensor_type.shape.dim[1].dim_param = "S"
    check(proto, feeds)


def test_what_is_missing_is_named():
    proto, feeds = translation(PROMPT, decoder_start_token_id=-1)
    with pytest.raises(EvaluationError, match="decoder_start_token_id"):
        run_here(proto, feeds)
    proto, feeds = beams(beams=2, returned=3)
    with pytest.raises(EvaluationError, match="3 sequences cannot be had from 2 beams"):
        run_here(proto, feeds)
    proto, feeds = greedy()
    graph = next(item.g for item in proto.graph.node[0].attribute if item.name == "decoder")
    for node in graph.node:
        node.input[:] = ["tokens" if name == "input_ids" else name for name in node.input]
    graph.input[0].name = "tokens"
    with pytest.raises(UnsupportedError, match="'tokens' has no known meaning"):
        run_here(proto, feeds)
