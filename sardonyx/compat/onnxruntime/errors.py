"""The exceptions of onnxruntime's native module; each is also one of ours."""

from sardonyx.errors import (
    CancelledError,
    CheckError,
    EvaluationError,
    FormatError,
    GraphError,
    InferenceError,
    InputError,
    SardonyxError,
    SaveError,
    TensorError,
    UnsupportedError,
)


class Fail(SardonyxError):
    """Something failed that has no class of its own."""


class InvalidArgument(InputError, ValueError):
    """What was passed does not fit the model. Where an input is missing, onnxruntime raises a
    ValueError, so it is one too."""


class NoSuchFile(FormatError):
    """The model's file is not there."""


class NoModel(SardonyxError):
    """There is no model."""


class EngineError(SardonyxError):
    """The engine failed."""


class RuntimeException(EvaluationError):
    """An operator failed while the model ran."""


class InvalidProtobuf(FormatError):
    """The bytes are no model."""


class ModelLoaded(SardonyxError):
    """A model is loaded already."""


class NotImplemented(UnsupportedError):
    """The model needs something that is not known."""


class InvalidGraph(CheckError):
    """The graph breaks the rules."""


class EPFail(SardonyxError):
    """An execution provider failed."""


class ModelLoadCanceled(SardonyxError):
    """Loading was cancelled."""


class ModelRequiresCompilation(SardonyxError):
    """The model must be compiled first."""


class NotFound(SardonyxError):
    """Something is not there."""


class DeviceReset(SardonyxError):
    """A device was reset."""


_CLASSES: tuple[tuple[type[SardonyxError], type[SardonyxError]], ...] = (
    (InputError, InvalidArgument),
    (CancelledError, Fail),
    (UnsupportedError, NotImplemented),
    (CheckError, InvalidGraph),
    (GraphError, InvalidGraph),
    (InferenceError, InvalidGraph),
    (TensorError, InvalidGraph),
    (EvaluationError, RuntimeException),
    (FormatError, InvalidProtobuf),
    (SaveError, Fail),
    (SardonyxError, Fail),
)


def translated(error: SardonyxError) -> SardonyxError:
    """The same error in the class that users of onnxruntime catch.

    >>> type(translated(InputError("input 'x' is missing"))).__name__
    'InvalidArgument'
    """
    wanted = next(target for source, target in _CLASSES if isinstance(error, source))
    if isinstance(error, FormatError) and "No such file" in error.what:
        wanted = NoSuchFile
    return wanted(error.what, where=error.where, hint=error.hint)
