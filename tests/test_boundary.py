"""What callers get for errors that are not ours, and who is told to report them."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.boundary import public, public_methods
from sardonyx.errors import InternalError, OutOfMemoryError, ResourceError
from sardonyx.runtime import session as session_module

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
NEG = HEAD + "g (float[n] x) => (float[n] y) { y = Neg(x) }"


def _inside(code: str, **names: Any) -> Any:
    """A function whose code counts as the package's own."""
    scope: dict[str, Any] = {"__name__": "sardonyx.made_for_a_test", **names}
    exec(f"def work(*items):\n    {code}", scope)
    return scope["work"]


def test_what_fails_inside_is_ours_to_report(internal_errors: list[InternalError]) -> None:
    class Place:
        def where(self) -> str:
            return "node 'n' (Op)"

    work = public("working")(_inside("node = items[0]; return {}[3]"))
    with pytest.raises(InternalError, match=r"working failed: KeyError: 3.*node 'n'") as met:
        work(Place())
    assert isinstance(met.value.__cause__, KeyError)
    assert len(internal_errors) == 1
    internal_errors.clear()


def test_the_fixture_sees_what_a_test_expects(internal_errors: list[InternalError]) -> None:
    with pytest.raises(sx.SardonyxError):
        public("working")(_inside("return 1 // 0"))()
    assert internal_errors
    internal_errors.clear()


@pytest.mark.parametrize(
    ("code", "kind"),
    [("raise MemoryError('much')", OutOfMemoryError), ("raise OSError(28, 'full')", ResourceError)],
)
def test_what_the_system_refuses_is_no_defect(code: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="working"):
        public("working")(_inside(code))()


def test_a_lack_of_memory_is_a_memory_error_too() -> None:
    with pytest.raises(MemoryError):
        public("working")(_inside("raise MemoryError"))()


def test_interrupts_and_ends_pass() -> None:
    for kind in (KeyboardInterrupt, SystemExit):
        with pytest.raises(kind):
            public("working")(_inside("raise items[0]"))(kind)


def test_a_callers_own_errors_pass() -> None:
    def callback() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        public("working")(_inside("return items[0]()"))(callback)


def test_a_call_that_does_not_fit_stays_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        sx.load_text(NEG, nothing=1)  # type: ignore[call-arg]


def test_methods_of_a_class_are_public() -> None:
    @public_methods("working", plain=("often",))
    class Thing:
        def one(self) -> str:
            return "one"

        @staticmethod
        def two() -> str:
            return "two"

        def often(self) -> str:
            return "often"

    assert (Thing().one(), Thing.two(), Thing().often()) == ("one", "two", "often")
    assert hasattr(Thing.one, "__wrapped__") and not hasattr(Thing.often, "__wrapped__")


def test_every_public_function_is_guarded() -> None:
    plain = {"get_available_providers", "set_seed"}
    functions = [name for name in sx.__all__ if name.islower() and not name.startswith("_")]
    open_ones = {name for name in functions if not hasattr(getattr(sx, name), "__wrapped__")}
    assert open_ones == plain


class _Broken(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        raise OSError(5, "the disk is gone")


def test_file_objects_raise_their_own_errors() -> None:
    with pytest.raises(OSError, match="disk is gone"):
        sx.load(_Broken())
    closed = io.BytesIO(b"")
    closed.close()
    with pytest.raises(ValueError, match="closed file"):
        sx.load(closed)


class _Feeds(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("no such row")

    def __iter__(self) -> Iterator[str]:
        return iter(["x"])

    def __len__(self) -> int:
        return 1


def test_what_is_fed_may_raise_its_own_errors() -> None:
    session = sx.InferenceSession(sx.load_text(NEG))
    with pytest.raises(RuntimeError, match="no such row"):
        session.run(None, _Feeds())


@pytest.mark.parametrize(
    ("names", "feeds", "text"),
    [(None, 5, "a int"), (None, None, "NoneType"), (3, {}, "asked for")],
)  # fmt: skip
def test_runs_say_what_they_were_called_with(names: Any, feeds: Any, text: str) -> None:
    session = sx.InferenceSession(sx.load_text(NEG))
    with pytest.raises(sx.InputError, match=text):
        session.run(names, feeds)


def test_a_run_that_fails_inside_is_ours_to_report(
    monkeypatch: pytest.MonkeyPatch, internal_errors: list[InternalError]
) -> None:
    session = sx.InferenceSession(sx.load_text(NEG))
    monkeypatch.setattr(session_module, "identities", _inside("return [][0]"))
    monkeypatch.setattr(session._runner, "run_again", lambda *_: None)
    with pytest.raises(InternalError, match="running the model failed: IndexError"):
        session.run(None, {"x": np.zeros(2, np.float32)})
    internal_errors.clear()
