// A disk that remembers what was synchronised, and that fails on demand: preloaded into hermesd.
//
// Every change to a file below DISK_SHIM_DATA is noted in DISK_SHIM_LOG, together with the
// bytes that it replaces, before it is made; every fsync and fdatasync is noted once it has
// returned. After a SIGKILL the test process reads the log and takes back what a power cut would
// have taken (proof/disk_record.py, which describes the record below in Python).
//
// DISK_SHIM_CONTROL is a page that the test process maps too. It says what shall fail or hang
// (proof/shim.py). Without DISK_SHIM_LOG nothing is noted, and the page works all the same.
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
#include <sys/sendfile.h>
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
    // Reading one of these kinds of files takes until this is 0 again.
    uint32_t hang_reads;
    uint32_t reading;
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
static bool has_begun;

static __typeof__(&open) next_open;
static __typeof__(&openat) next_openat;
static __typeof__(&close) next_close;
static __typeof__(&write) next_write;
static __typeof__(&writev) next_writev;
static __typeof__(&pread) next_pread;
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
static __typeof__(&dup2) next_dup2;
static __typeof__(&dup3) next_dup3;
static __typeof__(&fcntl) next_fcntl;
static __typeof__(&sendfile) next_sendfile;
static __typeof__(&copy_file_range) next_copy_file_range;
static __typeof__(&link) next_link;
static __typeof__(&linkat) next_linkat;
static __typeof__(&renameat) next_renameat;
static __typeof__(&unlinkat) next_unlinkat;

static void fail(const char *what) {
    dprintf(2, "disk_shim: %s: %s\n", what, strerror(errno));
    abort();
}

// Runs before main, or before the first call: the loader initialises a preloaded library last, and
// other libraries open and map files as they are initialised. No second thread runs by then.
__attribute__((constructor)) static void begin(void) {
    if (has_begun) return;
    has_begun = true;
#define FIND(name)                                                       \
    if (!(next_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name))) fail(#name)
    FIND(open);
    FIND(openat);
    FIND(close);
    FIND(write);
    FIND(writev);
    FIND(pread);
    FIND(pwrite);
    FIND(pwritev);
    FIND(fsync);
    FIND(fdatasync);
    FIND(ftruncate);
    FIND(posix_fallocate);
    FIND(rename);
    FIND(unlink);
    FIND(mkdir);
    FIND(mmap);
    FIND(dup);
    FIND(dup2);
    FIND(dup3);
    FIND(fcntl);
    FIND(sendfile);
    FIND(copy_file_range);
    FIND(link);
    FIND(linkat);
    FIND(renameat);
    FIND(unlinkat);
#undef FIND
    control = &no_control;
    const char *data = getenv("DISK_SHIM_DATA");
    const char *log = getenv("DISK_SHIM_LOG");
    const char *page = getenv("DISK_SHIM_CONTROL");
    if (!data || strlen(data) >= sizeof data_path - NAME_MAX) return;
    strcpy(data_path, data);
    if (page) {
        int descriptor = next_open(page, O_RDWR | O_CLOEXEC);
        if (descriptor < 0) fail(page);
        void *shared = next_mmap(
            NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (shared == MAP_FAILED) fail(page);
        control = shared;
        next_close(descriptor);
    }
    if (!log) return;
    if (snprintf(trash_path, sizeof trash_path, "%s.trash", log) >= (int)sizeof trash_path) return;
    log_descriptor = next_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_descriptor < 0) fail(log);
}

// MARK: Notes

static void note_bytes(const void *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = next_write(log_descriptor, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail("the log");
        bytes = (const char *)bytes + written;
        count -= (size_t)written;
    }
}

static uint64_t note(struct record record, const void *body) {
    if (log_descriptor < 0) return 0;
    int saved = errno;
    pthread_mutex_lock(&guard);
    record.magic = RECORD_MAGIC;
    record.sequence = ++sequence;
    if (record.body_is_zero) record.body_count = 0;
    note_bytes(&record, sizeof record);
    note_bytes(body, record.body_count);
    uint64_t given = sequence;
    pthread_mutex_unlock(&guard);
    errno = saved;
    return given;
}

static void note_names(uint32_t type, uint64_t inode, const char *first, const char *second) {
    char names[2 * PATH_MAX + 2];
    int count = snprintf(names, sizeof names, "%s%c%s", first, 0, second);
    note((struct record){.type = type, .inode = inode, .body_count = (uint32_t)count + 1}, names);
}

static void escape(const char *call, int descriptor) {
    char path[64];
    snprintf(path, sizeof path, "%s of inode %llu", call,
             (unsigned long long)files[descriptor].inode);
    note_names(ESCAPE, 0, path, "");
}

// Returns the bytes between `offset` and `end`, within the file, which a write is about to replace.
static void note_replaced(
    uint32_t type, int descriptor, off_t offset, size_t count, off_t old_size) {
    if (log_descriptor < 0) return;
    size_t kept = 0;
    off_t from = type == RESIZE && offset > old_size ? old_size : offset;
    if (from < old_size) {
        kept = (size_t)(old_size - from);
        if (type == WRITE && kept > count) kept = count;
    }
    char *bytes = malloc(kept + 1);
    if (!bytes) fail("memory");
    for (size_t done = 0; done < kept;) {
        ssize_t got = next_pread(descriptor, bytes + done, kept - done, from + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("read what is replaced");
        done += (size_t)got;
    }
    bool is_zero = kept == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, kept - 1) == 0);
    note((struct record){.type = type, .inode = files[descriptor].inode,
                         .offset = (uint64_t)offset, .count = count,
                         .old_size = (uint64_t)old_size, .body_is_zero = is_zero,
                         .body_count = (uint32_t)kept},
         bytes);
    free(bytes);
}

static off_t size_of(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) fail("fstat");
    return status.st_size;
}

// MARK: Files

static bool is_ours(int descriptor) {
    return descriptor >= 0 && descriptor < MOST_FILES && files[descriptor].kind != 0;
}

static bool has_suffix(const char *text, const char *suffix) {
    size_t count = strlen(text), end = strlen(suffix);
    return count >= end && strcmp(text + count - end, suffix) == 0;
}

// The path with the current folder before it, if it needs one.
static const char *from_root(const char *path, char absolute[PATH_MAX]) {
    if (path[0] == '/' || !getcwd(absolute, PATH_MAX)) return path;
    size_t count = strlen(absolute);
    snprintf(absolute + count, PATH_MAX - count, "/%s", path);
    return absolute;
}

static bool is_below_data(const char *path) {
    char absolute[PATH_MAX];
    size_t count = strlen(data_path);
    if (count == 0) return false;
    path = from_root(path, absolute);
    return strncmp(path, data_path, count) == 0 &&
           (path[count] == '/' || path[count] == 0) && !has_suffix(path, "-shm") &&
           !has_suffix(path, "/lock");
}

static uint32_t kind_of(const char *path, mode_t mode) {
    if (S_ISDIR(mode)) return DIRECTORY;
    if (!S_ISREG(mode)) return 0;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strncmp(name, "journal-", 8) == 0) return JOURNAL;
    if (has_suffix(name, ".sqlite")) return DATABASE;
    if (has_suffix(name, "-wal")) return WAL;
    return OTHER;
}

// The error to fail with now, or 0.
static int fault_of(int operation, uint32_t kind) {
    struct fault *fault = &control->faults[operation];
    __atomic_fetch_add(&control->calls[operation], 1, __ATOMIC_RELAXED);
    int error = 0;
    pthread_mutex_lock(&guard);
    if (fault->error != 0 && (fault->files & kind) != 0) {
        if (fault->skip > 0) {
            fault->skip -= 1;
        } else if (fault->times != 0) {
            if (fault->times > 0) fault->times -= 1;
            fault->hits += 1;
            error = (int)fault->error;
        }
    }
    pthread_mutex_unlock(&guard);
    return error;
}

static int open_noted(int directory, const char *path, int flags, mode_t mode) {
    struct stat status;
    bool existed = fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
    char resolved[PATH_MAX];
    bool creates = (flags & O_CREAT) != 0 && !existed;
    if (creates && is_below_data(path)) {
        int error = fault_of(ON_CREATE, kind_of(path, S_IFREG));
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
    pthread_mutex_lock(&guard);
    int descriptor = next_openat(directory, path, flags & ~O_TRUNC, mode);
    if (descriptor < 0 || descriptor >= MOST_FILES) {
        pthread_mutex_unlock(&guard);
        return descriptor;
    }
    int saved = errno;
    files[descriptor] = (struct file){0};
    char link_path[64];
    snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link_path, resolved, sizeof resolved - 1);
    if (count > 0) {
        resolved[count] = 0;
        if (is_below_data(resolved) && fstat(descriptor, &status) == 0) {
            files[descriptor] = (struct file){
                .inode = status.st_ino,
                .kind = kind_of(resolved, status.st_mode),
                .appends = (flags & O_APPEND) != 0,
            };
            if (creates) note_names(CREATE, status.st_ino, resolved, "");
        }
    }
    if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY) {
        if (is_ours(descriptor))
            note_replaced(RESIZE, descriptor, 0, 0, size_of(descriptor));
        if (next_ftruncate(descriptor, 0) != 0 && errno != EINVAL) fail("truncate");
    }
    pthread_mutex_unlock(&guard);
    errno = saved;
    return descriptor;
}

#define MODE_ARGUMENT(flags)                     \
    mode_t mode = 0;                             \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {     \
        va_list arguments;                       \
        va_start(arguments, flags);              \
        mode = va_arg(arguments, mode_t);        \
        va_end(arguments);                       \
    }

int open(const char *path, int flags, ...) {
    begin();
    MODE_ARGUMENT(flags)
    return open_noted(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    begin();
    MODE_ARGUMENT(flags)
    return open_noted(directory, path, flags, mode);
}

int close(int descriptor) {
    begin();
    if (descriptor >= 0 && descriptor < MOST_FILES) files[descriptor] = (struct file){0};
    return next_close(descriptor);
}

// MARK: Reading

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    begin();
    struct timespec step = {0, 5 * 1000 * 1000};
    if (is_ours(descriptor) && (control->hang_reads & files[descriptor].kind) != 0) {
        __atomic_fetch_add(&control->reading, 1, __ATOMIC_RELAXED);
        while ((control->hang_reads & files[descriptor].kind) != 0) nanosleep(&step, NULL);
        __atomic_fetch_sub(&control->reading, 1, __ATOMIC_RELAXED);
    }
    return next_pread(descriptor, bytes, count, offset);
}

// MARK: Writing

// The number of bytes to write, or -1 with the error to return.
static ssize_t allowed(int descriptor, size_t count) {
    uint32_t kind = files[descriptor].kind;
    int error = fault_of(ON_WRITE, kind);
    if (error != 0) {
        struct fault *fault = &control->faults[ON_WRITE];
        if (fault->is_partial && count > 1) {
            fault->is_partial = 0;
            return (ssize_t)(count / 2);
        }
        errno = error;
        return -1;
    }
    if ((control->short_files & kind) != 0 && count > 1) return (ssize_t)(count / 2);
    return (ssize_t)count;
}

static ssize_t write_noted(int descriptor, const struct iovec *runs, int run_count, off_t offset) {
    size_t count = 0;
    for (int index = 0; index < run_count; index++) count += runs[index].iov_len;
    ssize_t most = allowed(descriptor, count);
    if (most < 0) return most;
    struct iovec cut[IOV_MAX];
    size_t left = (size_t)most;
    int used = 0;
    for (; used < run_count && left > 0; used++) {
        cut[used] = runs[used];
        if (cut[used].iov_len > left) cut[used].iov_len = left;
        left -= cut[used].iov_len;
    }
    pthread_mutex_lock(&guard);
    note_replaced(WRITE, descriptor, offset, (size_t)most, size_of(descriptor));
    ssize_t written = next_pwritev(descriptor, cut, used, offset);
    pthread_mutex_unlock(&guard);
    return written;
}

static ssize_t write_here(int descriptor, const struct iovec *runs, int run_count) {
    pthread_mutex_lock(&guard);
    off_t offset =
        files[descriptor].appends ? size_of(descriptor) : lseek(descriptor, 0, SEEK_CUR);
    ssize_t written = write_noted(descriptor, runs, run_count, offset);
    if (written > 0) lseek(descriptor, offset + written, SEEK_SET);
    pthread_mutex_unlock(&guard);
    return written;
}

static bool is_written_file(int descriptor) {
    return is_ours(descriptor) && files[descriptor].kind != DIRECTORY;
}

ssize_t pwritev(int descriptor, const struct iovec *runs, int count, off_t offset) {
    begin();
    if (!is_written_file(descriptor)) return next_pwritev(descriptor, runs, count, offset);
    return write_noted(descriptor, runs, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    begin();
    if (!is_written_file(descriptor)) return next_pwrite(descriptor, bytes, count, offset);
    struct iovec run = {(void *)bytes, count};
    return write_noted(descriptor, &run, 1, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    begin();
    if (!is_written_file(descriptor)) return next_write(descriptor, bytes, count);
    struct iovec run = {(void *)bytes, count};
    return write_here(descriptor, &run, 1);
}

ssize_t writev(int descriptor, const struct iovec *runs, int count) {
    begin();
    if (!is_written_file(descriptor)) return next_writev(descriptor, runs, count);
    return write_here(descriptor, runs, count);
}

int ftruncate(int descriptor, off_t size) {
    begin();
    if (!is_written_file(descriptor)) return next_ftruncate(descriptor, size);
    pthread_mutex_lock(&guard);
    note_replaced(RESIZE, descriptor, size, 0, size_of(descriptor));
    int result = next_ftruncate(descriptor, size);
    pthread_mutex_unlock(&guard);
    return result;
}

int posix_fallocate(int descriptor, off_t offset, off_t count) {
    begin();
    if (!is_written_file(descriptor)) return next_posix_fallocate(descriptor, offset, count);
    int error = fault_of(ON_ALLOCATE, files[descriptor].kind);
    if (error != 0) return error;
    pthread_mutex_lock(&guard);
    off_t size = size_of(descriptor);
    if (offset + count > size) note_replaced(RESIZE, descriptor, offset + count, 0, size);
    int result = next_posix_fallocate(descriptor, offset, count);
    pthread_mutex_unlock(&guard);
    return result;
}

// MARK: Synchronising

static void hang(uint32_t kind) {
    struct timespec step = {0, 5 * 1000 * 1000};
    uint32_t waited = 0;
    if ((control->hang_files & kind) == 0) return;
    __atomic_fetch_add(&control->hanging, 1, __ATOMIC_RELAXED);
    while ((control->hang_files & kind) != 0 && waited < control->hang_ms) {
        nanosleep(&step, NULL);
        waited += 5;
    }
    __atomic_fetch_sub(&control->hanging, 1, __ATOMIC_RELAXED);
}

static int sync_noted(int descriptor, int (*call)(int)) {
    uint32_t kind = files[descriptor].kind;
    uint64_t inode = files[descriptor].inode;
    pthread_mutex_lock(&guard);
    uint64_t began = sequence;
    pthread_mutex_unlock(&guard);
    hang(kind);
    int error = fault_of(ON_SYNC, kind);
    int result = -1;
    if (error == 0) {
        result = call(descriptor);
    } else {
        errno = error;
    }
    struct record record = {.type = result == 0 ? SYNC : SYNC_FAILED, .inode = inode,
                            .offset = began};
    if (kind != DIRECTORY) {
        note(record, NULL);
    } else if (result == 0) {
        char path[PATH_MAX];
        char link_path[64];
        snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", descriptor);
        ssize_t count = readlink(link_path, path, sizeof path - 1);
        if (count <= 0) fail("readlink");
        record.type = SYNC_DIRECTORY;
        path[count] = 0;
        record.body_count = (uint32_t)count + 1;
        note(record, path);
    }
    return result;
}

int fsync(int descriptor) {
    begin();
    return is_ours(descriptor) ? sync_noted(descriptor, next_fsync) : next_fsync(descriptor);
}

int fdatasync(int descriptor) {
    begin();
    return is_ours(descriptor) ? sync_noted(descriptor, next_fdatasync)
                               : next_fdatasync(descriptor);
}

// MARK: Names

// Keeps a file that is about to lose its name; returns the name that it has now, or "".
static const char *keep(const char *path, char *kept, uint64_t *inode) {
    struct stat status;
    kept[0] = 0;
    if (log_descriptor < 0 || lstat(path, &status) != 0) return kept;
    *inode = status.st_ino;
    snprintf(kept, PATH_MAX, "%.*s/%llu", PATH_MAX - 32, trash_path,
             (unsigned long long)++trashed);
    if (next_link(path, kept) != 0) fail(kept);
    return kept;
}

int rename(const char *from, const char *to) {
    begin();
    if (!is_below_data(from)) return next_rename(from, to);
    char kept[PATH_MAX];
    char names[3 * PATH_MAX];
    uint64_t inode = 0;
    pthread_mutex_lock(&guard);
    keep(to, kept, &inode);
    char from_path[PATH_MAX], to_path[PATH_MAX];
    int count = snprintf(names, sizeof names, "%s%c%s%c%s", from_root(from, from_path), 0,
                         from_root(to, to_path), 0, kept);
    int result = next_rename(from, to);
    if (result == 0)
        note((struct record){.type = RENAME, .body_count = (uint32_t)count + 1}, names);
    pthread_mutex_unlock(&guard);
    return result;
}

int unlink(const char *path) {
    begin();
    if (!is_below_data(path)) return next_unlink(path);
    char kept[PATH_MAX];
    uint64_t inode = 0;
    pthread_mutex_lock(&guard);
    keep(path, kept, &inode);
    int result = next_unlink(path);
    char absolute[PATH_MAX];
    if (result == 0) note_names(UNLINK, inode, from_root(path, absolute), kept);
    pthread_mutex_unlock(&guard);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    begin();
    pthread_mutex_lock(&guard);
    int result = next_mkdir(path, mode);
    char absolute[PATH_MAX];
    if (result == 0 && is_below_data(path))
        note_names(MAKE_DIRECTORY, 0, from_root(path, absolute), "");
    pthread_mutex_unlock(&guard);
    return result;
}

// MARK: What must not happen

void *mmap(void *address, size_t count, int protection, int flags, int descriptor, off_t offset) {
    begin();
    if (is_ours(descriptor) && (protection & PROT_WRITE) != 0 && (flags & MAP_SHARED) != 0)
        escape("mmap", descriptor);
    return next_mmap(address, count, protection, flags, descriptor, offset);
}

int dup(int descriptor) {
    begin();
    if (is_written_file(descriptor)) escape("dup", descriptor);
    return next_dup(descriptor);
}

int dup2(int descriptor, int other) {
    begin();
    if (is_written_file(descriptor) || is_written_file(other)) escape("dup2", descriptor);
    return next_dup2(descriptor, other);
}

int dup3(int descriptor, int other, int flags) {
    begin();
    if (is_written_file(descriptor) || is_written_file(other)) escape("dup3", descriptor);
    return next_dup3(descriptor, other, flags);
}

// All commands that take an argument take it in a register, whatever its type.
int fcntl(int descriptor, int command, ...) {
    begin();
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && is_written_file(descriptor))
        escape("fcntl", descriptor);
    return next_fcntl(descriptor, command, argument);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    begin();
    if (is_written_file(to)) escape("sendfile", to);
    return next_sendfile(to, from, offset, count);
}

ssize_t copy_file_range(
    int from, off64_t *from_offset, int to, off64_t *to_offset, size_t count, unsigned flags) {
    begin();
    if (is_written_file(to)) escape("copy_file_range", to);
    return next_copy_file_range(from, from_offset, to, to_offset, count, flags);
}

int link(const char *from, const char *to) {
    begin();
    if (is_below_data(to)) note_names(ESCAPE, 0, "link", to);
    return next_link(from, to);
}

int linkat(int from_directory, const char *from, int directory, const char *to, int flags) {
    begin();
    if (is_below_data(to)) note_names(ESCAPE, 0, "linkat", to);
    return next_linkat(from_directory, from, directory, to, flags);
}

int renameat(int from_directory, const char *from, int directory, const char *to) {
    begin();
    if (is_below_data(from) || is_below_data(to)) note_names(ESCAPE, 0, "renameat", to);
    return next_renameat(from_directory, from, directory, to);
}

int unlinkat(int directory, const char *path, int flags) {
    begin();
    if (is_below_data(path)) note_names(ESCAPE, 0, "unlinkat", path);
    return next_unlinkat(directory, path, flags);
}

// The names of the same calls for files of any size; off_t has 64 bits here.
#define ALSO(other, name) extern __typeof__(name) other __attribute__((alias(#name)))
ALSO(open64, open);
ALSO(openat64, openat);
ALSO(pwrite64, pwrite);
ALSO(pread64, pread);
ALSO(pwritev64, pwritev);
ALSO(ftruncate64, ftruncate);
ALSO(posix_fallocate64, posix_fallocate);
ALSO(mmap64, mmap);
ALSO(fcntl64, fcntl);
ALSO(sendfile64, sendfile);
