"""Whatever onnx's own checker accepts among official and real models is accepted here."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.backend.test import loader

from sardonyx.checker import find_problems
from sardonyx.checker.findings import errors_of
from sardonyx.ops.catalog import standard
from tests.conformance.suite import KINDS, cases
from tests.shared_models import model_paths, needs_models


def _accepted(model: Any, full: bool) -> bool:
    try:
        onnx.checker.check_model(model, full_check=full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _light() -> Iterator[tuple[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in loader.load_model_tests(kind="light"):
            path = Path(item.model_dir or "", "model.onnx")
            if path.exists():
                yield item.name, onnx.load(path)


def _models(kind: str) -> Iterator[tuple[str, Any]]:
    if kind == "light":
        yield from _light()
    else:
        yield from ((case.name, case.model) for case in cases(kind))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "light"])
def test_suite_models_are_accepted(kind: str, full: bool) -> None:
    wrong = {}
    for name, model in _models(kind):
        errors = errors_of(find_problems(model, full))
        if errors and _accepted(model, full):
            wrong[name] = [str(error) for error in errors[:3]]
    assert wrong == {}


@needs_models
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models_are_accepted(path: Path, full: bool) -> None:
    errors = errors_of(find_problems(path, full))
    assert not errors or not _accepted(path, full), errors[:3]


def test_catalog_holds_every_operator_of_onnx() -> None:
    """The checker can only accept operators that exist: this says which are missing."""
    known = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}
    assert sorted(known - set(standard())) == []


def test_catalog_has_the_versions_of_onnx() -> None:
    catalog = standard()
    wanted: dict[tuple[str, str], set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        wanted.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    found = {
        key: {version.since for version in catalog[key].versions()}
        for key in wanted
        if key in catalog
    }
    assert found == {key: versions for key, versions in wanted.items() if key in catalog}
