// System calls that fail on demand: preloaded into hermesd.
//
// FAULTY_CALLS names a page that the test process maps too (faulty_calls.py), with what shall fail.
// Only threads whose name begins with the page's `threads` are concerned, so that the HTTP API, by
// which a test looks at the broker, can be left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ACCEPT, RECEIVE, SEND, WAIT, CONTROL, EVENT, SYNC, WRITE, CALLS };

// One call of `every` on average fails with `error`, `times` times (-1: without end). With the error 0
// it is cut short instead.
struct fault {
    uint32_t every;  // 0: none
    uint32_t error;
    int32_t times;
    uint32_t hits;
    uint32_t calls;
};

struct page {
    struct fault faults[CALLS];
    uint32_t hangs[CALLS];  // these calls wait until this is 0
    uint32_t delays[CALLS];  // milliseconds that these calls take longer
    uint32_t hanging;
    uint64_t random;
    char threads[16];
};

static struct page none;
static struct page *page = &none;
static __typeof__(&accept4) next_accept4;
static __typeof__(&recv) next_recv;
static __typeof__(&recvmsg) next_recvmsg;
static __typeof__(&read) next_read;
static __typeof__(&send) next_send;
static __typeof__(&sendmsg) next_sendmsg;
static __typeof__(&write) next_write;
static __typeof__(&epoll_wait) next_epoll_wait;
static __typeof__(&epoll_ctl) next_epoll_ctl;
static __typeof__(&fsync) next_fsync;
static __typeof__(&fdatasync) next_fdatasync;
static __typeof__(&pwrite) next_pwrite;
static __typeof__(&pwritev) next_pwritev;

static void fail(const char *what) {
    dprintf(2, "faulty_calls: %s: %s\n", what, strerror(errno));
    abort();
}

// Runs before main, or before the first call of a library that is initialised earlier.
__attribute__((constructor)) static void begin(void) {
    if (next_pwritev) return;
#define FIND(name) \
    if (!(next_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name))) fail(#name)
    FIND(accept4);
    FIND(recv);
    FIND(recvmsg);
    FIND(read);
    FIND(send);
    FIND(sendmsg);
    FIND(write);
    FIND(epoll_wait);
    FIND(epoll_ctl);
    FIND(fsync);
    FIND(fdatasync);
    FIND(pwrite);
    FIND(pwritev);
#undef FIND
    const char *path = getenv("FAULTY_CALLS");
    if (!path) return;
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) fail(path);
    void *shared = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (shared == MAP_FAILED) fail(path);
    close(descriptor);
    page = shared;
}

static bool is_concerned(void) {
    static __thread char name[16];
    if (!name[0]) pthread_getname_np(pthread_self(), name, sizeof name);
    return strncmp(name, page->threads, strlen(page->threads)) == 0;
}

static uint64_t draw(void) {
    uint64_t value = __atomic_add_fetch(&page->random, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

// True when the call is to fail now; `error` is 0 when it is to be cut short.
static bool is_due(int call, int *error) {
    if (!is_concerned()) return false;
    struct fault *fault = &page->faults[call];
    __atomic_add_fetch(&fault->calls, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&page->hangs[call], __ATOMIC_ACQUIRE)) {
        __atomic_add_fetch(&page->hanging, 1, __ATOMIC_RELAXED);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        __atomic_sub_fetch(&page->hanging, 1, __ATOMIC_RELAXED);
    }
    uint32_t delay = __atomic_load_n(&page->delays[call], __ATOMIC_RELAXED);
    if (delay > 0)
        nanosleep(&(struct timespec){delay / 1000, (long)(delay % 1000) * 1000000}, NULL);
    uint32_t every = __atomic_load_n(&fault->every, __ATOMIC_ACQUIRE);
    if (every == 0 || (every > 1 && draw() % every != 0)) return false;
    int32_t times = __atomic_load_n(&fault->times, __ATOMIC_RELAXED);
    do {
        if (times == 0) return false;
    } while (times > 0 && !__atomic_compare_exchange_n(&fault->times, &times, times - 1, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_add_fetch(&fault->hits, 1, __ATOMIC_RELAXED);
    *error = (int)fault->error;
    return true;
}

#define FAIL_IF_DUE(call, cut_short)  \
    do {                              \
        int error = 0;                \
        if (is_due(call, &error)) {   \
            if (error != 0) {         \
                errno = error;        \
                return -1;            \
            }                         \
            cut_short;                \
        }                             \
    } while (0)

static size_t part(size_t count) { return count > 1 ? 1 + draw() % (count - 1) : count; }

int accept4(int descriptor, struct sockaddr *address, socklen_t *count, int flags) {
    begin();
    FAIL_IF_DUE(ACCEPT, );
    return next_accept4(descriptor, address, count, flags);
}

// MARK: Receiving

ssize_t recv(int descriptor, void *bytes, size_t count, int flags) {
    begin();
    FAIL_IF_DUE(RECEIVE, count = part(count < 64 ? count : 64));
    return next_recv(descriptor, bytes, count, flags);
}

ssize_t recvmsg(int descriptor, struct msghdr *message, int flags) {
    begin();
    FAIL_IF_DUE(RECEIVE, );
    return next_recvmsg(descriptor, message, flags);
}

enum kind { OTHER, SOCKET, COUNTER };

// A counter is read and written in eight bytes; so is no file of the broker.
static enum kind kind_of(int descriptor, size_t count) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) return OTHER;
    if (S_ISSOCK(status.st_mode)) return SOCKET;
    return (status.st_mode & S_IFMT) == 0 && count == 8 ? COUNTER : OTHER;
}

ssize_t read(int descriptor, void *bytes, size_t count) {
    begin();
    switch (kind_of(descriptor, count)) {
        case SOCKET: FAIL_IF_DUE(RECEIVE, count = part(count < 64 ? count : 64)); break;
        case COUNTER: FAIL_IF_DUE(EVENT, ); break;
        case OTHER: break;
    }
    return next_read(descriptor, bytes, count);
}

// MARK: Sending

ssize_t send(int descriptor, const void *bytes, size_t count, int flags) {
    begin();
    FAIL_IF_DUE(SEND, count = part(count));
    return next_send(descriptor, bytes, count, flags);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    begin();
    struct msghdr first;
    struct iovec run;
    FAIL_IF_DUE(SEND, {
        if (message->msg_iovlen > 0) {
            // A part of the first run alone.
            first = *message;
            run = message->msg_iov[0];
            run.iov_len = part(run.iov_len);
            first.msg_iov = &run;
            first.msg_iovlen = 1;
            message = &first;
        }
    });
    return next_sendmsg(descriptor, message, flags);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    begin();
    switch (kind_of(descriptor, count)) {
        case SOCKET: FAIL_IF_DUE(SEND, count = part(count)); break;
        case COUNTER: FAIL_IF_DUE(EVENT, ); break;
        case OTHER: break;
    }
    return next_write(descriptor, bytes, count);
}

// MARK: Events

int epoll_wait(int descriptor, struct epoll_event *events, int most, int milliseconds) {
    begin();
    FAIL_IF_DUE(WAIT, most = 1);
    return next_epoll_wait(descriptor, events, most, milliseconds);
}

int epoll_ctl(int descriptor, int operation, int other, struct epoll_event *event) {
    begin();
    // Removing needs no memory.
    if (operation != EPOLL_CTL_DEL) FAIL_IF_DUE(CONTROL, );
    return next_epoll_ctl(descriptor, operation, other, event);
}

// MARK: The disk

int fsync(int descriptor) {
    begin();
    FAIL_IF_DUE(SYNC, );
    return next_fsync(descriptor);
}

int fdatasync(int descriptor) {
    begin();
    FAIL_IF_DUE(SYNC, );
    return next_fdatasync(descriptor);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    begin();
    FAIL_IF_DUE(WRITE, count = part(count));
    return next_pwrite(descriptor, bytes, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *runs, int count, off_t offset) {
    begin();
    FAIL_IF_DUE(WRITE, count = count > 1 ? count / 2 : count);
    return next_pwritev(descriptor, runs, count, offset);
}

// The names of the same calls for files of any size; off_t has 64 bits here.
extern __typeof__(pwrite) pwrite64 __attribute__((alias("pwrite")));
extern __typeof__(pwritev) pwritev64 __attribute__((alias("pwritev")));
