"""The table of operators, against the modules that define them."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import onnx

import sardonyx.ops
from sardonyx.ops.catalog import OPERATORS, of_domains, standard
from sardonyx.ops.operator import Operator


def defined() -> dict[tuple[str, str], str]:
    """Every operator's module, found by importing all of them."""
    found: dict[tuple[str, str], str] = {}
    for item in pkgutil.iter_modules(sardonyx.ops.__path__):
        module = import_module(f"sardonyx.ops.{item.name}")
        for thing in vars(module).values():
            own = isinstance(thing, type) and thing.__module__ == module.__name__
            if own and issubclass(thing, Operator) and thing.signatures:
                key = (thing.domain, thing.name)
                assert key not in found, f"{key} is defined twice"
                found[key] = item.name
    return found


def test_the_table_names_what_modules_define() -> None:
    table = {
        (domain, name): family
        for domain, families in OPERATORS.items()
        for family, names in families.items()
        for name in names.split()
    }
    assert table == defined()
    assert {key: operator.name for key, operator in standard().items()} == {
        key: key[1] for key in table
    }


def test_a_larger_catalog_takes_its_own_first() -> None:
    class Relu(Operator):
        signatures = ("14(x: T) -> y: T; T: floats",)

    catalog = standard() | {("", "Relu"): Relu, ("mine", "Relu"): Relu}
    assert catalog["", "Relu"] is Relu and catalog["mine", "Relu"] is Relu
    assert len(catalog) == len(standard()) + 1 == len(list(catalog))
    assert ("mine", "Relu") not in standard() and standard().get(("mine", "Relu")) is None
    assert {domain for domain, _ in of_domains("ai.onnx.ml")} == {"ai.onnx.ml"}


def test_only_what_a_model_needs_is_imported() -> None:
    script = """
import sys
import sardonyx as sx
text = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
sx.infer_shapes(sx.load_text(text))
print(*sorted(name for name in sys.modules if name.startswith("sardonyx.ops.ms_")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_deprecated_versions_are_those_of_onnx() -> None:
    expected = {
        (schema.domain, schema.name, schema.since_version)
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.deprecated
    }
    found = {
        (domain, name, signature.since)
        for (domain, name), operator in standard().items()
        for signature in operator.versions()
        if signature.deprecated and domain in ("", "ai.onnx.ml")
    }
    assert found == expected and len(found) > 2
