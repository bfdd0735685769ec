"""How addresses are written into object code: a record for each kind, on each machine."""

from collections.abc import Mapping
from enum import Enum

from sardonyx.errors import UnsupportedError
from sardonyx.record import record


class Origin(Enum):
    """What a value is counted from."""

    ZERO = 0
    PLACE = 1
    PAGE = 2
    """The begin of the 4096 bytes around the place; the value is then such a begin too."""


class Way(Enum):
    """Whether a value is the symbol's own address or that of its entry (see `Machine`)."""

    DIRECT = 0
    NEAR = 1
    """The code of the entry, where the symbol is too far away for a call."""
    TABLE = 2
    """The address in the entry."""


@record
class Relocation:
    """Where a value goes: `width` of its bits, from `shift` on, at the bit `at` of what is there.

    Of an `exact` one no bits may be lost above; none are ever lost below.
    """

    width: int
    origin: Origin = Origin.ZERO
    shift: int = 0
    at: int = 0
    exact: bool = True
    way: Way = Way.DIRECT
    split: int = 0
    """How many of its lowest bits lie at bit 29 instead, as in `adrp`."""

    def value(self, address: int, place: int) -> int:
        """What is to be written at a place for an address; any number of bits."""
        if self.origin is Origin.ZERO:
            return address
        if self.origin is Origin.PLACE:
            return address - place
        return (address & -PAGE) - (place & -PAGE)

    def reaches(self, value: int) -> bool:
        """Whether the value can be written."""
        reach = 1 << (self.width + self.shift - 1)
        whole = value & (1 << self.shift) - 1 == 0
        return whole and (not self.exact or -reach <= value < reach)

    def patch(self, word: int, value: int) -> int:
        """The instruction that was there, with the value in it."""
        if not self.reaches(value):
            raise UnsupportedError(f"an instruction cannot say the address or distance {value}")
        bits = value >> self.shift & (1 << self.width) - 1
        low, high = bits & (1 << self.split) - 1, bits >> self.split
        mask = (1 << self.width - self.split) - 1 << self.at | (1 << self.split) - 1 << 29
        return word & ~mask | high << self.at | low << 29


@record
class Machine:
    """What object code of a kind of processor needs.

    Where calls reach only so far, a symbol gets an entry beside the code: instructions that jump to
    the address behind them, which loads of addresses can take from there.
    """

    number: int
    """In the header of an object."""
    relocations: Mapping[int, Relocation]
    model: str = "jitdefault"
    """LLVM's word for the code that needs these: how far apart it takes things to be."""
    jump: bytes = b""
    """What an entry begins with."""

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return len(self.jump) + 8


PAGE = 1 << 12

MACHINES = {
    "x86_64": Machine(
        62,
        {
            1: Relocation(64, exact=False),  # 64
            24: Relocation(64, Origin.PLACE, exact=False),  # PC64
        },
    ),
    "aarch64": Machine(
        183,
        {
            257: Relocation(64, exact=False),  # ABS64
            260: Relocation(64, Origin.PLACE, exact=False),  # PREL64
            261: Relocation(32, Origin.PLACE),  # PREL32
            275: Relocation(21, Origin.PAGE, 12, 5, split=2),  # ADR_PREL_PG_HI21
            277: Relocation(12, at=10, exact=False),  # ADD_ABS_LO12_NC
            278: Relocation(12, at=10, exact=False),  # LDST8_ABS_LO12_NC
            282: Relocation(26, Origin.PLACE, 2, way=Way.NEAR),  # JUMP26
            283: Relocation(26, Origin.PLACE, 2, way=Way.NEAR),  # CALL26
            284: Relocation(11, Origin.ZERO, 1, 10, exact=False),  # LDST16_ABS_LO12_NC
            285: Relocation(10, Origin.ZERO, 2, 10, exact=False),  # LDST32_ABS_LO12_NC
            286: Relocation(9, Origin.ZERO, 3, 10, exact=False),  # LDST64_ABS_LO12_NC
            299: Relocation(8, Origin.ZERO, 4, 10, exact=False),  # LDST128_ABS_LO12_NC
            311: Relocation(21, Origin.PAGE, 12, 5, way=Way.TABLE, split=2),  # ADR_GOT_PAGE
            312: Relocation(9, Origin.ZERO, 3, 10, exact=False, way=Way.TABLE),  # LD64_GOT_LO12_NC
        },
        "small",
        bytes.fromhex("50000058" "00021fd6"),
    ),
}  # fmt: skip
"""By the machine's name; relocations by their number, with their name in ELF behind.

The jump of aarch64 is `ldr x16, #8; br x16`."""
