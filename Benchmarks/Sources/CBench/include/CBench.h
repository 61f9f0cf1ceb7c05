// System calls of the load generator that Glibc's Swift module leaves out or wraps badly.
#pragma once

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/// epoll_wait with a timeout in nanoseconds; -1 waits without end. Returns -1 with errno.
int bench_wait(int poller, struct epoll_event *events, int capacity, int64_t timeout_ns);

/// A non-blocking TCP socket that connects to an IPv4 address in host byte order; -1 with errno.
/// The connection may still be under way when this returns.
int bench_connect(uint32_t address, uint16_t port);

/// Waits at most `timeout_ms` for a connection to be made and closes it. Returns 0 or an errno.
int bench_probe(uint32_t address, uint16_t port, int timeout_ms);

/// Nanoseconds of CLOCK_MONOTONIC.
uint64_t bench_now_ns(void);

/// CPU time of all threads of a process, user and system, in nanoseconds; -1 when there is none.
int64_t bench_process_cpu_ns(pid_t process);

/// Makes timeouts of this thread exact, raises the descriptor limit of this process as far as it may
/// go, and returns that limit.
uint64_t bench_prepare_process(void);
