"""The kernel language: typed loops over buffers, with builder, text form, verifier and meaning."""

from sardonyx.loops.build import dense, kernel
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Kernel
from sardonyx.loops.show import kernel_text
from sardonyx.loops.verify import verify

__all__ = ["Kernel", "dense", "interpret", "kernel", "kernel_text", "verify"]
