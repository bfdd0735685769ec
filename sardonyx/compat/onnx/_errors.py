"""Exceptions that carry onnx's names and bases."""


class ValidationError(Exception):
    """A message, or a file it refers to, breaks the rules of ONNX.

    >>> from sardonyx.compat.onnx._errors import ValidationError
    >>> issubclass(ValidationError, ValueError)
    False
    """


class InferenceError(Exception):
    """Types or shapes contradict each other.

    >>> issubclass(InferenceError, ValueError)
    False
    """
