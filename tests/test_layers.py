"""Imports obey the table of layers in ARCHITECTURE.md: own package, or strictly lower levels."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def levels() -> dict[str, int]:
    """Package or module -> level, read from the table in ARCHITECTURE.md."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    return {name: int(level) for level, names in rows for name in re.findall(r"`(\w+)/?`", names)}


def imports(path: Path) -> set[str]:
    """The packages below `sardonyx` that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts = [name.split(".") for name in names]
        found |= {part[1] for part in parts if part[0] == "sardonyx" and len(part) > 1}
        if ["sardonyx"] in parts:
            found.add("__init__")
    return found


def typing_only(path: Path) -> bool:
    return path.name == "__init__.py" and path.parent.name == "sardonyx"


def test_every_module_has_a_level() -> None:
    known = levels()
    places = {path.name.removesuffix(".py") for path in (ROOT / "sardonyx").iterdir()}
    assert places - {"__init__", "__pycache__", "py.typed", "version"} <= set(known)


def test_imports_go_down() -> None:
    known = levels() | {"version": 0, "__init__": 8}
    wrong = []
    for path in sorted((ROOT / "sardonyx").rglob("*.py")):
        if typing_only(path):
            continue
        own = path.relative_to(ROOT / "sardonyx").parts[0].removesuffix(".py")
        for other in imports(path):
            if other in known and other != own and known[other] >= known[own]:
                wrong.append(f"{path.relative_to(ROOT)} (level {known[own]}) imports {other}")
    assert wrong == []


def test_only_emit_knows_llvm_and_no_peer_is_imported() -> None:
    peers = {"onnx", "onnxruntime", "onnx_ir", "openvino", "torch", "sklearn"}
    for path in (ROOT / "sardonyx").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            roots = {name.split(".")[0] for name in names}
            assert not roots & peers, f"{path} imports {roots & peers}"
            if "llvmlite" in roots:
                assert "emit" in path.name, f"{path} imports llvmlite"
