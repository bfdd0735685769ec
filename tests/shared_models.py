"""Real models by strangers, where they are present: found through SARDONYX_TEST_MODELS."""

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("SARDONYX_TEST_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)

needs_models = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"the folder of test models, {FOLDER}, is absent (SARDONYX_TEST_MODELS)",
)


def model_paths() -> list[Path]:
    """The model files, in a fixed order; none where the folder is absent."""
    return sorted(FOLDER.glob("*/model.onnx"))
