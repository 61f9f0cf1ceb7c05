// Tells ThreadSanitizer of Swift's mutexes: preloaded into a hermesd that was built with it.
//
// A mutex of Swift's Synchronization is taken and left by an atomic operation, which the sanitizer sees,
// unless two threads want it at once: then the library's own functions do it, which are not instrumented,
// and everything that the mutex guards looks like a race. In Swift's calling convention the mutex comes
// in the context register.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

#define SWIFT __attribute__((swiftcall))
#define CONTEXT __attribute__((swift_context))
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, CONTEXT void *mutex) __asm__(LOCK);
SWIFT bool try_lock_slow(CONTEXT void *mutex) __asm__(TRY_LOCK);
SWIFT void unlock_slow(CONTEXT void *mutex) __asm__(UNLOCK);

static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

SWIFT void lock_slow(uint32_t thread, CONTEXT void *mutex) {
    ((SWIFT void (*)(uint32_t, CONTEXT void *))next(LOCK))(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT bool try_lock_slow(CONTEXT void *mutex) {
    bool has_taken = ((SWIFT bool (*)(CONTEXT void *))next(TRY_LOCK))(mutex);
    if (has_taken && __tsan_acquire) __tsan_acquire(mutex);
    return has_taken;
}

SWIFT void unlock_slow(CONTEXT void *mutex) {
    if (__tsan_release) __tsan_release(mutex);
    ((SWIFT void (*)(CONTEXT void *))next(UNLOCK))(mutex);
}
