"""Kernels: groups of forms as loops."""
