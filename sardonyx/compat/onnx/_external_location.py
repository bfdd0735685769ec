"""Where onnx's checker accepts external data: a plain file of its own inside the model's folder."""

import os
import stat

from sardonyx.compat.onnx._errors import ValidationError


def check_location(folder: str, location: str, tensor_name: str) -> None:
    """Raise ValidationError unless `location` names such a file in `folder`."""
    what = f"external data of tensor {tensor_name!r}"
    if not location:
        raise ValidationError(f"{what} has an empty location; name the file")
    if os.path.isabs(location):
        raise ValidationError(f"{what} is at the absolute path {location!r}; make it relative")
    relative = os.path.normpath(location)
    if ".." in relative or "\0" in location:
        raise ValidationError(f"{what} is at {location!r}, which may lie outside {folder!r}")
    if location.endswith(os.sep):
        raise ValidationError(f"{what} is at {location!r}, which is a folder")
    path = os.path.join(folder, relative)
    base = os.path.realpath(folder) if folder else ""
    if os.path.islink(path):
        raise ValidationError(f"{what} is at {path!r}, which is a link; copy the file there")
    if base and not _is_inside(os.path.realpath(path), base):
        raise ValidationError(f"{what} is at {path!r}, which lies outside {folder!r}")
    try:
        status = os.stat(path)
    except OSError as error:
        raise ValidationError(f"{what} cannot be found at {path!r}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ValidationError(f"{what} is at {path!r}, which is not a plain file")
    if status.st_nlink > 1:
        raise ValidationError(f"{what} is at {path!r}, which has several hard links; copy it")


def _is_inside(path: str, base: str) -> bool:
    return path == base or path.startswith(base.rstrip(os.sep) + os.sep)
