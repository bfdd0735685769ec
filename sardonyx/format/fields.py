"""Every message, field and enumeration of ONNX IR 14: the one source for reader, writer and protos.

A row is `number name type`. A type ending in `*` is repeated, in `*packed` stored packed by
default; `|` before the name puts the field into its message's oneof. Nested messages are written
`Outer.Inner`.
"""

from functools import cache

from sardonyx.record import record

IR_VERSION = 14
"""The newest IR version this package knows every field of."""

_MESSAGES = """
AttributeProto
  1 name string
  21 ref_attr_name string
  13 doc_string string
  20 type AttributeProto.AttributeType
  2 f float
  3 i int64
  4 s bytes
  5 t TensorProto
  6 g GraphProto
  22 sparse_tensor SparseTensorProto
  14 tp TypeProto
  7 floats float*
  8 ints int64*
  9 strings bytes*
  10 tensors TensorProto*
  11 graphs GraphProto*
  23 sparse_tensors SparseTensorProto*
  15 type_protos TypeProto*
ValueInfoProto
  1 name string
  2 type TypeProto
  3 doc_string string
  4 metadata_props StringStringEntryProto*
NodeProto
  1 input string*
  2 output string*
  3 name string
  4 op_type string
  7 domain string
  8 overload string
  5 attribute AttributeProto*
  6 doc_string string
  9 metadata_props StringStringEntryProto*
  10 device_configurations NodeDeviceConfigurationProto*
IntIntListEntryProto
  1 key int64
  2 value int64*
NodeDeviceConfigurationProto
  1 configuration_id string
  2 sharding_spec ShardingSpecProto*
  3 pipeline_stage int32
ShardingSpecProto
  1 tensor_name string
  2 device int64*
  3 index_to_device_group_map IntIntListEntryProto*
  4 sharded_dim ShardedDimProto*
ShardedDimProto
  1 axis int64
  2 simple_sharding SimpleShardedDimProto*
SimpleShardedDimProto oneof dim
  1 |dim_value int64
  2 |dim_param string
  3 num_shards int64
TrainingInfoProto
  1 initialization GraphProto
  2 algorithm GraphProto
  3 initialization_binding StringStringEntryProto*
  4 update_binding StringStringEntryProto*
ModelProto
  1 ir_version int64
  8 opset_import OperatorSetIdProto*
  2 producer_name string
  3 producer_version string
  4 domain string
  5 model_version int64
  6 doc_string string
  7 graph GraphProto
  14 metadata_props StringStringEntryProto*
  20 training_info TrainingInfoProto*
  25 functions FunctionProto*
  26 configuration DeviceConfigurationProto*
DeviceConfigurationProto
  1 name string
  2 num_devices int32
  3 device string*
StringStringEntryProto
  1 key string
  2 value string
TensorAnnotation
  1 tensor_name string
  2 quant_parameter_tensor_names StringStringEntryProto*
GraphProto
  1 node NodeProto*
  2 name string
  5 initializer TensorProto*
  15 sparse_initializer SparseTensorProto*
  10 doc_string string
  11 input ValueInfoProto*
  12 output ValueInfoProto*
  13 value_info ValueInfoProto*
  14 quantization_annotation TensorAnnotation*
  16 metadata_props StringStringEntryProto*
TensorProto
  1 dims int64*
  2 data_type int32
  3 segment TensorProto.Segment
  4 float_data float*packed
  5 int32_data int32*packed
  6 string_data bytes*
  7 int64_data int64*packed
  8 name string
  12 doc_string string
  9 raw_data bytes
  13 external_data StringStringEntryProto*
  14 data_location TensorProto.DataLocation
  10 double_data double*packed
  11 uint64_data uint64*packed
  16 metadata_props StringStringEntryProto*
TensorProto.Segment
  1 begin int64
  2 end int64
SparseTensorProto
  1 values TensorProto
  2 indices TensorProto
  3 dims int64*
TensorShapeProto
  1 dim TensorShapeProto.Dimension*
TensorShapeProto.Dimension oneof value
  1 |dim_value int64
  2 |dim_param string
  3 denotation string
TypeProto oneof value
  1 |tensor_type TypeProto.Tensor
  4 |sequence_type TypeProto.Sequence
  5 |map_type TypeProto.Map
  9 |optional_type TypeProto.Optional
  8 |sparse_tensor_type TypeProto.SparseTensor
  7 |opaque_type TypeProto.Opaque
  6 denotation string
TypeProto.Tensor
  1 elem_type int32
  2 shape TensorShapeProto
TypeProto.Sequence
  1 elem_type TypeProto
TypeProto.Map
  1 key_type int32
  2 value_type TypeProto
TypeProto.Optional
  1 elem_type TypeProto
TypeProto.SparseTensor
  1 elem_type int32
  2 shape TensorShapeProto
TypeProto.Opaque
  1 domain string
  2 name string
OperatorSetIdProto
  1 domain string
  2 version int64
FunctionProto
  1 name string
  4 input string*
  5 output string*
  6 attribute string*
  11 attribute_proto AttributeProto*
  7 node NodeProto*
  8 doc_string string
  9 opset_import OperatorSetIdProto*
  10 domain string
  13 overload string
  12 value_info ValueInfoProto*
  14 metadata_props StringStringEntryProto*
SequenceProto
  1 name string
  2 elem_type int32
  3 tensor_values TensorProto*
  4 sparse_tensor_values SparseTensorProto*
  5 sequence_values SequenceProto*
  6 map_values MapProto*
  7 optional_values OptionalProto*
MapProto
  1 name string
  2 key_type int32
  3 keys int64*
  4 string_keys bytes*
  5 values SequenceProto
OptionalProto
  1 name string
  2 elem_type int32
  3 tensor_value TensorProto
  4 sparse_tensor_value SparseTensorProto
  5 sequence_value SequenceProto
  6 map_value MapProto
  7 optional_value OptionalProto
OperatorProto
  1 op_type string
  2 since_version int64
  3 status OperatorStatus
  10 doc_string string
OperatorSetProto
  1 magic string
  2 ir_version int64
  3 ir_version_prerelease string
  7 ir_build_metadata string
  4 domain string
  5 opset_version int64
  6 doc_string string
  8 operator OperatorProto*
  9 functions FunctionProto*
"""

_CONTAINER_KINDS = "UNDEFINED=0 TENSOR=1 SPARSE_TENSOR=2 SEQUENCE=3 MAP=4 OPTIONAL=5"

_ENUMS = {
    "AttributeProto.AttributeType": (
        "UNDEFINED=0 FLOAT=1 INT=2 STRING=3 TENSOR=4 GRAPH=5 SPARSE_TENSOR=11 TYPE_PROTO=13 "
        "FLOATS=6 INTS=7 STRINGS=8 TENSORS=9 GRAPHS=10 SPARSE_TENSORS=12 TYPE_PROTOS=14"
    ),
    "TensorProto.DataType": (
        "UNDEFINED=0 FLOAT=1 UINT8=2 INT8=3 UINT16=4 INT16=5 INT32=6 INT64=7 STRING=8 BOOL=9 "
        "FLOAT16=10 DOUBLE=11 UINT32=12 UINT64=13 COMPLEX64=14 COMPLEX128=15 BFLOAT16=16 "
        "FLOAT8E4M3FN=17 FLOAT8E4M3FNUZ=18 FLOAT8E5M2=19 FLOAT8E5M2FNUZ=20 UINT4=21 INT4=22 "
        "FLOAT4E2M1=23 FLOAT8E8M0=24 UINT2=25 INT2=26 FLOAT6E2M3=27 FLOAT6E3M2=28"
    ),
    "TensorProto.DataLocation": "DEFAULT=0 EXTERNAL=1",
    "SequenceProto.DataType": _CONTAINER_KINDS,
    "OptionalProto.DataType": _CONTAINER_KINDS,
    "Version": (
        "_START_VERSION=0 IR_VERSION_2017_10_10=1 IR_VERSION_2017_10_30=2 IR_VERSION_2017_11_3=3 "
        "IR_VERSION_2019_1_22=4 IR_VERSION_2019_3_18=5 IR_VERSION_2019_9_19=6 "
        "IR_VERSION_2020_5_8=7 IR_VERSION_2021_7_30=8 IR_VERSION_2023_5_5=9 "
        "IR_VERSION_2024_3_25=10 IR_VERSION_2025_05_12=11 IR_VERSION_2025_08_26=12 "
        "IR_VERSION_2025_11_06=13 IR_VERSION=14"
    ),
    "OperatorStatus": "EXPERIMENTAL=0 STABLE=1",
}


@record
class Field:
    """One field of a message; `kind` is a scalar name, a message name or an enumeration name."""

    number: int
    name: str
    kind: str
    repeated: bool
    packed: bool
    oneof: str | None


@record
class Message:
    """One message: its fields in declaration order."""

    name: str
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        """The field called `name`."""
        return next(field for field in self.fields if field.name == name)


def _parse_field(row: str, oneof: str | None) -> Field:
    number, name, kind = row.split()
    kind, star, packed = kind.partition("*")
    in_oneof = name.startswith("|")
    return Field(
        int(number), name.lstrip("|"), kind, bool(star), bool(packed), oneof if in_oneof else None
    )


@cache
def messages() -> dict[str, Message]:
    """All messages by name."""
    found: dict[str, Message] = {}
    name, oneof, fields = "", None, []
    for row in [*_MESSAGES.strip("\n").split("\n"), ""]:
        if row.startswith(" "):
            fields.append(_parse_field(row, oneof))
            continue
        if name:
            found[name] = Message(name, tuple(fields))
        name, _, rest = row.partition(" oneof ")
        oneof, fields = rest or None, []
    return found


@cache
def enums() -> dict[str, dict[str, int]]:
    """All enumerations by name: value name -> number, in declaration order."""
    return {
        name: {
            key: int(number) for key, _, number in (item.partition("=") for item in text.split())
        }
        for name, text in _ENUMS.items()
    }
