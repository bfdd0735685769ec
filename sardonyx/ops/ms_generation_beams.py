"""The bookkeeping of a beam search: sequences that are followed, and those that have ended."""

import numpy as np

from sardonyx.ops.precision import Array

_UNLIKELY = np.float32(-1e9)


class _Ended:
    """The best sequences of one prompt that have come to an end."""

    def __init__(self, room: int, length_penalty: float, *, early_stopping: bool) -> None:
        self.room = room
        self.length_penalty = length_penalty
        self.early_stopping = early_stopping
        self.found: list[tuple[float, Array]] = []

    def add(self, sequence: Array, total: float) -> None:
        """Keep a sequence with the sum of its tokens' scores, if it is among the best."""
        score = self._score(total, len(sequence))
        if len(self.found) == self.room and score <= self.found[-1][0]:
            return
        self.found.append((score, sequence))
        self.found.sort(key=lambda item: -item[0])
        del self.found[self.room :]

    def complete(self, best_total: float, length: int) -> bool:
        """True where nothing that is still followed can be better."""
        if len(self.found) < self.room:
            return False
        return self.early_stopping or self.found[-1][0] >= self._score(best_total, length)

    def _score(self, total: float, length: int) -> float:
        return float(np.float32(total) / np.float32(length) ** np.float32(self.length_penalty))


class Beams:
    """Sequences of several prompts, `beams` for each, and the scores they have so far."""

    def __init__(
        self, sequences: Array, beams: int, eos: int, pad: int, length_penalty: float,
        early_stopping: bool,
    ) -> None:  # fmt: skip
        self.sequences = sequences
        self.beams = beams
        self.batch = len(sequences) // beams
        self.eos = eos
        self.pad = pad
        self.scores = np.full((self.batch, beams), _UNLIKELY, np.float32)
        self.scores[:, 0] = 0
        self.done = np.zeros(self.batch, np.bool_)
        self.ended = [
            _Ended(beams, length_penalty, early_stopping=early_stopping) for _ in range(self.batch)
        ]

    def advance(self, totals: Array) -> tuple[Array, Array]:
        """Continue with the best of B*beams, V totals; returns new tokens, and rows they follow."""
        vocabulary = totals.shape[1]
        flat = totals.reshape(self.batch, -1)
        order = np.argsort(-flat, 1, kind="stable")[:, : 2 * self.beams]
        tokens = np.full((self.batch, self.beams), self.pad, np.int64)
        rows = np.zeros((self.batch, self.beams), np.int64)
        scores = np.zeros((self.batch, self.beams), np.float32)
        for index in range(self.batch):
            if self.done[index]:
                continue
            self._advance_one(index, flat[index], order[index], vocabulary, tokens, rows, scores)
        self.scores = scores
        sources = rows.reshape(-1)
        chosen = tokens.reshape(-1)
        self.sequences = np.concatenate([self.sequences[sources], chosen[:, None]], 1)
        return chosen, sources

    def _advance_one(
        self, index: int, totals: Array, order: Array, vocabulary: int, tokens: Array,
        rows: Array, scores: Array,
    ) -> None:  # fmt: skip
        length, filled = self.sequences.shape[1], 0
        for place, candidate in enumerate(order.tolist()):
            row, token = index * self.beams + candidate // vocabulary, candidate % vocabulary
            if token == self.eos:
                if place < self.beams:
                    self.ended[index].add(self.sequences[row], float(totals[candidate]))
                continue
            tokens[index, filled], rows[index, filled] = token, row
            scores[index, filled] = totals[candidate]
            filled += 1
            if filled == self.beams:
                break
        best = float(totals[order[0]])
        self.done[index] = self.ended[index].complete(best, length)

    def best(self, count: int, length: int) -> tuple[Array, Array]:
        """The best `count` sequences of each prompt, padded to `length`, and their scores."""
        result = np.full((self.batch, count, length), self.pad, np.int32)
        scores = np.zeros((self.batch, count), np.float32)
        for index, ended in enumerate(self.ended):
            if not self.done[index]:
                for beam in range(self.beams):
                    row = self.sequences[index * self.beams + beam]
                    ended.add(row, float(self.scores[index, beam]))
            for place, (score, sequence) in enumerate(ended.found[:count]):
                result[index, place, : len(sequence)] = sequence[:length]
                scores[index, place] = score
        return result, scores
