"""A model as a native program: compiled once for all sizes, run by one call a segment."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from logging import getLogger
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.cache import Cache
from sardonyx.compiler.digest import digest_model, digest_parts, image_key
from sardonyx.compiler.engine import Code, load_code
from sardonyx.compiler.host import host_target, load_llvm_ahead
from sardonyx.compiler.image import (
    Checks,
    CutImage,
    Image,
    ReferenceImage,
    SegmentImage,
    Told,
    Wanted,
)
from sardonyx.compiler.processors import available_processors
from sardonyx.compiler.segment import NO_ROOMS, Native, Rooms, Segment
from sardonyx.compiler.sizes import function
from sardonyx.compiler.specialize import Contents, Specialized, with_contents
from sardonyx.compiler.targets import allowing, checking
from sardonyx.compiler.threads import POOL, Team
from sardonyx.compiler.watch import Watch
from sardonyx.dtypes import data_type
from sardonyx.errors import CancelledError, EvaluationError, InputError
from sardonyx.format.load import load
from sardonyx.graph import Model, Value
from sardonyx.graph.collect import collection_paused
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.feeds import check_input
from sardonyx.ops.work import WORK_LIMIT
from sardonyx.record import once, record

if TYPE_CHECKING:
    from sardonyx.compiler.references import References

_log = getLogger("sardonyx")


@record
class Explanation:
    """What became of one node."""

    node: str
    operator: str
    kernel: str
    """The kernel that computes it, `reference` where NumPy does, `constant`, or `view`."""
    together: tuple[str, ...]
    """The other nodes that the same kernel computes."""
    reason: str = ""
    """Why it has no native form, where it has none."""


Sizes = list[int | None]
"""Each size of a program by its number, None until an array has told it."""


class Program:
    """A compiled model. Runs may go on at the same time in several threads."""

    def __init__(
        self, image: Image, settings: "Settings",
        otherwise: "Callable[[], Program | Specialized] | None" = None,
    ) -> None:  # fmt: skip
        self._image = image
        self._otherwise = otherwise
        """Makes the program that believes no declared rank, where this one does."""
        self._other: Program | Specialized | None = None
        self._settings = settings
        self._tables = tables = image.tables
        team = Team(settings.threads or available_processors())
        POOL.offer(image.pool)
        self._engine, native = _link(image, team, self._describe, settings.work_limit)
        self._steps = [
            _segment(image, step, native) if isinstance(step, SegmentImage) else step
            for step in tables.steps
        ]
        self._held: list[Any] = [None] * tables.arrays
        for number, constant in tables.held:
            self._held[number] = image.constants[constant]
        self._constant_arrays = {number for number, _ in tables.held}
        self._required = [fed.name for fed in tables.fed if fed.default is None]
        self._single = self._simple()
        self._noticed: set[int] = set()

    @property
    def input_names(self) -> list[str]:
        """What must be fed."""
        return list(self._required)

    @property
    def output_names(self) -> list[str]:
        """What comes back."""
        return list(self._tables.names)

    @property
    def sparse_outputs(self) -> frozenset[str]:
        """What comes back as arrays but was declared as sparse tensors."""
        return self._tables.sparse

    @property
    def segments(self) -> int:
        """How many native calls one run is."""
        return sum(isinstance(step, Segment) for step in self._steps)

    @property
    def kernels(self) -> int:
        """How many kernels one run calls."""
        return sum(len(step.image.calls) for step in self._steps if isinstance(step, Segment))

    @property
    def constant_bytes(self) -> int:
        """Bytes of what kernels read and no run changes."""
        return sum(getattr(item, "nbytes", 0) for item in self._image.constants)

    def explain(self) -> list[Explanation]:
        """For each node, which kernel computes it and with which others, or why none does."""
        return [Explanation(*row) for row in self._image.rows]

    def _describe(self, kernel: str) -> str:
        """A kernel, with the nodes that it computes."""
        rows = [row for row in self.explain() if row.kernel == kernel]
        nodes = ", ".join(row.node for row in rows)
        return f"kernel '{kernel}' of {nodes}" if nodes else f"kernel '{kernel}'"

    def run(
        self, feeds: Mapping[str, Any], watch: Watch | None = None,
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """The model's outputs for a value of each input; kernels run one by one for a watch.

        An output is written into its array in `rooms` where that fits, else lies elsewhere.
        """
        results = self.run_again(feeds, watch, rooms)
        if results is not None:
            return results
        if self._otherwise is None:
            return self._run_steps(feeds, watch, rooms)
        return self._run_believing(feeds, watch, rooms, self._otherwise)

    def _run_believing(
        self, feeds: Mapping[str, Any], watch: Watch | None, rooms: Mapping[str, Any] | None,
        otherwise: "Callable[[], Program | Specialized]",
    ) -> list[Any]:  # fmt: skip
        """Run; where that fails, a program that derives all ranks decides, then and later."""
        if self._other is None:
            try:
                return self._run_steps(feeds, watch, rooms)
            except CancelledError:
                raise
            except (EvaluationError, InputError):
                other = otherwise()
                results = other.run(feeds, watch, rooms)
                self._other = other
                return results
        return self._other.run(feeds, watch, rooms)

    def run_again(
        self, feeds: Mapping[str, Any], watch: Watch | None = None,
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any] | None:  # fmt: skip
        """The outputs where a run is one call and had such arrays before; new, or in `rooms`."""
        if self._single is None or len(feeds) != len(self._required):
            return None
        segment, names, places = self._single
        numbered = self._numbered(rooms, feeds) if rooms else NO_ROOMS
        results = segment.run_again([feeds.get(name) for name in names], watch, numbered)
        return results and [results[place] for place in places]

    def _numbered(self, rooms: Mapping[str, Any], feeds: Mapping[str, Any]) -> Rooms:
        """Rooms that can be written while feeds and other rooms are in use, by arrays' numbers."""
        taken = [item for item in feeds.values() if isinstance(item, np.ndarray)]
        found: dict[int, NDArray[Any]] = {}
        for name, number in zip(self.output_names, self._tables.outputs, strict=True):
            room = rooms.get(name)
            if room is None or number in found or not room.flags.carray:
                continue
            if not any(np.may_share_memory(room, item) for item in taken):
                found[number] = room
                taken.append(room)
        return found

    def _simple(self) -> tuple[Segment, list[str], list[int]] | None:
        """The only segment, its inputs' names and its outputs' places, where a run is only that."""
        if len(self._steps) != 1 or not isinstance(self._steps[0], Segment):
            return None
        segment = self._steps[0]
        names = {fed.array: fed.name for fed in self._tables.fed if fed.default is None}
        made = segment.image.outputs
        if set(names) != set(segment.image.inputs) or set(self._tables.outputs) != set(made):
            return None
        return (
            segment,
            [names[number] for number in segment.image.inputs],
            [made.index(number) for number in self._tables.outputs],
        )

    def _run_steps(
        self, feeds: Mapping[str, Any], watch: Watch | None, rooms: Mapping[str, Any] | None
    ) -> list[Any]:
        arrays = self._bind(feeds)
        numbered = self._numbered(rooms, feeds) if rooms else NO_ROOMS
        sizes: Sizes = [None] * len(self._tables.symbols)
        for told in self._tables.told:
            _learn(sizes, told, arrays[told.array])
        check_sizes(sizes, self._tables.checks)
        for step in self._steps:
            if isinstance(step, ReferenceImage):
                self._run_reference(step, arrays, sizes, watch)
                continue
            if isinstance(step, CutImage):
                _cut(step, arrays, sizes)
                continue
            given = [arrays[number] for number in step.image.inputs]
            made = step.run(given, sizes, watch, numbered)
            for number, array in zip(step.image.outputs, made, strict=True):
                arrays[number] = array
        results = [
            np.array(arrays[number]) if number in self._constant_arrays else arrays[number]
            for number in self._tables.outputs
        ]
        for place, shape in self._tables.promised:
            self._compare(place, shape, results[place])
        return results

    def _compare(self, place: int, promised: tuple[int | None, ...], made: Any) -> None:
        """Give notice, once, of an output that has another shape than the model declares."""
        fits = len(promised) == np.ndim(made) and all(
            size in (None, found) for size, found in zip(promised, np.shape(made), strict=True)
        )
        if not fits and place not in self._noticed:
            self._noticed.add(place)
            text = _text(tuple("?" if size is None else size for size in promised))
            _log.warning(
                "output '%s' is declared as %s, and has the shape %s",
                self._tables.names[place], text, list(np.shape(made)),
            )  # fmt: skip

    @once
    def _model(self) -> Model:
        """The inputs and outputs with their types, and the nodes without kernels."""
        return load(self._image.graph)

    @once
    def _inputs(self) -> dict[str, Value]:
        """What may be fed, by name and in order."""
        assert self._model.graph is not None
        return {value.name: value for value in self._model.graph.inputs[: len(self._tables.fed)]}

    def _run_reference(
        self, step: ReferenceImage, arrays: list[Any], sizes: Sizes, watch: Watch | None
    ) -> None:
        given = [arrays[number] for number in step.inputs]
        made = self._references.run(step.node, given, watch)
        for number, array in zip(step.outputs, made, strict=False):
            arrays[number] = array
        for told in step.told:
            _learn(sizes, told, arrays[told.array])
        check_sizes(sizes, step.checks)

    @once
    def _references(self) -> "References":
        """What runs nodes without kernels, made at the first run of one."""
        from sardonyx.compiler.references import References

        settings = self._settings
        constants = {
            step.node: [self._held[number] for number in step.inputs]
            for step in self._tables.steps
            if isinstance(step, ReferenceImage)
        }
        return References(
            self._model, settings.catalog, settings.seed, constants, settings.compile,
            settings.work_limit,
        )  # fmt: skip

    def _bind(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Every array by its number: constants, what was fed, None for what is not there yet."""
        inputs = self._inputs
        unknown = [name for name in feeds if name not in inputs]
        if unknown:
            names = ", ".join(inputs)
            raise InputError(
                f"the model has no input '{unknown[0]}'", hint=f"its inputs are: {names}"
            )
        arrays = list(self._held)
        for value, fed in zip(inputs.values(), self._tables.fed, strict=True):
            if value.name in feeds and fed.fixed:
                raise InputError(
                    f"input '{value.name}' is a constant of this model", hint="do not feed it"
                )
            if value.name in feeds:
                arrays[fed.array] = check_input(value, feeds[value.name])
            elif fed.default is not None:
                arrays[fed.array] = self._image.constants[fed.default]
            else:
                raise InputError(f"input '{value.name}' is missing", hint=f"feed a {value.type}")
        return arrays


def _link(
    image: Image, team: Team, describe: Callable[[str], str], work_limit: int
) -> tuple[Code, Native]:
    """Load a program's machine code."""
    engine = load_code(image.code)
    count = 1 + max(
        (call[0] for step in image.tables.steps if isinstance(step, SegmentImage)
         for call in step.calls), default=-1,
    )  # fmt: skip
    kernels = tuple(engine.address(f"kernel{number}") for number in range(count))
    return engine, Native(engine.address("run"), kernels, team, describe, work_limit)


def _segment(image: Image, step: SegmentImage, native: Native) -> Segment:
    if not step.checked:
        return Segment(step, image.constants, native)
    from sardonyx.compiler.checked import CheckedSegment

    cuts = {
        cut.whole: (cut.count, cut.axis) for cut in image.tables.steps if isinstance(cut, CutImage)
    }
    return CheckedSegment(step, image.constants, native, image.accesses, cuts)


@cache
def _function(source: str) -> Callable[..., Any]:
    return function(source)


def _cut(step: CutImage, arrays: list[Any], sizes: Sizes) -> None:
    """Leave only as many elements as were counted."""
    whole, count = arrays[step.whole], int(arrays[step.count][0])
    part = whole[(slice(None),) * step.axis + (slice(count),)]
    arrays[step.output] = whole if part.shape == whole.shape else part.copy()
    for told in step.told:
        _learn(sizes, told, arrays[told.array])
    check_sizes(sizes, step.checks)


def _learn(sizes: Sizes, told: Told, array: Any) -> None:
    """Sizes from an array's shape; an error where it contradicts what is known."""
    if array is None:
        raise EvaluationError(f"'{told.name}' is used but nothing makes it", hint="check the model")
    if array.ndim != len(told.shape) or array.dtype != data_type(told.dtype).numpy:
        raise EvaluationError(
            f"'{told.name}' is {array.dtype}{list(array.shape)}, not "
            f"{data_type(told.dtype).numpy}{_text(told.shape)}",
            hint="check the types that the model declares",
        )
    wanted: list[Any] = [size if isinstance(size, int) else None for size in told.shape]
    for axis, number in told.symbols:
        if sizes[number] is None:
            sizes[number] = array.shape[axis]
        wanted[axis] = sizes[number]
    for axis, numbers, source in told.computed:
        wanted[axis] = _function(source)(*[sizes[number] for number in numbers])
    for size, found, text in zip(wanted, array.shape, told.shape, strict=True):
        if size is not None and size != found:
            shapes = f"{list(array.shape)}, which does not fit {_text(told.shape)}"
            raise InputError(f"'{told.name}' has the shape {shapes}", hint=f"here {text} is {size}")


def _text(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def check_sizes(sizes: Sizes, checks: Checks | None) -> None:
    """An error where sizes that must be equal are not."""
    if checks is None:
        return
    wrong = _function(checks.source)(*[sizes[number] for number in checks.symbols])
    if wrong is not None:
        number, left, right = wrong
        first, second = checks.texts[number]
        if second == "0" and left < 0:
            raise EvaluationError(
                f"shapes do not fit: {first} is {left}, below 0",
                hint="feed shapes that fit each other",
            )
        if first == str(left):
            first, second, left, right = second, first, right, left
        if second == str(right):
            what = f"{first} is {left}, but the model needs {right}"
        else:
            what = f"{first} is {left} and {second} is {right}, but the model needs them equal"
        raise InputError(what, hint="feed shapes that fit each other")


@record
class Settings:
    """How programs are made: for which target and threads, with which operators and cache."""

    target: str | None = None
    threads: int | None = None
    catalog: Catalog | None = None
    cache: Cache | None = None
    seed: int | None = None
    """Where random operators begin."""
    watching: Callable[[], AbstractContextManager[None]] = nullcontext
    """Open while a program is made, which may take long."""
    precision: str = "highest"
    """One of `targets.PRECISIONS`."""
    checked: str = ""
    """One of `targets.CHECKS`."""
    work_limit: int = WORK_LIMIT
    """Elementary operations over which a run is refused."""

    def open(
        self, read: Callable[[], Model], identity: str, *, specialize: bool = True,
        believe: bool = True,
    ) -> Program | Specialized:  # fmt: skip
        """The program of a model that is read only where the cache has nothing by its identity.

        With `believe`, ranks that are only declared are taken until a run finds another one.
        A model with operators of the user's own is never cached: their code has no identity.
        """
        target = checking(allowing(host_target(self.target), self.precision), self.checked)

        def make() -> Image | Wanted:
            catalog = standard() if self.catalog is None else self.catalog
            with self.watching(), collection_paused():
                load_llvm_ahead()
                model = read()
                # The front end takes longer to import than an image takes to load.
                from sardonyx.compiler.compile import compile_image

                return compile_image(model, target, catalog, specialize=specialize, believe=believe)

        kept = self.catalog is None or self.catalog is standard()
        if self.cache is not None and kept:
            key = identity if believe else f"{identity} derived"
            image = self.cache.get(image_key(key, specialize, target), make)
        else:
            image = make()
        if isinstance(image, Image):
            otherwise = partial(self.open, read, identity, specialize=specialize, believe=False)
            return Program(image.whole(), self, otherwise if image.tables.believes else None)
        variants = partial(self._open_variant, read, identity)
        inputs, outputs = list(image.inputs), list(image.outputs)
        return Specialized(image.names, variants, inputs, outputs, image.sparse)

    def _open_variant(
        self, read: Callable[[], Model], identity: str, contents: Contents | None
    ) -> Program | Specialized:
        """The program for contents of inputs, or the one that knows none."""
        if contents is None:
            return self.open(read, identity, specialize=False)
        fed = [f"{name} {item.dtype} {item.shape} {item.tobytes().hex()}"
               for name, item in contents.items()]  # fmt: skip

        def cleaned() -> Model:
            # What the contents decide, branches above all, is known only now.
            from sardonyx.passes.pipeline import CLEAN, run_pipeline

            return run_pipeline(with_contents(read(), contents), CLEAN, catalog=self.catalog)

        return self.open(cleaned, digest_parts([identity, *fed]))

    def compile(self, model: Model) -> Program | Specialized:
        """The program of a model."""
        return self.open(lambda: model, "" if self.cache is None else digest_model(model))


def compile_model(
    model: Model, *, target: str | None = None, threads: int | None = None,
    catalog: Catalog | None = None, cache: Cache | None = None, seed: int | None = None,
    precision: str = "highest", checked: str = "",
) -> Program | Specialized:  # fmt: skip
    """Compile a model for this machine, or for a lower target that it runs too.

    With a `cache`, a model that was compiled before is only loaded.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[n] x) => (float[n] y) { a = Add(x, x) y = Relu(a) }')
    >>> program = compile_model(model, threads=1)
    >>> program.run({"x": np.array([1, -2], np.float32)})[0].tolist(), program.kernels
    ([2.0, 0.0], 1)
    """
    settings = Settings(target, threads, catalog, cache, seed, precision=precision, checked=checked)
    return settings.compile(model)
