#define _GNU_SOURCE
#include "CLinux.h"

#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

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

void hermes_trim_heap(void) {
    // Returns whether it has released anything, which nobody depends on.
    (void)malloc_trim(0);
}
