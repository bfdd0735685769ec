"""What images are named by: a change of the compiler is seen, and only then."""

from pathlib import Path

from sardonyx.compiler.digest import package_identity
from sardonyx.version import VERSION


def package(folder: Path, kernel: str) -> Path:
    root = folder / "sardonyx"
    for place, text in {"compiler/tile.py": kernel, "cli/main.py": "", "notes.txt": ""}.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    return root


def install(root: Path, content: str) -> None:
    folder = root.parent / f"sardonyx-{VERSION}.dist-info"
    folder.mkdir()
    (folder / "RECORD").write_text(content)


def identity(root: Path) -> str:
    package_identity.cache_clear()
    return package_identity(root)


def test_a_checkout_is_known_by_its_files(tmp_path: Path) -> None:
    root = package(tmp_path, "rows = 4")
    before = identity(root)
    assert identity(root) == before
    (root / "compiler/tile.py").write_text("rows = 12")
    changed = identity(root)
    assert changed != before
    (root / "compiler/more.py").write_text("")
    assert identity(root) not in (before, changed)


def test_what_has_no_part_in_compiling_changes_nothing(tmp_path: Path) -> None:
    root = package(tmp_path, "rows = 4")
    before = identity(root)
    (root / "cli/main.py").write_text("print()")
    (root / "notes.txt").write_text("read me")
    assert identity(root) == before


def test_an_installed_package_is_known_by_its_record(tmp_path: Path) -> None:
    one, two, three = (
        package(tmp_path / name, kernel)
        for name, kernel in [("one", "rows = 4"), ("two", "rows = 4"), ("three", "rows = 12")]
    )
    install(one, "tile.py,sha256=a")
    install(two, "tile.py,sha256=a")
    install(three, "tile.py,sha256=b")
    assert identity(one) == identity(two) != identity(three)
