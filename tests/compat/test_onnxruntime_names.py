"""No public name of onnxruntime is missing without a reason; the page that says so is current."""

import inspect

import onnxruntime
import pytest

from sardonyx.compat import onnxruntime as ort
from tests.compat.onnxruntime_table import MODULES, PAGE, page, rows

RELEASE = "1.31"
pytestmark = pytest.mark.skipif(
    not onnxruntime.__version__.startswith(RELEASE), reason=f"onnxruntime {RELEASE} is not there"
)


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_there_or_has_a_reason(module: str) -> None:
    found = list(rows(module))
    assert len(found) > 2
    assert [name for name, here, reason in found if not here and not reason] == []
    assert [name for name, here, reason in found if "." in name and not here] == []


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.compat.onnxruntime_table"


@pytest.mark.parametrize("name", ["InferenceSession", "OrtValue", "IOBinding", "ModelCompiler"])
def test_methods_take_the_same_arguments(name: str) -> None:
    theirs, mine = getattr(onnxruntime, name), getattr(ort, name)
    for method, value in inspect.getmembers(theirs, callable):
        if method.startswith("_"):
            continue
        try:
            formals = list(inspect.signature(value).parameters.values())
        except ValueError:
            continue
        own = inspect.signature(getattr(mine, method)).parameters
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        wanted = [item for item in formals if item.kind not in kinds]
        assert len(own) >= len(wanted), method


def test_values_of_enumerations() -> None:
    for name in ("OrtAllocatorType", "OrtMemType", "OrtDeviceMemoryType", "OrtHardwareDeviceType",
                 "OrtSparseFormat", "OrtExecutionProviderDevicePolicy", "OrtMemoryInfoDeviceType",
                 "GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtDeviceVendorId",
                 "OrtCompileApiFlags"):  # fmt: skip
        theirs, mine = getattr(onnxruntime, name), getattr(ort, name)
        for word, value in theirs.__members__.items():
            assert int(getattr(mine, word).value) == int(value), f"{name}.{word}"
