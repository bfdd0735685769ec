"""How convolutions read an image: where it lies, or from a copy that is padded and turned."""

from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Reader, Scratch
from sardonyx.compiler.kernels.tile import Pixel
from sardonyx.compiler.kernels.words import BYTES, word_at, words_of
from sardonyx.dims import Size, ceil_divide, product, remainder, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, nest
from sardonyx.loops.nodes import (
    Buffer,
    Cast,
    Guard,
    Kernel,
    Kind,
    Load,
    Loop,
    Statement,
    Store,
    Value,
    substitute,
)
from sardonyx.loops.rewrite import flattened, merge_axes, offset, step

N, C = "%n", "%ch"


def place_names(rank: int) -> list[str]:
    """Names of the places along spatial axes."""
    return [f"%s{axis}" for axis in range(rank)]


def read_image(
    reader: Reader, form: Convolution, padded: bool, narrow: DataType | None = None
) -> tuple[list[Call], Pixel]:
    """How pixels are read, padding counted if `padded`, and the call that copies, where needed.

    Where they are read in words of `narrow` parts, channels are counted so too.
    """
    rank = len(form.strides)
    pads = form.pads if padded else (0,) * (2 * rank)
    begins, ends = pads[:rank], pads[rank:]
    if not any(pads) and not form.spreads and is_channels_last(reader, form):
        if narrow is None:
            return [], lambda n, place, c: reader.value(form.image, (n, c, *place))
        places = tuple(map(symbol, place_names(rank)))
        if narrow is form.image.dtype and _word(reader, form, symbol(N), places, 0) is not None:
            return [], lambda n, place, c: _sure(_word(reader, form, n, place, c))
    batch, channels, *sizes = form.image.shape
    spreads = form.spreads or (1,) * rank
    wide = [
        (size - 1) * spread + 1 + max(begin, 0) + max(end, 0)
        for size, spread, begin, end in zip(sizes, spreads, begins, ends, strict=True)
    ]
    dtype = narrow or form.image.dtype
    parts = 1 if narrow is None else BYTES // narrow.numpy.itemsize
    room = ceil_divide(channels, parts) * parts
    scratch = reader.scratch(Scratch((batch, *wide, room), dtype))
    source = words_of(scratch) if narrow is not None else scratch
    made = _copy_kernel(reader, form, scratch, tuple(max(begin, 0) for begin in begins), spreads)
    call = Call(made, reader.places(made), product(scratch.shape))
    left_out = [max(-begin, 0) for begin in begins]

    def pixel(n: Size, place: tuple[Size, ...], c: Size) -> Load:
        at = tuple(here + more for here, more in zip(place, left_out, strict=True))
        return Load(source, (n, *at, c))

    return [call], pixel


def _word(
    reader: Reader, form: Convolution, n: Size, place: tuple[Size, ...], c: Size
) -> Load | None:
    """Four channels of a pixel, where they lie in one word of memory."""
    channels = form.image.shape[1]
    made = word_at(reader.value(form.image, (n, symbol(C), *place)), C)
    if made is None or remainder(channels, BYTES) != 0:
        return None
    return Load(made.buffer, (substitute(made.indices[0], {C: c}),))


def _sure(load: Load | None) -> Load:
    assert load is not None
    return load


def is_channels_last(reader: Reader, form: Convolution) -> bool:
    """True where the channels of a pixel lie side by side in memory."""
    places = map(symbol, place_names(len(form.strides)))
    element = reader.value(form.image, (symbol(N), symbol(C), *places))
    return isinstance(element, Load) and step(offset(element.buffer, element.indices), C) == 1


def _copy_kernel(
    reader: Reader, form: Convolution, scratch: Buffer, begins: tuple[int, ...],
    spreads: tuple[int, ...],
) -> Kernel:  # fmt: skip
    """Each row of the copy is cleared, then filled where the image reaches."""
    batch, channels, *sizes = form.image.shape
    names = place_names(len(sizes))
    n, c = symbol(N), symbol(C)
    *outer, x = map(symbol, names)
    nothing: Value = constant(0, scratch.dtype)
    if form.zero is not None:
        nothing = Cast(reader.value(form.zero, ()), scratch.dtype)
    zero = Store(scratch, (n, *outer, x, c), nothing)
    clear = _in_vectors([(names[-1], scratch.shape[-2]), (C, scratch.shape[-1])], zero)
    met = [place - begin for place, begin in zip(outer, begins, strict=False)]
    source = reader.value(
        form.image,
        (n, c, *(at // spread for at, spread in zip(met, spreads, strict=False)), x),
    )
    if scratch.dtype is not form.image.dtype:
        source = Cast(source, scratch.dtype)
    copy = Store(scratch, (n, *outer, x * spreads[-1] + begins[-1], c), source)
    axes = [(names[-1], sizes[-1]), (C, channels)]
    fill = _in_vectors(axes if is_channels_last(reader, form) else axes[::-1], copy)
    for at, spread, size in zip(met, spreads, sizes, strict=False):
        if spread > 1:
            fill = (Guard(at % spread, 1, fill),)
        fill = (Guard(-1, at, (Guard(at, (size - 1) * spread + 1, fill),)),)
    rows = [(name, size) for name, size in zip(names, scratch.shape[1:], strict=False)][:-1]
    return parallel_kernel([(N, batch), *rows], (*clear, *fill))


def _in_vectors(axes: list[tuple[str, Size]], store: Store) -> tuple[Statement, ...]:
    """A store for all places along axes, which become one where memory allows it."""
    kept, gone = merge_axes(axes, (store,))
    body = flattened((store,), gone)
    if not kept:
        return body
    *outer, (name, extent) = kept
    return nest(outer, (Loop(name, extent, body, Kind.VECTOR),))
