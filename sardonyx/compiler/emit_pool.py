"""How threads wait for work and share it, in LLVM's own text.

A job is a kernel, its arguments and a number of pieces, published in a slot. The caller takes
pieces from the front, workers from the back, so that a worker finds again in its cache what it made
before; a slot's ticket holds both ends, and how many more workers may join. A worker reads a job
only after it took a piece of it, and the caller leaves a job only when every piece is reported, so
neither sees another's job. A job of several steps is published again for each. The caller never
waits for a worker that has not begun: a pool that is busy, asleep or gone costs time, not results.
Who waits spins for a moment, then sleeps; a worker that finds itself on the caller's processor
leaves for another, since there they would only hold up each other.
"""

from functools import cache

import llvmlite.binding as llvm

from sardonyx.compiler.forks import FORKS
from sardonyx.compiler.pool_record import SLOTS
from sardonyx.compiler.processors import MACHINE, SHARES
from sardonyx.compiler.relocations import MACHINES
from sardonyx.record import record


@record
class Dialect:
    """What differs among processors: the text that says it in LLVM's words."""

    machine: str
    futex: int
    declarations: str
    pause: str
    save_modes: str
    load_modes: str


DIALECTS = {
    "x86_64": Dialect(
        "x86_64",
        202,
        "declare void @llvm.x86.sse2.pause()\n"
        "declare void @llvm.x86.sse.stmxcsr(ptr)\n"
        "declare void @llvm.x86.sse.ldmxcsr(ptr)",
        "call void @llvm.x86.sse2.pause()",
        "call void @llvm.x86.sse.stmxcsr(ptr %modes)",
        "call void @llvm.x86.sse.ldmxcsr(ptr %modes)",
    ),
    "aarch64": Dialect(
        "aarch64",
        98,
        "declare void @llvm.aarch64.isb(i32)\n"
        "declare i64 @llvm.aarch64.get.fpcr()\n"
        "declare void @llvm.aarch64.set.fpcr(i64)",
        "call void @llvm.aarch64.isb(i32 15)",
        "%fpcr = call i64 @llvm.aarch64.get.fpcr()\n store i64 %fpcr, ptr %modes, align 8",
        "%fpcr = load i64, ptr %modes, align 8\n call void @llvm.aarch64.set.fpcr(i64 %fpcr)",
    ),
}
"""By the machine's name, for Linux."""

HOST = DIALECTS[MACHINE] if SHARES else None
"""What this machine speaks; None where callers work alone."""

_TEXT = r"""
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @prctl(i32, ...)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i32 @pthread_sigmask(i32, ptr, ptr)
DECLARATIONS

@name = private constant [9 x i8] c"sardonyx\00"

define internal i64 @now() {
 %time = alloca [2 x i64], align 8
 %told = call i32 @clock_gettime(i32 1, ptr %time)
 %rest = getelementptr i8, ptr %time, i64 8
 %seconds = load i64, ptr %time, align 8
 %fraction = load i64, ptr %rest, align 8
 %whole = mul i64 %seconds, 1000000000
 %sum = add i64 %whole, %fraction
 ret i64 %sum
}

; Waits until a word is no longer what it was, or the pool's time to spin is over.
define internal i32 @linger(ptr %pool, ptr %word, i32 %was) {
entry:
 %limit = getelementptr i8, ptr %pool, i64 136
 %span = load i64, ptr %limit, align 8
 %begin = call i64 @now()
 br label %round
round:
 br label %spin
spin:
 %count = phi i32 [0, %round], [%counted, %wait]
 %is = load atomic i32, ptr %word acquire, align 4
 %same = icmp eq i32 %is, %was
 br i1 %same, label %wait, label %exit
wait:
 PAUSE
 %counted = add i32 %count, 1
 %brief = icmp ult i32 %counted, 32
 br i1 %brief, label %spin, label %look
look:
 %time = call i64 @now()
 %passed = sub i64 %time, %begin
 %early = icmp slt i64 %passed, %span
 br i1 %early, label %round, label %exit
exit:
 ret i32 %is
}

; Leaves the processor that work was last published on, where others may be used.
define internal void @leave(ptr %pool) {
entry:
 %processors = alloca [128 x i8], align 8
 %to_caller = getelementptr i8, ptr %pool, i64 4
 %there = load atomic i32, ptr %to_caller monotonic, align 4
 %here = call i32 @sched_getcpu()
 %same = icmp eq i32 %there, %here
 %known = icmp ult i32 %here, 1024
 %move = and i1 %same, %known
 br i1 %move, label %look, label %exit
look:
 %failed = call i32 @sched_getaffinity(i32 0, i64 128, ptr %processors)
 %found = icmp eq i32 %failed, 0
 br i1 %found, label %go, label %exit
go:
 %which = lshr i32 %here, 3
 %byte = getelementptr i8, ptr %processors, i32 %which
 %rest = and i32 %here, 7
 %narrow = trunc i32 %rest to i8
 %bit = shl i8 1, %narrow
 %all = load i8, ptr %byte, align 1
 %others = xor i8 %all, %bit
 store i8 %others, ptr %byte, align 1
 %moved = call i32 @sched_setaffinity(i32 0, i64 128, ptr %processors)
 store i8 %all, ptr %byte, align 1
 %restored = call i32 @sched_setaffinity(i32 0, i64 128, ptr %processors)
 br label %exit
exit:
 ret void
}

; Runs a piece of the job in a slot.
define internal void @perform(ptr %slot, i64 %piece) {
 %pf = getelementptr i8, ptr %slot, i64 136
 %pa = getelementptr i8, ptr %slot, i64 144
 %pc = getelementptr i8, ptr %slot, i64 152
 %pn = getelementptr i8, ptr %slot, i64 160
 %f = load ptr, ptr %pf, align 8
 %a = load ptr, ptr %pa, align 8
 %c = load i64, ptr %pc, align 8
 %n = load i64, ptr %pn, align 8
 %ps = getelementptr i8, ptr %slot, i64 8
 %s = load i64, ptr %ps, align 8
 %next = add i64 %piece, 1
 %b0 = mul i64 %c, %piece
 %b = udiv i64 %b0, %n
 %e0 = mul i64 %c, %next
 %e = udiv i64 %e0, %n
 call void %f(ptr %a, i64 %b, i64 %e, i64 %s)
 ret void
}

; Takes a piece by adding %step to the ticket, which must be at least %least. The ticket as it was;
; 0 where there was nothing to take.
define internal i64 @take(ptr %slot, i64 %step, i64 %least) {
entry:
 br label %look
look:
 %ticket = load atomic i64, ptr %slot acquire, align 8
 %front = and i64 %ticket, 1048575
 %higher = lshr i64 %ticket, 20
 %back = and i64 %higher, 1048575
 %left = icmp ult i64 %front, %back
 %open = icmp uge i64 %ticket, %least
 %may = and i1 %left, %open
 br i1 %may, label %try, label %none
try:
 %following = add i64 %ticket, %step
 %swap = cmpxchg ptr %slot, i64 %ticket, i64 %following acq_rel monotonic
 %got = extractvalue { i64, i1 } %swap, 1
 br i1 %got, label %taken, label %look
taken:
 ret i64 %ticket
none:
 ret i64 0
}

; Helps with the job in a slot until it has no pieces left; whether there were any.
define internal i1 @help(ptr %slot) {
entry:
 %done = getelementptr i8, ptr %slot, i64 64
 %modes = getelementptr i8, ptr %slot, i64 168
 %first = call i64 @take(ptr %slot, i64 JOIN, i64 SEAT)
 %joined = icmp ne i64 %first, 0
 br i1 %joined, label %begin, label %none
begin:
 LOAD_MODES
 br label %work
work:
 %ticket = phi i64 [%first, %begin], [%another, %work]
 %count = phi i32 [0, %begin], [%counted, %work]
 %higher = lshr i64 %ticket, 20
 %back = and i64 %higher, 1048575
 %piece = sub i64 %back, 1
 call void @perform(ptr %slot, i64 %piece)
 %counted = add i32 %count, 1
 %another = call i64 @take(ptr %slot, i64 BACK, i64 0)
 %more = icmp ne i64 %another, 0
 br i1 %more, label %work, label %report
report:
 %before = atomicrmw add ptr %done, i32 %counted acq_rel
 %sleeping = and i32 %before, 1073741824
 %asleep = icmp ne i32 %sleeping, 0
 br i1 %asleep, label %wake, label %exit
wake:
 %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %done, i32 129, i32 1)
 br label %exit
exit:
 ret i1 true
none:
 ret i1 false
}

; Gives this thread its name, and leaves signals to the interpreter's threads, all but faults of its
; own (SIGILL, SIGBUS, SIGFPE, SIGSEGV).
define internal void @settle() {
 %signals = alloca [128 x i8], align 8
 %named = call i32 (i32, ...) @prctl(i32 15, ptr @name)
 %all = call i32 @sigfillset(ptr %signals)
 %ill = call i32 @sigdelset(ptr %signals, i32 4)
 %bus = call i32 @sigdelset(ptr %signals, i32 7)
 %fpe = call i32 @sigdelset(ptr %signals, i32 8)
 %segv = call i32 @sigdelset(ptr %signals, i32 11)
 %masked = call i32 @pthread_sigmask(i32 0, ptr %signals, ptr null)
 ret void
}

; What a worker's thread does until it is to end.
define ptr @worker(ptr %pool) {
entry:
 call void @settle()
 %sleepers = getelementptr i8, ptr %pool, i64 64
 %stop = getelementptr i8, ptr %pool, i64 128
 br label %begin
begin:
 %start = phi i64 [0, %entry], [%after, %helped], [%start, %wait], [%start, %sleep]
 %seen = load atomic i32, ptr %pool seq_cst, align 4
 %halt = load atomic i32, ptr %stop acquire, align 4
 %halted = icmp ne i32 %halt, 0
 br i1 %halted, label %exit, label %search
search:
 call void @leave(ptr %pool)
 br label %scan
scan:
 %tried = phi i64 [0, %search], [%count, %next]
 %number = add i64 %start, %tried
 %place = and i64 %number, LAST
 %offset = mul i64 %place, 192
 %from = add i64 %offset, 192
 %slot = getelementptr i8, ptr %pool, i64 %from
 %useful = call i1 @help(ptr %slot)
 br i1 %useful, label %helped, label %next
helped:
 %after = add i64 %place, 1
 br label %begin
next:
 %count = add i64 %tried, 1
 %others = icmp ult i64 %count, COUNT
 br i1 %others, label %scan, label %wait
wait:
 %now = call i32 @linger(ptr %pool, ptr %pool, i32 %seen)
 %changed = icmp ne i32 %now, %seen
 br i1 %changed, label %begin, label %sleep
sleep:
 %o1 = atomicrmw add ptr %sleepers, i32 1 seq_cst
 %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 128, i32 %seen, ptr null)
 %o2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
 br label %begin
exit:
 ret ptr null
}

define void @halt(ptr %pool) {
 %stop = getelementptr i8, ptr %pool, i64 128
 store atomic i32 1, ptr %stop release, align 4
 %o = atomicrmw add ptr %pool, i32 1 seq_cst
 %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 129, i32 2147483647)
 ret void
}

; Takes a free slot; null where there is none.
define internal ptr @occupy(ptr %pool) {
entry:
 br label %scan
scan:
 %tried = phi i64 [0, %entry], [%count, %next]
 %offset = mul i64 %tried, 192
 %from = add i64 %offset, 192
 %slot = getelementptr i8, ptr %pool, i64 %from
 %taken = getelementptr i8, ptr %slot, i64 128
 %swap = cmpxchg ptr %taken, i32 0, i32 1 acquire monotonic
 %got = extractvalue { i32, i1 } %swap, 1
 br i1 %got, label %found, label %next
next:
 %count = add i64 %tried, 1
 %others = icmp ult i64 %count, COUNT
 br i1 %others, label %scan, label %none
found:
 ret ptr %slot
none:
 ret ptr null
}

; Publishes a step of the job in a slot to at most %seats workers; the caller has its first piece.
define internal void @publish(ptr %pool, ptr %slot, i64 %pieces, i64 %seats) {
entry:
 %done = getelementptr i8, ptr %slot, i64 64
 %modes = getelementptr i8, ptr %slot, i64 168
 %sleepers = getelementptr i8, ptr %pool, i64 64
 SAVE_MODES
 %to_here = getelementptr i8, ptr %pool, i64 4
 %here = call i32 @sched_getcpu()
 store atomic i32 %here, ptr %to_here monotonic, align 4
 store atomic i32 0, ptr %done monotonic, align 4
 %others = sub i64 %pieces, 1
 %fewer = icmp ult i64 %seats, %others
 %helpers = select i1 %fewer, i64 %seats, i64 %others
 %high = shl i64 %helpers, 40
 %back = shl i64 %pieces, 20
 %both = or i64 %high, %back
 %ticket = or i64 %both, 1
 store atomic i64 %ticket, ptr %slot release, align 8
 %o = atomicrmw add ptr %pool, i32 1 seq_cst
 %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
 %none = icmp eq i32 %asleep, 0
 br i1 %none, label %exit, label %wake
wake:
 %most = trunc i64 %helpers to i32
 %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 129, i32 %most)
 br label %exit
exit:
 ret void
}

; Waits until workers have reported %rest pieces.
define internal void @await(ptr %pool, ptr %slot, i32 %rest) {
entry:
 %done = getelementptr i8, ptr %slot, i64 64
 br label %look
look:
 %is = load atomic i32, ptr %done acquire, align 4
 %count = and i32 %is, 1073741823
 %all = icmp eq i32 %count, %rest
 br i1 %all, label %exit, label %wait
wait:
 %now = call i32 @linger(ptr %pool, ptr %done, i32 %is)
 %same = icmp eq i32 %now, %is
 br i1 %same, label %mark, label %look
mark:
 %marked = or i32 %is, 1073741824
 %swap = cmpxchg ptr %done, i32 %is, i32 %marked seq_cst monotonic
 %got = extractvalue { i32, i1 } %swap, 1
 br i1 %got, label %sleep, label %look
sleep:
 %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %done, i32 128, i32 %marked, ptr null)
 br label %look
exit:
 ret void
}

; Runs tasks of a kernel in pieces, together with workers that are free, in one step or several, of
; which none begins once the word at %stop is not 0. A team's record: the address of this function,
; that of the pool, how many workers may help.
define void @dispatch(
 ptr %team, ptr %f, ptr %a, i64 %count, i64 %pieces, i64 %steps, ptr %stop) {
entry:
 %few = icmp slt i64 %pieces, 2
 br i1 %few, label %single, label %many
many:
 %to_pool = getelementptr i8, ptr %team, i64 8
 %to_seats = getelementptr i8, ptr %team, i64 16
 %pool = load ptr, ptr %to_pool, align 8
 %seats = load i64, ptr %to_seats, align 8
 %slot = call ptr @occupy(ptr %pool)
 %alone = icmp eq ptr %slot, null
 br i1 %alone, label %single, label %fork
single:
 %at = phi i64 [0, %entry], [0, %many], [%then, %single]
 call void %f(ptr %a, i64 0, i64 %count, i64 %at)
 %then = add i64 %at, 1
 %rests = icmp slt i64 %then, %steps
 %wanted = load volatile i64, ptr %stop
 %onwards = icmp eq i64 %wanted, 0
 %others = and i1 %rests, %onwards
 br i1 %others, label %single, label %exit
exit:
 ret void
fork:
 %pf = getelementptr i8, ptr %slot, i64 136
 %pa = getelementptr i8, ptr %slot, i64 144
 %pc = getelementptr i8, ptr %slot, i64 152
 %pn = getelementptr i8, ptr %slot, i64 160
 store ptr %f, ptr %pf, align 8
 store ptr %a, ptr %pa, align 8
 store i64 %count, ptr %pc, align 8
 store i64 %pieces, ptr %pn, align 8
 br label %begin
begin:
 %step = phi i64 [0, %fork], [%following, %join]
 %ps = getelementptr i8, ptr %slot, i64 8
 store i64 %step, ptr %ps, align 8
 call void @publish(ptr %pool, ptr %slot, i64 %pieces, i64 %seats)
 br label %work
work:
 %piece = phi i64 [0, %begin], [%next, %more]
 %mine = phi i32 [0, %begin], [%counted, %more]
 call void @perform(ptr %slot, i64 %piece)
 %counted = add i32 %mine, 1
 %ticket = call i64 @take(ptr %slot, i64 1, i64 0)
 %got = icmp ne i64 %ticket, 0
 br i1 %got, label %more, label %join
more:
 %next = and i64 %ticket, 1048575
 br label %work
join:
 %total = trunc i64 %pieces to i32
 %rest = sub i32 %total, %counted
 call void @await(ptr %pool, ptr %slot, i32 %rest)
 %following = add i64 %step, 1
 %left = icmp slt i64 %following, %steps
 %asked = load volatile i64, ptr %stop
 %going = icmp eq i64 %asked, 0
 %again = and i1 %left, %going
 br i1 %again, label %begin, label %leave
leave:
 %taken = getelementptr i8, ptr %slot, i64 128
 store atomic i32 0, ptr %taken release, align 4
 ret void
}
"""


def pool_text(dialect: Dialect) -> str:
    """The functions `worker(pool)`, `halt(pool)` and `dispatch(team, kernel, ...)`."""
    seat, back = 1 << 40, 1 << 20
    words = {
        "DECLARATIONS": dialect.declarations, "PAUSE": dialect.pause, "FUTEX": dialect.futex,
        "SAVE_MODES": dialect.save_modes, "LOAD_MODES": dialect.load_modes,
        "JOIN": -seat - back, "SEAT": seat, "BACK": -back, "LAST": SLOTS - 1, "COUNT": SLOTS,
    }  # fmt: skip
    text = _TEXT
    for word, meaning in words.items():
        text = text.replace(word, str(meaning))
    return text


@cache
def emit_pool(dialect: Dialect | None = HOST) -> bytes:
    """The functions as object code, made quickly: what they wait for outweighs what they do.

    Nothing where callers work alone.
    """
    if dialect is None:
        return b""
    with FORKS.held_off():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        parsed = llvm.parse_assembly(pool_text(dialect))
        parsed.verify()
        kind = llvm.Target.from_triple(f"{dialect.machine}-unknown-linux-gnu")
        model = MACHINES[dialect.machine].model
        machine = kind.create_target_machine(opt=0, codemodel=model, jit=True)
        return bytes(machine.emit_object(parsed))
