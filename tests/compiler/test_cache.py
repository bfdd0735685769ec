"""The cache: found again, shared, made room in, never wrong and never somebody else's."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler import cache as cache_module
from sardonyx.compiler import private_folder
from sardonyx.compiler.cache import Cache
from sardonyx.compiler.image import Image, Wanted
from sardonyx.compiler.program import compile_model
from sardonyx.ops.catalog import standard
from sardonyx.ops.operator import Operator

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
X = np.array([1.0, -2.0], np.float32)


def model(scale: float = 2.0) -> sx.Model:
    return sx.load_text(
        HEAD + f"g (float[n] x) => (float[n] y) <float[1] w = {{{scale}}}>"
        " { a = Mul(x, w) y = Relu(a) }"
    )


def image(size: int) -> Wanted:
    """Something to keep that takes about as many bytes."""
    return Wanted("made up", (), (), (), (np.zeros(size, np.uint8),))


def images(cache: Cache) -> list[Path]:
    return sorted(cache.folder.glob("*.image"))


def compiled(cache: Cache, scale: float = 2.0) -> list[float]:
    return compile_model(model(scale), threads=1, cache=cache).run({"x": X})[0].tolist()  # type: ignore[no-any-return]


def test_models_are_told_apart_by_content(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert compiled(cache) == [2.0, 0.0]
    assert compiled(cache) == [2.0, 0.0]
    assert len(images(cache)) == 1
    assert compiled(cache, 3.0) == [3.0, 0.0]
    assert len(images(cache)) == 2


def test_targets_have_images_of_their_own(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    compile_model(model(), threads=1, cache=cache)
    compile_model(model(), threads=2, cache=cache)
    compile_model(model(), threads=1, cache=cache, target="generic")
    assert len(images(cache)) == 2


def test_models_with_own_operators_are_not_kept(tmp_path: Path) -> None:
    class Relu(Operator):
        """Another Relu."""

        signatures = ("1(X: T) -> Y: T; T: floats",)
        reference = np.negative

    cache = Cache(tmp_path / "cache")
    catalog = dict(standard()) | {("", "Relu"): Relu}
    compile_model(model(), threads=1, cache=cache, catalog=catalog)
    assert images(cache) == []


@pytest.mark.parametrize("how", ["short", "empty", "flipped", "constants", "note", "nothing left"])
def test_damaged_entries_are_made_again(how: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    compiled(cache)
    (path,) = images(cache)
    note = path.with_suffix(".note")
    whole = path.read_bytes()
    place = {"flipped": 200, "constants": len(whole) - 60}.get(how, 0)
    match how:
        case "short":
            path.write_bytes(whole[: len(whole) // 2])
        case "empty":
            path.write_bytes(b"")
        case "note":
            note.write_bytes(b"\x00{")
        case "nothing left":
            path.unlink()
        case _:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    assert compiled(cache) == [2.0, 0.0]
    assert path.read_bytes() == whole
    assert compiled(cache) == [2.0, 0.0]


def test_images_that_others_could_have_written_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = Cache(tmp_path / "cache")
    compiled(cache)
    (path,) = images(cache)
    key = path.stem
    assert isinstance(cache.find(key), Image)
    path.chmod(0o666)
    assert cache.find(key) is None
    path.chmod(0o600)
    moved = path.rename(tmp_path / "elsewhere")
    path.symlink_to(moved)
    assert cache.find(key) is None
    path.unlink()
    cache.folder.chmod(0o777)
    assert compiled(cache) == [2.0, 0.0]
    assert images(cache) == [] and "others may write to it" in caplog.text
    cache.folder.chmod(0o700)
    linked = tmp_path / "linked"
    linked.symlink_to(cache.folder)
    assert compiled(Cache(linked)) == [2.0, 0.0]
    assert images(cache) == [] and "is not a folder" in caplog.text


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    compiled(cache)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.problem() == "it belongs to another user"
    assert cache.find(images(cache)[0].stem) is None


def test_a_folder_that_cannot_be_made_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    assert compiled(Cache(tmp_path / "file" / "cache")) == [2.0, 0.0]
    assert "is not used" in caplog.text


def test_the_longest_unused_make_room(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=100_000)
    for number in range(4):
        cache.get(f"{number:064x}", lambda: image(20_000))
        os.utime(cache.folder / f"{number:064x}.note", (number, number))
    cache.find(f"{0:064x}")
    cache.get(f"{4:064x}", lambda: image(20_000))
    assert sorted(int(entry.key, 16) for entry in cache.entries()) == [0, 2, 3, 4]
    assert sum(entry.size for entry in cache.entries()) <= 100_000
    assert cache.entries()[0].model == "made up"
    cache.get(f"{5:064x}", lambda: image(200_000))
    assert 5 not in {int(entry.key, 16) for entry in cache.entries()}
    assert cache.clear() > 80_000 and cache.entries() == []


def test_what_is_needed_twice_at_once_is_made_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    made = []

    def make() -> Wanted:
        made.append(1)
        time.sleep(0.2)
        return image(10)

    threads = [threading.Thread(target=cache.get, args=("0" * 64, make)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_files_are_known_again_unless_they_change(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    path, weights = tmp_path / "model.onnx", tmp_path / "weights.bin"
    path.write_bytes(b"model")
    weights.write_bytes(b"weights")
    old = time.time() - 100
    os.utime(path, (old, old))
    os.utime(weights, (old, old))
    asked = []

    def others() -> list[Path]:
        asked.append(1)
        return [weights]

    first = cache.digest_files(path, others)[0]
    assert cache.digest_files(path, others)[0] == first and len(asked) == 1
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, (old, old))
    second = cache.digest_files(path, others)[0]
    assert second != first and len(asked) == 2
    weights.write_bytes(b"weights")
    assert cache.digest_files(path, others)[0] == first
    path.write_bytes(b"another")
    assert cache.digest_files(path, others)[0] not in (first, second)


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from sardonyx.compiler import cache as cache_module
from sardonyx.compiler import private_folder
from sardonyx.compiler.cache import Cache
from sardonyx.compiler.image import Wanted
constants = tuple(np.full(1 << 20, number, np.int64) for number in range(4))
print("ready", flush=True)
image = Cache(Path(sys.argv[1])).get("0" * 64, lambda: Wanted("m", (), (), (), constants))
assert all((a == b).all() for a, b in zip(image.constants, constants, strict=True))
print("done", flush=True)
"""


def start(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed_while_writing(times: int, folder: Path) -> None:
    """Kill processes at moments spread over all that they do; the next one must succeed."""
    process = start(folder)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    ready = time.monotonic()
    assert process.wait(timeout=120) == 0
    whole = time.monotonic() - ready
    for number in range(times):
        Cache(folder).clear()
        process = start(folder)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(whole * (number + 0.5) / times)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
        process.stdout.close()
        following = start(folder)
        assert following.communicate(timeout=120)[0] == "ready\ndone\n"


def test_a_process_that_is_killed_leaves_nothing_wrong(tmp_path: Path) -> None:
    killed_while_writing(10, tmp_path / "cache")


@pytest.mark.slow
def test_processes_that_are_killed_at_a_hundred_moments(tmp_path: Path) -> None:
    killed_while_writing(100, tmp_path / "cache")


def test_processes_that_start_together_share_one_image(tmp_path: Path) -> None:
    processes = [start(tmp_path / "cache") for _ in range(3)]
    for process in processes:
        assert process.communicate(timeout=120)[0] == "ready\ndone\n"
    assert len(images(Cache(tmp_path / "cache"))) == 1


def test_a_process_that_was_stopped_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        assert compiled(Cache(folder)) == [2.0, 0.0]
        assert time.monotonic() - begin < 100
        assert len(images(Cache(folder))) == 1
    finally:
        process.kill()
        process.communicate()


HOLDING = """
import sys, time
from pathlib import Path
from sardonyx.compiler.cache import LOCKS
from sardonyx.compiler.private_folder import PrivateFolder, beating
folder = PrivateFolder(Path(sys.argv[1]))
assert not folder.problem()
locks = [folder.lock(f"{number:02d}") for number in range(LOCKS)]
with beating(locks[0]), beating(locks[1]):
    print("held", flush=True)
    time.sleep(1000)
"""


def test_a_process_that_gives_signs_of_life_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "LONGEST_SILENCE", 1.0)
    monkeypatch.setattr(private_folder, "BEAT", 0.05)
    cache, other = Cache(tmp_path / "cache"), Cache(tmp_path / "cache")
    key, order = "0" * 40, []
    begun = threading.Event()

    def make() -> Wanted:
        begun.set()
        time.sleep(2.5)
        order.append("made")
        return image(10)

    thread = threading.Thread(target=cache.get, args=(key, make))
    thread.start()
    assert begun.wait(60)
    found = other.get(key, lambda: order.append("made again"))  # type: ignore[arg-type,return-value]
    thread.join()
    assert isinstance(found, Wanted) and order == ["made"]
