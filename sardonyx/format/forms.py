"""The forms a model can be written in besides binary: protobuf text, JSON, ONNX text."""

from enum import Enum
from pathlib import Path

from sardonyx.errors import FormatError, SardonyxError
from sardonyx.format.wire import Buffer


class Form(Enum):
    """A way to write a message down."""

    PROTOBUF = "protobuf"
    TEXTPROTO = "textproto"
    JSON = "json"
    ONNXTXT = "onnxtxt"


_SUFFIXES = {
    ".onnx": Form.PROTOBUF,
    ".pb": Form.PROTOBUF,
    ".textproto": Form.TEXTPROTO,
    ".prototxt": Form.TEXTPROTO,
    ".pbtxt": Form.TEXTPROTO,
    ".json": Form.JSON,
    ".onnxjson": Form.JSON,
    ".onnxtxt": Form.ONNXTXT,
    ".onnxtext": Form.ONNXTXT,
}


def form_of(name: str | None, path: Path | None) -> Form:
    """The form called `name`, or the one a path's suffix stands for; binary where nothing is said.

    >>> form_of(None, Path("model.onnxtxt"))
    <Form.ONNXTXT: 'onnxtxt'>
    """
    if name is None:
        return (
            _SUFFIXES.get(path.suffix.lower(), Form.PROTOBUF) if path is not None else Form.PROTOBUF
        )
    try:
        return Form(name)
    except ValueError:
        known = ", ".join(form.value for form in Form)
        raise FormatError(f"there is no format '{name}'", hint=f"known are: {known}") from None


def to_protobuf(content: Buffer, form: Form, message: str, source: str) -> bytes:
    """Text in some form -> the message's binary bytes."""
    from google.protobuf import json_format, text_format

    from sardonyx.format.protos import proto_class

    try:
        text = str(content, "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{source} is not UTF-8 text", where=f"byte {error.start}") from None
    made = proto_class(message)()
    try:
        if form is Form.JSON:
            json_format.Parse(text, made)
        elif form is Form.TEXTPROTO:
            text_format.Parse(text, made)
        else:
            from sardonyx.format.text_parse import parse_model

            made = parse_model(text)
    except SardonyxError:
        raise
    except (json_format.ParseError, text_format.ParseError, ValueError, RecursionError) as error:
        raise FormatError(f"{source} is not valid {form.value}: {error}") from None
    content_bytes: bytes = made.SerializeToString()
    return content_bytes


def from_protobuf(content: bytes, form: Form, message: str) -> str:
    """A message's binary bytes -> text in some form."""
    from google.protobuf import json_format, text_format

    from sardonyx.format.protos import proto_class

    made = proto_class(message).FromString(content)
    if form is Form.JSON:
        return str(json_format.MessageToJson(made, preserving_proto_field_name=True))
    if form is Form.TEXTPROTO:
        return str(text_format.MessageToString(made))
    from sardonyx.format.text_print import to_text

    return to_text(made, exact=True)
