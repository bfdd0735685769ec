"""How a pool of workers lies in memory: known to who makes it and to the code that runs there."""

SLOTS = 8
"""How many callers can share their work at once; one more works alone."""
MOST_THREADS = 1 << 10
"""How many threads a team can have; a job can be cut into a thousand times as many pieces."""
POOL_BYTES = 192 + SLOTS * 192
"""Size of a pool's record: at 0 how often work was published, at 4 on which processor, at 64 how
many workers sleep, at 128 whether they are to end, at 136 for how many nanoseconds who waits spins,
then the slots.

A slot: at 0 the ticket (front piece, from bit 20 the piece after the back, from bit 40 free seats),
at 8 the step, at 64 how many pieces workers did (bit 30: the caller sleeps), at 128 whether it is
taken, at 136 the kernel, its arguments, tasks and pieces, at 168 the caller's modes of
floating-point numbers."""
POOL_SPIN = 136
"""Where a pool's record says how long to spin."""
