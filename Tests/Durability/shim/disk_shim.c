// A disk that remembers what was synchronised, and that fails on demand: preloaded into hermesd.
//
// Every change to a file below HERMES_SHIM_DATA is noted in HERMES_SHIM_LOG, together with the
// bytes that it replaces, before it is made; every fsync and fdatasync is noted once it has
// returned. After a SIGKILL the test process reads the log and takes back what a power cut would
// have taken (proof/disk_record.py, which describes the record below in Python).
//
// HERMES_SHIM_CONTROL is a page that the test process maps too. It says what shall fail or hang
// (proof/shim.py). Without HERMES_SHIM_LOG nothing is noted, and the page works all the same.
//
// Not noted: the write-ahead log's index (`-shm`), which SQLite rebuilds, and the lock file. Calls
// that this file does not follow leave an `escape` record, which fails the test.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// MARK: What the test process shares

enum { JOURNAL = 1, DATABASE = 2, WAL = 4, DIRECTORY = 8, OTHER = 16 };
enum { ON_SYNC, ON_WRITE, ON_ALLOCATE, ON_CREATE, OPERATIONS };

// Lets `skip` calls on these kinds of files pass, then fails `times` of them (-1: all) with `error`.
// A failing write first writes half of its bytes if `is_partial`.
struct fault {
    uint32_t error;
    uint32_t files;
    int32_t skip;
    int32_t times;
    uint32_t is_partial;
    uint32_t hits;
};

struct control {
    struct fault faults[OPERATIONS];
    // Synchronising one of these kinds of files takes so long, or until this is 0 again.
    uint32_t hang_files;
    uint32_t hang_ms;
    // Writes to these kinds of files do only half at a time.
    uint32_t short_files;
    uint32_t hanging;
    uint32_t calls[OPERATIONS];
};

enum record_type {
    WRITE = 1,
    RESIZE,
    SYNC,
    SYNC_FAILED,
    CREATE,
    RENAME,
    UNLINK,
    MAKE_DIRECTORY,
    SYNC_DIRECTORY,
    ESCAPE,
};

// Followed by `body_count` bytes: what a write or a cut replaces, or names that end with NUL.
struct record {
    uint32_t magic;
    uint32_t type;
    uint64_t sequence;
    uint64_t inode;
    uint64_t offset;  // of a write; the new size; the sequence at which a sync began
    uint64_t count;
    uint64_t old_size;
    uint32_t body_is_zero;  // the body is left out
    uint32_t body_count;
};
#define RECORD_MAGIC 0x4B534944u

// MARK: State

#define MOST_FILES 65536
struct file {
    uint64_t inode;
    uint32_t kind;  // 0: not ours
    bool appends;
};
static struct file files[MOST_FILES];
// Held over a note and the change that it notes, so that their order is the same.
static pthread_mutex_t guard = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char data_path[PATH_MAX];
static char trash_path[PATH_MAX];
static int log_descriptor = -1;
static uint64_t sequence;
static uint64_t trashed;
static struct control *control;
static struct control no_control;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static __typeof__(&open) next_open;
static __typeof__(&openat) next_openat;
static __typeof__(&close) next_close;
static __typeof__(&write) next_write;
static __typeof__(&writev) next_writev;
static __typeof__(&pwrite) next_pwrite;
static __typeof__(&pwritev) next_pwritev;
static __typeof__(&fsync) next_fsync;
static __typeof__(&fdatasync) next_fdatasync;
static __typeof__(&ftruncate) next_ftruncate;
static __typeof__(&posix_fallocate) next_posix_fallocate;
static __typeof__(&rename) next_rename;
static __typeof__(&unlink) next_unlink;
static __typeof__(&mkdir) next_mkdir;
static __typeof__(&mmap) next_mmap;
static __typeof__(&dup) next_dup;
static __typeof__(&sendfile_unused_marker) unused_marker;
