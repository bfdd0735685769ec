"""Every rule the checker knows, in one table: its name, how bad a breach is, and the remedy."""

from sardonyx.record import record


@record
class Rule:
    """A rule: what to do where it is broken, and whether that is merely a warning."""

    name: str
    remedy: str
    warning: bool = False


_TABLE = """
model-graph-missing: give the model a graph
ir-version-missing: set ir_version
ir-version-negative: set ir_version to the version the model was written for
ir-version-too-new: use a newer release of this package, or save the model with an older IR version
ir-version-too-old: raise ir_version, or take out what it does not have yet
opset-import-missing: import the operator sets that the nodes use
opset-import-forbidden: remove opset_import, or raise ir_version to 3
opset-import-duplicate: keep one import for each domain
opset-version-invalid: versions of operator sets begin with 1
opset-version-range: versions of operator sets are small numbers that begin with 1
opset-too-new: use a newer release of this package, or convert the model to an older opset
~opset-import-spelling: leave the default domain's name empty, older tools do not know the long one
model-metadata-duplicate: give each metadata property a key of its own
metadata-duplicate: give each metadata property a key of its own
~unknown-field: it is kept but has no effect; it may come from a newer version of the format
device-configuration-unnamed: name the device configuration
device-configuration-duplicate: give each device configuration a name of its own
device-count: list as many devices as num_devices says
device-configuration-unknown: name a device configuration of the model
sharding-tensor-unknown: name an input or an output of the node

graph-name-empty: name the graph
nesting-too-deep: flatten the graphs
input-name-empty: name the input
output-name-empty: name the output
type-missing: declare a type; the main graph's inputs and outputs must have one
type-unset: say what it is: a tensor, a sequence, a map, an optional
element-missing: set elem_type
shape-missing: declare a shape, without sizes where they are unknown
container-element-missing: say what the container holds
opaque-name-missing: name the opaque type
inner-element-missing: set elem_type
element-undefined: set elem_type to a type that exists
element-unknown: set elem_type to a type that exists
map-key-type: keys of a map are integers or strings
~dimension-negative: leave a size that is unknown out, or name it
input-duplicate: give each input a name of its own
value-name-missing: name the value
initializer-name-empty: name the initializer
initializer-duplicate: give each initializer a name of its own
initializer-not-input: list it among the inputs too, or raise ir_version to 4
initializer-type-mismatch: declare the input as the initializer is
undefined-value: correct the name, or define the value before it is used
unsorted: put the nodes into an order in which each comes after what it reads
cycle: one of these nodes must not read what comes after it
duplicate-definition: rename one of the two
shadowing: rename the inner one; a subgraph sees the names around it
~shadowing-input: rename the inner one; a subgraph sees the names around it
output-undefined: correct the name, or let a node produce it
output-from-outer: pass it through an Identity node inside the subgraph
~output-duplicate: return each value once
~graph-without-outputs: declare what the model returns
~value-info-unknown: remove it, or correct its name
~value-info-duplicate: keep one description for each value
~node-name-duplicate: give each node a name of its own, or none
quantization-unknown-tensor: name a value of the graph
quantization-duplicate: keep one entry for each key

operator-empty: set op_type
node-empty: remove the node
domain-not-imported: import the operator set of that domain
~domain-spelling: leave the default domain's name empty
operator-unknown: correct the name or the domain, or define a function of that name
operator-not-yet: raise the imported version, or use operators of the version that is imported
operator-deprecated: use the operator that replaced it, or import an older version
~operator-experimental: replace it; it was never standardized
operator-custom-unknown: define it as a function, or allow custom domains
too-few-inputs: give every required input
too-many-inputs: remove the surplus inputs
too-few-outputs: give every required output a place
too-many-outputs: remove the surplus outputs
output-count: give one of the numbers of outputs that the operator can have
input-required-empty: connect the input, it is not optional
output-required-empty: name the output, it is not optional
type-not-allowed: cast the value to an allowed type
type-inconsistent: cast the values to one type
call-too-many-inputs: pass at most what the function takes
call-too-many-outputs: take at most what the function returns
call-attribute-unknown: remove it, or declare it in the function
~call-attribute-missing: give it; what refers to it in the function falls back on defaults
~function-standard-domain: move the function to a domain of your own

attribute-name-empty: name the attribute
attribute-duplicate: keep one attribute of each name
attribute-type-missing: set the attribute's type
attribute-type-unknown: set the attribute's type to one that exists
attribute-type: store the value in the form the operator takes
attribute-field-mismatch: set the type that fits the field the value is in
attribute-several-values: keep one value
attribute-without-value: give the value
~attribute-empty: give the attribute a type and a value
attribute-unknown: remove it, or check the imported version
attribute-missing: give it, the operator requires it
reference-outside-function: give the value itself; only nodes of a function can refer to attributes
reference-with-value: keep either the reference or the value
nested-reference-with-value: keep either the reference or the value
reference-undeclared: declare the attribute in the function
reference-type: use the type the function declares

tensor-element-undefined: set data_type
tensor-element-unknown: set data_type to a type that exists
raw-element-unknown: set data_type to a type that exists
tensor-dimension-negative: sizes of a constant are known: write them
tensor-too-large: no machine holds that many elements; correct the dimensions
tensor-no-data: store the elements
tensor-several-fields: store the elements once
tensor-empty-with-data: remove the data, or correct the dimensions
tensor-data-field: store the elements in the field for their type, or in raw_data
tensor-data-short: store all elements, or correct the dimensions
tensor-data-long: remove the surplus, or correct the dimensions
tensor-packed-short: store one byte in each entry of int32_data
tensor-string-raw: store strings in string_data
tensor-float6-bits: leave the bits beyond the six of an element zero
tensor-array-mismatch: set the tensor's elements anew
~tensor-segment: join the segments into one tensor
~external-data-ignored: set data_location to EXTERNAL, or remove the entries
external-data-fields: keep the elements in one place
external-location-missing: say which file holds the data
external-location-unsafe: name a file inside the model's folder by a relative path
external-data-number: write offset and length as whole numbers that are not negative
external-data-string: store strings in the model
external-data-size: correct the length or the dimensions
external-data-unreachable: put the data file beside the model, whole, and load the model by its path
~external-entry-duplicate: keep one entry for each key
sparse-values-missing: give the sparse tensor its values
sparse-name-empty: name the tensor of values
sparse-values-rank: values of a sparse tensor form a list
sparse-rank-zero: give the sparse tensor dimensions
sparse-dimension: dimensions of a sparse tensor are positive
sparse-indices-missing: give an index for each value
sparse-indices-type: store indices as int64
sparse-indices-rank: give one index, or one row of coordinates, for each value
sparse-indices-count: give an index for each value
sparse-indices-width: give a coordinate for each dimension
sparse-indices-unreadable: store an index for each value, in the model itself
sparse-indices-range: keep indices inside the dimensions
sparse-indices-order: sort the values by index, each once

too-many-functions: inline some
function-name-empty: name the function
function-domain-missing: set the function's domain
function-duplicate: give each function a name or an overload of its own
function-recursive: unroll the recursion; functions cannot call themselves
function-chain-too-long: inline some of the functions
function-input-empty: name the input
function-input-duplicate: give each input a name of its own
function-output-empty: name the output
function-output-duplicate: return each value once
function-output-undefined: let a node of the function produce it
function-attribute-empty: name the attribute
function-attribute-duplicate: declare each attribute once
function-attribute-twice: declare an attribute with a default or without one
function-default-value: give a value, not a reference
function-opset-incompatible: let the function import the version the model imports
~function-import-spelling: leave the default domain's name empty, as its nodes do

training-binding-key: bind an initializer of the model
training-binding-value: bind it to an output of the training graph
training-binding-duplicate: bind each initializer once
training-initialization-inputs: an initialization has no inputs; remove them

inference: see what the node is given
inference-failed: simplify the model and check again
"""


def _parse(table: str) -> dict[str, Rule]:
    rules = {}
    for line in table.split("\n"):
        name, colon, remedy = line.partition(": ")
        if colon:
            bare = name.removeprefix("~")
            rules[bare] = Rule(bare, remedy, warning=bare != name)
    return rules


RULES: dict[str, Rule] = _parse(_TABLE)
"""All rules by name. In the table `~` marks those whose breach is merely a warning."""
