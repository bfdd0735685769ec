"""Every exception this package raises, in one hierarchy.

A message says what is wrong, where (file, byte offset, field path, node), and what to do about it.
"""


class SardonyxError(Exception):
    """Root of all errors raised by sardonyx.

    >>> try:
    ...     raise FormatError("the file ends early", where="byte 17", hint="download it again")
    ... except SardonyxError as error:
    ...     print(error)
    the file ends early (at byte 17); download it again
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        text = what
        if where:
            text += f" (at {where})"
        if hint:
            text += f"; {hint}"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint, self.__dict__)


def _rebuild(
    kind: type[SardonyxError], what: str, where: str, hint: str, state: dict[str, object]
) -> SardonyxError:
    error = kind.__new__(kind)
    SardonyxError.__init__(error, what, where=where, hint=hint)
    error.__dict__.update(state)
    return error


class FormatError(SardonyxError):
    """The bytes are not a well-formed ONNX message."""


class TextError(FormatError):
    """The text is not in ONNX's textual syntax."""


class ExternalDataError(FormatError):
    """Weights outside the model file are missing, unsafe to read, or of the wrong size."""


class TensorError(SardonyxError):
    """A tensor's dimensions, element type and data do not fit together."""


class GraphError(SardonyxError):
    """A change would break the graph, or its structure is already broken."""


class SaveError(SardonyxError):
    """The model cannot be written as asked."""


class CheckError(SardonyxError):
    """The model breaks rules of the ONNX specification; `findings` lists all of them."""

    def __init__(
        self, what: str, *, findings: tuple[object, ...] = (), where: str = "", hint: str = ""
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.findings = findings


class InferenceError(SardonyxError):
    """Types or shapes contradict each other."""


class ConversionError(SardonyxError):
    """A model cannot be expressed at the version asked for."""


class UnlistedTypeError(ConversionError):
    """An element type is not among those that an operator takes at the version asked for."""


class InputError(SardonyxError):
    """What was fed to a model does not fit its inputs."""


class UnsupportedError(SardonyxError):
    """The model uses an operator, domain, version or type that is not known."""


class EvaluationError(SardonyxError):
    """An operator failed while the model ran."""


class AccessError(EvaluationError):
    """A run that was checked touched or used memory that it must not: a bug in a kernel."""


class CancelledError(EvaluationError):
    """Somebody asked for a stop, and it came."""


class WorkLimitError(EvaluationError):
    """A run would take longer than its session allows."""


class ResourceError(SardonyxError):
    """The system did not give what was needed: memory, a thread, a file, a port."""


class OutOfMemoryError(ResourceError, MemoryError):
    """There is less memory than this needs; a `MemoryError` too."""


class ChangedFileError(FormatError):
    """A file is not what it was when it was opened: its numbers cannot be had any more."""


class InternalError(SardonyxError):
    """A defect of this package: something failed inside that no error was made for."""
