"""How threads wait for work and share it, in LLVM's own text.

A job is a kernel, its arguments and a number of pieces. Threads take pieces by moving one ticket
forward; the caller takes them too, and waits only for pieces that others have begun. A thread that
is late therefore costs nothing, and one that takes a piece of a job that is over cannot: the ticket
carries the job's number. Threads spin for a while, then sleep in the kernel.
"""

import platform
import sys

SHARES = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether sleeping and waking is known for this system; elsewhere the caller works alone."""

POOL_BYTES = 512
"""Size of a pool's record: at 0 the ticket (the next piece, above it the number of the job), at 64
how many threads sleep, at 128 how many pieces are done, at 192 whether a job runs, at 256 the job
(kernel, arguments, tasks, pieces), at 320 whether threads are to end."""

_SHARED = r"""
declare i64 @syscall(i64, ...)
declare void @llvm.x86.sse2.pause()

; Takes pieces of the job whose number is %job until there are none left.
define void @help(ptr %pool, i64 %job) {
entry:
 %done = getelementptr i8, ptr %pool, i64 128
 %pf = getelementptr i8, ptr %pool, i64 256
 %pa = getelementptr i8, ptr %pool, i64 264
 %pc = getelementptr i8, ptr %pool, i64 272
 %pn = getelementptr i8, ptr %pool, i64 280
 %f = load ptr, ptr %pf
 %a = load ptr, ptr %pa
 %c = load i64, ptr %pc
 %n = load i64, ptr %pn
 br label %look
look:
 %ticket = load atomic i64, ptr %pool acquire, align 8
 %number = lshr i64 %ticket, 32
 %same = icmp eq i64 %number, %job
 br i1 %same, label %left, label %exit
left:
 %piece = and i64 %ticket, 4294967295
 %some = icmp ult i64 %piece, %n
 br i1 %some, label %take, label %exit
take:
 %following = add i64 %ticket, 1
 %swap = cmpxchg ptr %pool, i64 %ticket, i64 %following acq_rel monotonic
 %got = extractvalue { i64, i1 } %swap, 1
 br i1 %got, label %work, label %look
work:
 %next = add i64 %piece, 1
 %b0 = mul i64 %c, %piece
 %b = udiv i64 %b0, %n
 %e0 = mul i64 %c, %next
 %e = udiv i64 %e0, %n
 call void %f(ptr %a, i64 %b, i64 %e)
 %o = atomicrmw add ptr %done, i64 1 release
 br label %look
exit:
 ret void
}

define void @worker(ptr %pool, i64 %id) {
entry:
 %sleepers = getelementptr i8, ptr %pool, i64 64
 %stop = getelementptr i8, ptr %pool, i64 320
 %epoch = getelementptr i8, ptr %pool, i64 4
 br label %loop
loop:
 %seen = phi i32 [0, %entry], [%now, %help]
 br label %spin
spin:
 %s = phi i32 [0, %loop], [%s1, %again]
 %now = load atomic i32, ptr %epoch acquire, align 4
 %changed = icmp ne i32 %now, %seen
 br i1 %changed, label %work, label %wait
wait:
 call void @llvm.x86.sse2.pause()
 %s1 = add i32 %s, 1
 %brief = icmp ult i32 %s1, 4000
 br i1 %brief, label %again, label %sleep
sleep:
 %o1 = atomicrmw add ptr %sleepers, i32 1 seq_cst
 %r = call i64 (i64, ...) @syscall(i64 202, ptr %epoch, i32 128, i32 %seen, ptr null)
 %o2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
 br label %again
again:
 br label %spin
work:
 %halt = load atomic i32, ptr %stop acquire, align 4
 %halted = icmp ne i32 %halt, 0
 br i1 %halted, label %exit, label %help
help:
 %job = zext i32 %now to i64
 call void @help(ptr %pool, i64 %job)
 br label %loop
exit:
 ret void
}

define void @wake(ptr %pool) {
entry:
 %sleepers = getelementptr i8, ptr %pool, i64 64
 %epoch = getelementptr i8, ptr %pool, i64 4
 %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
 %none = icmp eq i32 %asleep, 0
 br i1 %none, label %exit, label %call
call:
 %r = call i64 (i64, ...) @syscall(i64 202, ptr %epoch, i32 129, i32 2147483647)
 br label %exit
exit:
 ret void
}

define void @halt(ptr %pool) {
 %stop = getelementptr i8, ptr %pool, i64 320
 %epoch = getelementptr i8, ptr %pool, i64 4
 store atomic i32 1, ptr %stop release, align 4
 %o = atomicrmw add ptr %pool, i64 4294967296 seq_cst
 %r = call i64 (i64, ...) @syscall(i64 202, ptr %epoch, i32 129, i32 2147483647)
 ret void
}

define void @dispatch(ptr %pool, ptr %f, ptr %a, i64 %count, i64 %pieces) {
entry:
 %busy = getelementptr i8, ptr %pool, i64 192
 %many = icmp sgt i64 %pieces, 1
 br i1 %many, label %try, label %alone
try:
 %taken = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
 %got = extractvalue { i32, i1 } %taken, 1
 br i1 %got, label %fork, label %alone
fork:
 %done = getelementptr i8, ptr %pool, i64 128
 %pf = getelementptr i8, ptr %pool, i64 256
 %pa = getelementptr i8, ptr %pool, i64 264
 %pc = getelementptr i8, ptr %pool, i64 272
 %pn = getelementptr i8, ptr %pool, i64 280
 store ptr %f, ptr %pf
 store ptr %a, ptr %pa
 store i64 %count, ptr %pc
 store i64 %pieces, ptr %pn
 store atomic i64 0, ptr %done release, align 8
 %old = load atomic i64, ptr %pool monotonic, align 8
 %number = lshr i64 %old, 32
 %bigger = add i64 %number, 1
 %job = and i64 %bigger, 4294967295
 %ticket = shl i64 %job, 32
 %was = atomicrmw xchg ptr %pool, i64 %ticket seq_cst
 call void @wake(ptr %pool)
 call void @help(ptr %pool, i64 %job)
 br label %join
join:
 %spins = phi i32 [0, %fork], [%spins1, %again]
 %finished = load atomic i64, ptr %done acquire, align 8
 %all = icmp eq i64 %finished, %pieces
 br i1 %all, label %free, label %wait
wait:
 call void @llvm.x86.sse2.pause()
 %spins1 = add i32 %spins, 1
 %brief = icmp ult i32 %spins1, 1000
 br i1 %brief, label %again, label %yield
yield:
 %y = call i64 (i64, ...) @syscall(i64 24)
 br label %again
again:
 br label %join
free:
 store atomic i32 0, ptr %busy release, align 4
 ret void
alone:
 call void %f(ptr %a, i64 0, i64 %count)
 ret void
}
"""

_ALONE = r"""
define void @worker(ptr %pool, i64 %id) {
 ret void
}

define void @halt(ptr %pool) {
 ret void
}

define void @dispatch(ptr %pool, ptr %f, ptr %a, i64 %count, i64 %pieces) {
 call void %f(ptr %a, i64 0, i64 %count)
 ret void
}
"""

POOL = _SHARED if SHARES else _ALONE
"""The functions `worker`, `halt` and `dispatch`."""
