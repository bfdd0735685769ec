"""Operators: one class each, with its signatures, inference, meaning and versions."""
