"""A torch that uses threads of its own beside ours: both give what they give alone."""

import sys
import threading

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(77)

from tests.compiler.sharing import run

left, right = (torch.arange(300 * 300).reshape(300, 300) % size / size for size in (7, 11))
product, expected = left @ right, run(2)
same: list[bool] = []


def multiply() -> None:
    """Run torch's threads."""
    same.extend(bool((left @ right == product).all()) for _ in range(50))


other = threading.Thread(target=multiply)
other.start()
same.extend(run(2) == expected for _ in range(50))
other.join()
same.extend(run(2) == expected and bool((left @ right == product).all()) for _ in range(20))
assert len(same) == 120 and all(same)
