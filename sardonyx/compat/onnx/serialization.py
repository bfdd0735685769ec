"""Messages to and from bytes and text, by format name or file suffix."""

import warnings
from collections.abc import Collection
from typing import Any, Protocol

from google.protobuf import json_format, text_format

from sardonyx.compat.onnx.onnx_ml_pb2 import FunctionProto, GraphProto, ModelProto, NodeProto

__all__ = ["registry"]

_LARGEST_MESSAGE = 2**31 - 1


class ProtoSerializer(Protocol):
    """Something that turns messages into one format and back.

    >>> from sardonyx.compat.onnx import serialization
    >>> serialization.registry.get("json").file_extensions >= {".json"}
    True
    """

    supported_format: str
    file_extensions: Collection[str]

    def serialize_proto(self, proto: Any) -> Any:
        """The message in this format."""

    def deserialize_proto(self, serialized: Any, proto: Any) -> Any:
        """The message that `serialized` holds; `proto` is an empty one of its kind."""


class _Registry:
    """Serializers by format name and by file suffix."""

    def __init__(self) -> None:
        self._serializers: dict[str, ProtoSerializer] = {}
        self._format_of_suffix: dict[str, str] = {}

    def register(self, serializer: ProtoSerializer) -> None:
        """Add a serializer, in place of an older one of its format or suffixes."""
        self._serializers[serializer.supported_format] = serializer
        for suffix in serializer.file_extensions:
            self._format_of_suffix[suffix] = serializer.supported_format

    def get(self, fmt: str) -> ProtoSerializer:
        """The serializer of a format; ValueError if there is none."""
        if fmt not in self._serializers:
            known = ", ".join(self._serializers)
            raise ValueError(f"format {fmt!r} is unknown; known are {known}")
        return self._serializers[fmt]

    def get_format_from_file_extension(self, file_extension: str) -> str | None:
        """The format of files with a suffix, written with its dot; None if unknown."""
        return self._format_of_suffix.get(file_extension)


def _text(serialized: bytes | str) -> str:
    if not isinstance(serialized, bytes | str):
        raise TypeError(f"text or UTF-8 bytes are needed, not a {type(serialized).__name__}")
    return serialized.decode("utf-8") if isinstance(serialized, bytes) else serialized


class _ProtobufSerializer(ProtoSerializer):
    """The binary format of ONNX files."""

    supported_format = "protobuf"
    file_extensions = frozenset({".onnx", ".pb"})

    def serialize_proto(self, proto: Any) -> bytes:
        """The message as bytes; ValueError beyond 2 GB."""
        if not callable(getattr(proto, "SerializeToString", None)):
            raise TypeError(f"a protobuf message is needed, not a {type(proto).__name__}")
        try:
            serialized: bytes = proto.SerializeToString()
        except ValueError as error:
            if proto.ByteSize() <= _LARGEST_MESSAGE:
                raise
            raise ValueError(
                "a message cannot be larger than 2 GB: save with save_as_external_data=True"
            ) from error
        return serialized

    def deserialize_proto(self, serialized: bytes, proto: Any) -> Any:
        """Fill `proto` from bytes; protobuf's DecodeError if they are no such message."""
        if not isinstance(serialized, bytes):
            raise TypeError(f"bytes are needed, not a {type(serialized).__name__}")
        proto.ParseFromString(serialized)
        return proto


class _TextProtoSerializer(ProtoSerializer):
    """Protobuf's text format."""

    supported_format = "textproto"
    file_extensions = frozenset({".txtpb", ".textproto", ".prototxt", ".pbtxt"})

    def serialize_proto(self, proto: Any) -> bytes:
        """The message as UTF-8 text."""
        return text_format.MessageToString(proto).encode("utf-8")

    def deserialize_proto(self, serialized: bytes | str, proto: Any) -> Any:
        """Fill `proto` from text."""
        return text_format.Parse(_text(serialized), proto)


class _JsonSerializer(ProtoSerializer):
    """Protobuf's JSON form, with field names as in ONNX."""

    supported_format = "json"
    file_extensions = frozenset({".json", ".onnxjson"})

    def serialize_proto(self, proto: Any) -> bytes:
        """The message as JSON text."""
        return json_format.MessageToJson(proto, preserving_proto_field_name=True).encode("utf-8")

    def deserialize_proto(self, serialized: bytes | str, proto: Any) -> Any:
        """Fill `proto` from JSON text."""
        return json_format.Parse(_text(serialized), proto)


class _TextualSerializer(ProtoSerializer):
    """ONNX's own textual syntax."""

    supported_format = "onnxtxt"
    file_extensions = frozenset({".onnxtxt", ".onnxtext"})

    def serialize_proto(self, proto: Any) -> bytes:
        """The message as UTF-8 text."""
        from sardonyx.compat.onnx.printer import to_text

        return to_text(proto).encode("utf-8")

    def deserialize_proto(self, serialized: bytes | str, proto: Any) -> Any:
        """The model, graph, function or node in the text, as the kind of `proto` says."""
        from sardonyx.compat.onnx.parser import parse_function, parse_graph, parse_model, parse_node

        warnings.warn("the onnxtxt format may still change between releases", stacklevel=2)
        text = _text(serialized)
        if isinstance(proto, ModelProto):
            return parse_model(text)
        if isinstance(proto, GraphProto):
            return parse_graph(text)
        if isinstance(proto, FunctionProto):
            return parse_function(text)
        if isinstance(proto, NodeProto):
            return parse_node(text)
        raise ValueError(f"the onnxtxt format has no syntax for a {type(proto).__name__}")


registry = _Registry()
for _serializer in (
    _ProtobufSerializer(),
    _TextProtoSerializer(),
    _JsonSerializer(),
    _TextualSerializer(),
):
    registry.register(_serializer)
