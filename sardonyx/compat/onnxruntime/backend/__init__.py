"""onnxruntime's backend interface: `prepare`, `run` and what they support."""

from sardonyx.backend import is_compatible, prepare, run_model, supports_device

run = run_model

__all__ = ["is_compatible", "prepare", "run", "supports_device"]
