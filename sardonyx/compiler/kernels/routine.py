"""Routines: kernels that an operator's lowering writes by itself."""

from sardonyx.compiler.forms import Memories, Result
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.reader import Call, Reader, Scratch
from sardonyx.compiler.targets import Target


def routine_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """The kernels of a routine, on its arguments' memory; results nobody reads are scratch."""
    assert isinstance(group.root, Result)
    routine = group.root.routine
    reader = Reader(fusion, group)
    wanted = {form.number: form for form in group.results if isinstance(form, Result)}
    results = [
        reader.buffer(wanted[number])
        if number in wanted
        else reader.scratch(Scratch(room.shape, room.dtype))
        for number, room in enumerate(routine.results)
    ]
    scratch = [reader.scratch(Scratch(room.shape, room.dtype)) for room in routine.scratch]
    arguments = tuple(map(reader.stored, routine.arguments))
    memories = Memories(arguments, tuple(results), tuple(scratch), reader.report(), target.lanes)
    return [Call(kernel, reader.places(kernel), routine.work) for kernel in routine.write(memories)]
