"""Random small changes to messages: fields cleared, set to odd values, repeated, dropped."""

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

_ODD_INTEGERS = (0, 1, -1, 2, 7, 8, 16, 99, 2**31, -(2**40))
_ODD_TEXTS = ("", "x", "y", "nowhere", "ai.onnx", "own", "Relu", "Add", "..", "w")


def mutate(message: Any, chance: random.Random, count: int = 1) -> None:
    """Change `count` places of a message in place."""
    for _ in range(count):
        targets = list(_messages(message, 0))
        target = chance.choice(targets)
        fields = [field for field, _ in target.ListFields()]
        if chance.random() < 0.3 or not fields:
            fields = list(target.DESCRIPTOR.fields)
        _change(target, chance.choice(fields), chance)


def _messages(message: Any, depth: int) -> Any:
    yield message
    if depth > 12:
        return
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for item in value if _is_repeated(field) else [value]:
                yield from _messages(item, depth + 1)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == 3


def _change(target: Any, field: Any, chance: random.Random) -> None:
    if not _is_repeated(field):
        if chance.random() < 0.4:
            target.ClearField(field.name)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            getattr(target, field.name).SetInParent()
        else:
            setattr(target, field.name, _odd(field, chance))
        return
    items = getattr(target, field.name)
    kind = chance.randrange(3) if len(items) else 2
    if kind == 0:
        del items[chance.randrange(len(items))]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        twin = chance.choice(list(items)) if len(items) else None
        made = items.add()
        if twin is not None:
            made.CopyFrom(twin)
    elif kind == 1:
        items[chance.randrange(len(items))] = _odd(field, chance)
    else:
        items.append(_odd(field, chance))


def _odd(field: Any, chance: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = chance.choice(_ODD_TEXTS)
            return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return chance.choice((0.0, 1.5, float("nan")))
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice([value.number for value in field.enum_type.values])
        case FieldDescriptor.CPPTYPE_INT32:
            return chance.choice(_ODD_INTEGERS[:8])
        case FieldDescriptor.CPPTYPE_UINT64:
            return abs(chance.choice(_ODD_INTEGERS))
    return chance.choice(_ODD_INTEGERS)
