#define _GNU_SOURCE
#include "CBench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int bench_wait(int poller, struct epoll_event *events, int capacity, int64_t timeout_ns) {
    if (timeout_ns < 0) return epoll_wait(poller, events, capacity, -1);
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int count = epoll_pwait2(poller, events, capacity, &timeout, NULL);
    // Kernels before 5.11 know whole milliseconds only.
    if (count < 0 && errno == ENOSYS)
        return epoll_wait(poller, events, capacity, (int)((timeout_ns + 999999) / 1000000));
    return count;
}

int bench_connect(uint32_t address, uint16_t port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int one = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_in peer = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    if (connect(descriptor, (struct sockaddr *)&peer, sizeof peer) != 0 && errno != EINPROGRESS) {
        int code = errno;
        close(descriptor);
        errno = code;
        return -1;
    }
    return descriptor;
}

int bench_probe(uint32_t address, uint16_t port, int timeout_ms) {
    int descriptor = bench_connect(address, port);
    if (descriptor < 0) return errno;
    struct pollfd wanted = {.fd = descriptor, .events = POLLOUT};
    int code = 0;
    int count = poll(&wanted, 1, timeout_ms);
    if (count == 0) {
        code = ETIMEDOUT;
    } else if (count < 0) {
        code = errno;
    } else {
        socklen_t size = sizeof code;
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size);
    }
    close(descriptor);
    return code;
}

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t bench_process_cpu_ns(pid_t process) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

uint64_t bench_prepare_process(void) {
    // The kernel may otherwise wake a sleeper up to 50 us late.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}
