"""Other people's interfaces, served by sardonyx: `from sardonyx.compat import onnx`."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_PACKAGES = ("onnx", "onnxruntime")


class _Alias(Loader):
    """Serves a module of this package under the name of the one it stands in for."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for the packages that have a stand-in, and for the modules in them."""
        own_name = f"{__name__}.{fullname}"
        if fullname.partition(".")[0] not in _PACKAGES or find_spec(own_name) is None:
            return None
        return ModuleSpec(fullname, _Alias(own_name), is_package=True)


def install() -> None:
    """Make `import onnx` and `import onnxruntime` in this process give our stand-ins.

    It must come before the first such import; ImportError if it comes too late.

    >>> from sardonyx import compat
    >>> compat.install.__name__
    'install'
    """
    for name in _PACKAGES:
        module = sys.modules.get(name)
        if module is not None and not module.__name__.startswith(__name__):
            raise ImportError(f"{name!r} is already imported: call install() before that")
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
