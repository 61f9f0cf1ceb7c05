#define _GNU_SOURCE
#include "CLinux.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int hermes_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

ssize_t hermes_send(int descriptor, const void *bytes, size_t count) {
    return send(descriptor, bytes, count, MSG_NOSIGNAL);
}

ssize_t hermes_send_vector(int descriptor, void *segments, size_t count) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = segments;
    message.msg_iovlen = count;
    return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

void hermes_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void hermes_schedule_thread(int batch, uint64_t slice_ns) {
    if (sched_getscheduler(0) != SCHED_OTHER) return;
    // The kernel's struct sched_attr of 48 bytes (sched_setattr(2)), which glibc 2.36 lacks.
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.policy = batch ? SCHED_BATCH : SCHED_OTHER;
    attributes.runtime = slice_ns;
    // It sets the niceness too: keep what the broker was started with.
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

uint64_t hermes_monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

uint64_t hermes_monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

int64_t hermes_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void *hermes_map(size_t bytes) {
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *hermes_remap(void *memory, size_t bytes, size_t larger) {
    void *moved = mremap(memory, bytes, larger, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

void hermes_unmap(void *memory, size_t bytes) {
    // At vm.max_map_count the kernel does not divide a mapping that it has joined with its neighbours.
    // Its pages go all the same; only the addresses stay taken.
    if (munmap(memory, bytes) != 0) (void)madvise(memory, bytes, MADV_DONTNEED);
}

void hermes_trim_heap(void) {
    // Returns whether it has released anything, which nobody depends on.
    (void)malloc_trim(0);
}
