"""Imports obey the table of layers in ARCHITECTURE.md: own package, or strictly lower levels.

The small modules of level 0 count as one package.
"""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def levels() -> dict[str, int]:
    """Package or module -> level, read from the table in ARCHITECTURE.md."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    return {name: int(level) for level, names in rows for name in re.findall(r"`(\w+)/?`", names)}


def imports(path: Path) -> set[str]:
    """The packages below `sardonyx` that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "sardonyx":
            found |= {alias.name if alias.name in levels() else "__init__" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                part for part in node.module.split(".")[1:2] if node.module.startswith("sardonyx.")
            }
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {(parts[1:2] or ["__init__"])[0] for parts in names if parts[0] == "sardonyx"}
    return found


def typing_only(path: Path) -> bool:
    return path.name == "__init__.py" and path.parent.name == "sardonyx"


def test_every_module_has_a_level() -> None:
    known = levels()
    places = {path.stem for path in (ROOT / "sardonyx").iterdir() if path.name[0] not in "._"}
    assert places - {"py", "version"} <= set(known)


def test_imports_go_down() -> None:
    known = levels() | {"version": 0, "__init__": 7}
    wrong = []
    for path in sorted((ROOT / "sardonyx").rglob("*.py")):
        if typing_only(path):
            continue
        own = path.relative_to(ROOT / "sardonyx").parts[0].removesuffix(".py")
        for other in imports(path):
            if other in known and other != own and known[other] >= max(known[own], 1):
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
