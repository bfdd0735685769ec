"""Cases about constants, dense and sparse, as initializers and in attributes."""

from typing import Any

from sardonyx.dtypes import DataType
from tests.checker.broken_models import Cases, entry

CASES = Cases()
add, case = CASES.add, CASES.case
HERE = "graph 'g' > initializer 'q'"
ATTRIBUTE = "graph 'g' > node 'n' (Constant) > attribute 'value'"


def _initializer(m: Any, dims: list[int], element: int | None, **fields: Any) -> Any:
    made = m.graph.initializer.add(name="q", dims=dims, **fields)
    if element is not None:
        made.data_type = element
    return made


def _both(rule: str, name: str, dims: list[int], element: int | None, **fields: Any) -> None:
    """The same broken tensor as an initializer and as an attribute."""
    add(rule, HERE, lambda m, o: _initializer(m, dims, element, **fields), name)

    def as_attribute(m: Any, o: Any) -> None:
        node = m.graph.node.add(op_type="Constant", name="n", output=["q"])
        value = node.attribute.add(name="value", type=4)
        value.t.CopyFrom(_initializer(m, dims, element, **fields))
        del m.graph.initializer[-1]

    add(rule, ATTRIBUTE, as_attribute, f"{name}-attribute")


_both("tensor-element-undefined", "absent", [1], None, float_data=[1])
_both("tensor-element-undefined", "zero", [1], 0, float_data=[1])
_both("tensor-element-unknown", "typed", [1], 99, int32_data=[1])
_both("raw-element-unknown", "raw", [1], 99, raw_data=b"1")
_both("tensor-dimension-negative", "one", [-1], 1, float_data=[1])
_both("tensor-dimension-negative", "two", [2, -3], 1, float_data=[1])
_both("tensor-too-large", "product", [2**32, 2**32], 1, raw_data=b"1234")
_both("tensor-too-large", "before zero", [2**40, 2**40, 0], 1)
_both("tensor-no-data", "float", [2], 1)
_both("tensor-no-data", "scalar", [], 7)
_both("tensor-no-data", "string", [1], 8)
_both("tensor-several-fields", "raw and typed", [1], 1, raw_data=b"1234", float_data=[1])
_both("tensor-several-fields", "two typed", [1], 1, int32_data=[1], float_data=[1])
_both("tensor-several-fields", "strings", [1], 8, string_data=[b"a"], float_data=[1])
_both("tensor-empty-with-data", "raw", [0], 1, raw_data=b"1234")
_both("tensor-empty-with-data", "typed", [2, 0], 7, int64_data=[1])
_both("tensor-empty-with-data", "strings", [0], 8, string_data=[b"a"])
_both("tensor-string-raw", "raw", [1], 8, raw_data=b"1234")
_both("tensor-float6-bits", "raw", [1], 27, raw_data=b"\xff")
_both("tensor-float6-bits", "typed", [1], 28, int32_data=[64])
_both("tensor-float6-bits", "negative", [1], 28, int32_data=[-1])
_both("tensor-packed-short", "int4", [10], 22, int32_data=[1, 2, 3])
_both("tensor-packed-short", "uint2", [20], 25, int32_data=[1, 2, 3])
add(
    "tensor-segment",
    HERE,
    lambda m, o: _initializer(m, [1], 1, float_data=[1]).segment.SetInParent(),
)
FIELDS = {
    "float_data": [1.0],
    "int32_data": [1],
    "int64_data": [1],
    "double_data": [1.0],
    "uint64_data": [1],
    "string_data": [b"a"],
}
for kind in DataType:
    if kind == DataType.UNDEFINED:
        continue
    wrong = next(name for name in FIELDS if name != kind.field)
    add(
        "tensor-data-field",
        HERE,
        lambda m, o, kind=kind, wrong=wrong: _initializer(
            m, [1], int(kind), **{wrong: FIELDS[wrong]}
        ),
        kind.name,
    )
    if kind == DataType.STRING:
        continue
    need = kind.raw_size(9)
    add(
        "tensor-data-short",
        HERE,
        lambda m, o, kind=kind, need=need: _initializer(
            m, [3, 3], int(kind), raw_data=bytes(need - 1)
        ),
        f"raw-{kind.name}",
    )
    add(
        "tensor-data-long",
        HERE,
        lambda m, o, kind=kind, need=need: _initializer(
            m, [3, 3], int(kind), raw_data=bytes(need + 1)
        ),
        f"raw-{kind.name}",
    )
for kind, count in (
    (DataType.FLOAT, 5),
    (DataType.DOUBLE, 5),
    (DataType.INT64, 5),
    (DataType.UINT64, 5),
    (DataType.UINT32, 5),
    (DataType.FLOAT16, 5),
    (DataType.BOOL, 5),
    (DataType.STRING, 5),
    (DataType.COMPLEX64, 11),
    (DataType.COMPLEX128, 11),
):
    for rule, number in (("tensor-data-short", count), ("tensor-data-long", count + 2)):
        add(
            rule,
            HERE,
            lambda m, o, kind=kind, number=number: _initializer(
                m, [6], int(kind), **{kind.field: FIELDS[kind.field] * number}
            ),
            f"typed-{kind.name}",
        )
add(
    "tensor-data-short",
    HERE,
    lambda m, o: _initializer(m, [17], 22, int32_data=[1, 2]),
    "typed-INT4",
)


def _external(m: Any, o: Any, *entries: tuple[str, str], **fields: Any) -> None:
    made = _initializer(m, fields.pop("dims", [1]), fields.pop("element", 1), **fields)
    made.data_location = 1
    made.external_data.extend(entry(o, *pair) for pair in entries)


FILE = ("location", "nowhere.bin")
add("external-location-missing", HERE, _external, "none")
add("external-location-missing", HERE, lambda m, o: _external(m, o, ("location", "")), "empty")
for location in (
    "/etc/passwd",
    "../up.bin",
    "a/../../up.bin",
    "C:\\data.bin",
    "\\\\host\\x",
    "a\\..\\b",
):
    add(
        "external-location-unsafe",
        HERE,
        lambda m, o, location=location: _external(m, o, ("location", location)),
        location,
    )
add("external-data-unreachable", HERE, lambda m, o: _external(m, o, FILE))
add("external-data-fields", HERE, lambda m, o: _external(m, o, FILE, raw_data=b"1234"))
add("external-data-string", HERE, lambda m, o: _external(m, o, FILE, element=8))
for key, value in (("offset", "-1"), ("length", "many"), ("offset", "9" * 30)):
    add(
        "external-data-number",
        HERE,
        lambda m, o, pair=(key, value): _external(m, o, FILE, pair),
        f"{key}-{value[:4]}",
    )
add("external-data-size", HERE, lambda m, o: _external(m, o, FILE, ("length", "5")), "length")
add("external-data-size", HERE, lambda m, o: _external(m, o, FILE, dims=[-1]), "negative")
add("external-entry-duplicate", HERE, lambda m, o: _external(m, o, FILE, FILE))
add(
    "external-data-ignored",
    HERE,
    lambda m, o: _initializer(m, [1], 1, float_data=[1]).external_data.append(entry(o, *FILE)),
)


def _sparse(
    m: Any,
    dims: list[int],
    values: dict[str, Any] | None = None,
    indices: dict[str, Any] | None = None,
) -> None:
    made = m.graph.sparse_initializer.add(dims=dims)
    given = {"name": "q", "data_type": 1, "dims": [2], "float_data": [5.0, 6.0]} | (values or {})
    for name, value in given.items():
        if isinstance(value, list):
            getattr(made.values, name).extend(value)
        else:
            setattr(made.values, name, value)
    if indices is not None:
        given = {"data_type": 7, "dims": [2], "int64_data": [1, 3]} | indices
        made.indices.data_type = given["data_type"]
        made.indices.dims.extend(given["dims"])
        made.indices.int64_data.extend(given["int64_data"])
        made.indices.int32_data.extend(given.get("int32_data", []))


INDICES = f"{HERE} > indices"
add(
    "sparse-values-missing",
    "graph 'g' > initializer 0",
    lambda m, o: (m.graph.ClearField("initializer"), m.graph.sparse_initializer.add(dims=[3])),
)
add(
    "sparse-name-empty",
    "graph 'g' > initializer 1",
    lambda m, o: _sparse(m, [2, 2], {"name": ""}, {}),
)
add(
    "sparse-values-rank",
    f"{HERE} > values",
    lambda m, o: _sparse(m, [2, 2], {"dims": [2, 1]}, {}),
    "two",
)
add(
    "sparse-values-rank",
    f"{HERE} > values",
    lambda m, o: _sparse(m, [2, 2], {"dims": []}, {}),
    "none",
)
add("sparse-rank-zero", HERE, lambda m, o: _sparse(m, [], None, {}))
add("sparse-dimension", HERE, lambda m, o: _sparse(m, [2, 0], None, {}), "zero")
add("sparse-dimension", HERE, lambda m, o: _sparse(m, [2, -2], None, {}), "negative")
add("sparse-indices-missing", HERE, lambda m, o: _sparse(m, [2, 2]))
add(
    "sparse-indices-type",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"data_type": 6, "int64_data": [], "int32_data": [1, 3]}),
)
add(
    "sparse-indices-rank",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"dims": [2, 1, 1]}),
    "three",
)
add(
    "sparse-indices-rank",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"dims": [], "int64_data": [1]}),
    "none",
)
add(
    "sparse-indices-count",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"dims": [3], "int64_data": [0, 1, 2]}),
    "linear",
)
add(
    "sparse-indices-count",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"dims": [1, 2], "int64_data": [0, 1]}),
    "rows",
)
add(
    "sparse-indices-width",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"dims": [2, 3], "int64_data": [0] * 6}),
)
add(
    "sparse-indices-unreadable",
    INDICES,
    lambda m, o: _sparse(m, [2, 2], None, {"int64_data": [0, 1, 2]}),
)
for name, dims, data in (
    ("high", [2], [1, 4]),
    ("negative", [2], [-1, 2]),
    ("row", [2, 2], [0, 0, 1, 2]),
    ("negative row", [2, 2], [0, -1, 1, 1]),
):
    add(
        "sparse-indices-range",
        INDICES,
        lambda m, o, dims=dims, data=data: _sparse(
            m, [2, 2], None, {"dims": dims, "int64_data": data}
        ),
        name,
    )
for name, dims, data in (
    ("falling", [2], [3, 1]),
    ("equal", [2], [1, 1]),
    ("rows", [2, 2], [1, 0, 0, 1]),
    ("equal rows", [2, 2], [1, 0, 1, 0]),
    ("second column", [2, 2], [1, 1, 1, 0]),
):
    add(
        "sparse-indices-order",
        INDICES,
        lambda m, o, dims=dims, data=data: _sparse(
            m, [2, 2], None, {"dims": dims, "int64_data": data}
        ),
        name,
    )
add(
    "tensor-no-data",
    f"{HERE} > values",
    lambda m, o: _sparse(m, [2, 2], {"float_data": []}, {}),
    "sparse",
)


@case("initializer-duplicate", "graph 'g' > initializer 'w'")
def _sparse_beside_dense(m: Any, o: Any) -> None:
    _sparse(m, [2, 2], {"name": "w"}, {})
