// System calls and headers that Glibc's Swift module leaves out, such as epoll, eventfd and
// accept4.
#pragma once

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

/// accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC, and no peer address.
int hermes_accept(int listener);

/// send with MSG_NOSIGNAL: sending to a closed peer is an error, not a signal.
ssize_t hermes_send(int descriptor, const void *bytes, size_t count);

/// sendmsg with MSG_NOSIGNAL over `count` runs of bytes, laid out as iovec.
ssize_t hermes_send_vector(int descriptor, void *segments, size_t count);

/// malloc_trim: gives free heap memory of the C library back to the system; may take milliseconds.
void hermes_trim_heap(void);

/// Memory of its own for `bytes` bytes, a whole number of pages; NULL when the kernel has none. A page
/// takes memory once it is written to.
void *hermes_map(size_t bytes);

/// Makes such memory larger, at another place if need be, without copying it. NULL when the kernel has
/// no memory; the old one then stays as it is.
void *hermes_remap(void *memory, size_t bytes, size_t larger);

/// Gives such memory back to the system at once.
void hermes_unmap(void *memory, size_t bytes);

/// Names the calling thread; the name has at most 15 bytes.
void hermes_name_thread(const char *name);

/// Lets the calling thread run in slices of `slice_ns` (100,000 to 100,000,000; 0 is the kernel's
/// own), and with `batch` under SCHED_BATCH. Its share of the processors stays. Kernels before 6.12
/// ignore the slice. Nothing changes under another policy than SCHED_OTHER, which the operator has
/// chosen then, or when the kernel refuses.
void hermes_schedule_thread(int batch, uint64_t slice_ns);

/// Milliseconds of CLOCK_MONOTONIC.
uint64_t hermes_monotonic_ms(void);

/// Microseconds of CLOCK_MONOTONIC.
uint64_t hermes_monotonic_us(void);

/// Milliseconds since 1970 of CLOCK_REALTIME.
int64_t hermes_wall_ms(void);
