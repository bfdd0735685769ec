"""Ranks: which horizontal band of a drawing each node lies in."""

from collections.abc import Sequence

Pairs = Sequence[tuple[int, int]]
"""Edges as (source, target)."""

_PASSES = 20
"""How often groups of nodes may move closer to what reads them."""


def forward_edges(count: int, pairs: Pairs) -> list[bool]:
    """Which edges to follow as they are; the others close a cycle and are drawn upward.

    >>> forward_edges(2, [(0, 1), (1, 0)])
    [True, False]
    """
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(pairs):
        leaving[source].append(number)
    forward = [True] * len(pairs)
    state = bytearray(count)
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        path = [(root, iter(leaving[root]))]
        while path:
            node, edges = path[-1]
            index = next(edges, None)
            if index is None:
                state[node] = 2
                path.pop()
                continue
            target = pairs[index][1]
            if state[target] == 1:
                forward[index] = False
            elif state[target] == 0:
                state[target] = 1
                path.append((target, iter(leaving[target])))
    return forward


def assign_ranks(count: int, pairs: Pairs) -> list[int]:
    """The rank of each node of an acyclic graph: below all it reads, and near what reads it.

    >>> assign_ranks(4, [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    above, below = _neighbours(count, pairs)
    order = _sorted(above, below)
    ranks = _depths(order, above)
    for node in reversed(order):
        if len(below[node]) > len(above[node]):
            ranks[node] = min(ranks[item] for item in below[node]) - 1
    for _ in range(_PASSES):
        if not _lower_groups(ranks, pairs):
            break
    return ranks


def loose_edges(count: int, pairs: Pairs) -> set[tuple[int, int]]:
    """Edges of an acyclic graph that join a twig to the trunk, and may bend for its sake.

    A twig begins with sources of its own, is read in one place, and is shorter than another way to
    the same node.

    >>> loose_edges(4, [(0, 1), (1, 2), (3, 2)])
    {(3, 2)}
    """
    above, below = _neighbours(count, pairs)
    order = _sorted(above, below)
    depths = _depths(order, above)
    twig = [False] * count
    found: set[tuple[int, int]] = set()
    for node in order:
        twig[node] = all(twig[item] and len(below[item]) == 1 for item in above[node])
        deepest = max((depths[item] for item in above[node]), default=0)
        found.update((item, node) for item in above[node] if twig[item] and depths[item] < deepest)
    return found


def _neighbours(count: int, pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        above[target].append(source)
        below[source].append(target)
    return above, below


def _depths(order: list[int], above: list[list[int]]) -> list[int]:
    """How many nodes the longest way to each node has."""
    depths = [0] * len(above)
    for node in order:
        depths[node] = max((depths[item] + 1 for item in above[node]), default=0)
    return depths


def _lower_groups(ranks: list[int], pairs: Pairs) -> bool:
    """Move groups of nodes that lie close together down to their readers, where that is shorter.

    A group moves as a whole, and never further than its nearest reader allows.
    """
    group = _close_groups(ranks, pairs)
    slack: dict[int, int] = {}
    weight: dict[int, int] = {}
    for source, target in pairs:
        a, b = group[source], group[target]
        if a != b:
            slack[a] = min(slack.get(a, ranks[target]), ranks[target] - ranks[source] - 1)
            weight[a] = weight.get(a, 0) + 1
            weight[b] = weight.get(b, 0) - 1
    moves = {item: room for item, room in slack.items() if room > 0 and weight[item] > 0}
    if moves:
        for node, item in enumerate(group):
            ranks[node] += moves.get(item, 0)
    return bool(moves)


def _close_groups(ranks: list[int], pairs: Pairs) -> list[int]:
    """The number of the group each node is in: nodes joined by edges from one rank to the next."""
    parent = list(range(len(ranks)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target in pairs:
        if ranks[target] - ranks[source] == 1:
            parent[root(target)] = root(source)
    return [root(node) for node in range(len(ranks))]


def _sorted(above: list[list[int]], below: list[list[int]]) -> list[int]:
    """Nodes in an order in which each comes after those above it."""
    missing = [len(items) for items in above]
    ready = [node for node, number in enumerate(missing) if number == 0]
    for node in ready:
        for item in below[node]:
            missing[item] -= 1
            if missing[item] == 0:
                ready.append(item)
    return ready
