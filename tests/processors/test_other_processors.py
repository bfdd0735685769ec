"""What tests expect of quantized products holds on processors without instructions for bytes."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import which

import numpy as np
import onnxruntime
import pytest

from tests.ops.exact_products import whole
from tests.ops.one_node import one_node
from tests.processors.avx2_only import without_later_flags
from tests.processors.saturating_peer import SaturatingSession

ROOT = Path(__file__).parents[2]
QUANTIZED = [
    "tests/ops/test_quantized_product.py", "tests/ops/test_ms_product.py",
    "tests/ops/test_ms_image.py", "tests/ops/test_ms_attention.py",
    "tests/ops/test_ms_recurrent.py",
]  # fmt: skip
WORDS = "quantize or integer or bytes or qlinear or gemm"
EMULATOR = which("qemu-x86_64")
PROCESSOR = "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm"
"""One with AVX2 and no more; what the emulator lacks is switched off, so that it says nothing."""
PAIRS = {"a": np.full((2, 8), 255, np.uint8), "b": np.full((8, 3), 127, np.int8)}
PRODUCT = one_node("MatMulInteger", PAIRS, ["y"], opset=10)


def test_flags_end_with_avx2() -> None:
    told = "model name : some avx512f\nflags\t: sse2 avx2 avx512f avx512_vnni avx_vnni amx_int8"
    assert without_later_flags(told) == "model name : some avx512f\nflags : sse2 avx2"


def test_the_saturating_peer_is_wrong() -> None:
    options = onnxruntime.SessionOptions()
    (found,) = SaturatingSession(PRODUCT, options).run(None, PAIRS)
    assert (found != whole(PAIRS["a"]) @ whole(PAIRS["b"])).all()
    small = {"a": PAIRS["a"], "b": np.full((8, 3), 60, np.int8)}
    (found,) = SaturatingSession(PRODUCT, options).run(None, small)
    assert (found == whole(small["a"]) @ whole(small["b"])).all()


def passed(command: list[str], **more: str) -> str:
    """What a command says that must succeed."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.slow
def test_no_test_trusts_a_peer_that_saturates() -> None:
    plugin = ["-p", "tests.processors.saturating_peer", "-p", "no:cacheprovider"]
    passed([sys.executable, "-m", "pytest", "-q", *plugin, *QUANTIZED, "-k", WORDS])


@pytest.mark.slow
@pytest.mark.skipif(EMULATOR is None, reason="qemu-x86_64 is not installed (package qemu-user)")
def test_on_an_emulated_processor_without_avx512() -> None:
    assert EMULATOR is not None
    emulated = [EMULATOR, "-cpu", PROCESSOR, os.path.realpath(sys.executable)]
    folders = os.pathsep.join([str(ROOT), sysconfig.get_paths()["purelib"]])
    code = (
        "import numpy, onnxruntime\n"
        "from tests.processors.test_other_processors import PAIRS, PRODUCT\n"
        "print(onnxruntime.InferenceSession(PRODUCT).run(None, PAIRS)[0].max())"
    )
    said = passed([*emulated, "-c", code], PYTHONPATH=folders)
    assert int(said) < 8 * 255 * 127, "the emulated processor multiplies bytes exactly"
    plugin = ["-p", "tests.processors.avx2_only", "-p", "no:cacheprovider"]
    tests = [QUANTIZED[0], "tests/ops/test_ms_image.py", "tests/compiler/test_quantized.py"]
    passed([*emulated, "-m", "pytest", "-q", *plugin, *tests, "-k", WORDS], PYTHONPATH=folders)
