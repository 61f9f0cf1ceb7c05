// Passes all calls on to SQLite's own file access, and adds and checks the checksums of database
// pages on their way. The write-ahead log has checksums of its own, which each start verifies.

#include "CCheckedPages.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

static const char layer_name[] = "hermes-checked-pages";

struct checked_file {
    sqlite3_file base;
    // True when each page of the file has its checksums.
    int is_sealed;
    // True when a file without checksums is about to be rewritten as a whole.
    int is_rewritten;
    // Bytes of the file as this connection, the only one that writes, has left it.
    sqlite3_int64 size;
    // A page on its way; SQLite's buffers are not changed.
    uint8_t *page;
    // The numbers of the last pages that were found damaged, and corrected; 0 without one.
    uint64_t last_damaged;
    uint64_t last_corrected;
    // SQLite's file follows this struct.
};

static sqlite3_file *below(sqlite3_file *file) {
    return (sqlite3_file *)((struct checked_file *)file + 1);
}

static sqlite3_vfs *system_of(sqlite3_vfs *layer) { return layer->pAppData; }

// MARK: Findings

static atomic_uint_least64_t corrected, damaged;

struct hermes_page_findings hermes_page_findings(void) {
    struct hermes_page_findings findings = {atomic_load(&corrected), atomic_load(&damaged)};
    return findings;
}

// Checks a page that was read, and corrects it if it can.
static int check(struct checked_file *self, uint8_t *page, sqlite3_int64 offset) {
    uint64_t number = (uint64_t)(offset / hermes_page_bytes) + 1;
    switch (hermes_page_verify(page)) {
    case hermes_page_intact:
        return SQLITE_OK;
    case hermes_page_corrected:
        self->last_corrected = number;
        atomic_fetch_add(&corrected, 1);
        return SQLITE_OK;
    case hermes_page_damaged:
        break;
    }
    self->last_damaged = number;
    atomic_fetch_add(&damaged, 1);
    return SQLITE_IOERR_DATA;
}

// The first page says whether the file has checksums. A program without this layer that copies a
// database leaves zeros there, and one that makes a new one reserves no bytes.
static int is_header_sealed(const uint8_t *page) {
    static const uint8_t none[hermes_page_reserved];
    return memcmp(page, "SQLite format 3", 16) == 0
        && (page[16] << 8 | page[17]) == hermes_page_bytes && page[20] == hermes_page_reserved
        && memcmp(page + hermes_page_bytes - hermes_page_reserved, none, sizeof none) != 0;
}

// MARK: Methods of a file

static int checked_close(sqlite3_file *file) {
    struct checked_file *self = (struct checked_file *)file;
    sqlite3_free(self->page);
    self->page = NULL;
    return below(file)->pMethods->xClose(below(file));
}

// Reads a part of a page by way of the whole page. The first page may be one whose write a crash
// has torn: its successor is in the write-ahead log then, and only its header is used.
static int read_part(struct checked_file *self, void *to, int count, sqlite3_int64 offset) {
    sqlite3_file *file = below(&self->base);
    sqlite3_int64 start = offset / hermes_page_bytes * hermes_page_bytes;
    int code = file->pMethods->xRead(file, self->page, hermes_page_bytes, start);
    if (code != SQLITE_OK) { return file->pMethods->xRead(file, to, count, offset); }
    if (start == 0) {
        hermes_page_verify(self->page);
    } else {
        code = check(self, self->page, start);
    }
    memcpy(to, self->page + (offset - start), (size_t)count);
    return code;
}

static int checked_read(sqlite3_file *file, void *to, int count, sqlite3_int64 offset) {
    struct checked_file *self = (struct checked_file *)file;
    if (self->is_sealed && offset % hermes_page_bytes + count <= hermes_page_bytes
        && count < hermes_page_bytes) {
        return read_part(self, to, count, offset);
    }
    int code = below(file)->pMethods->xRead(below(file), to, count, offset);
    if (code != SQLITE_OK || !self->is_sealed || count != hermes_page_bytes) { return code; }
    return check(self, to, offset);
}

// Writes pages of zeros between the end of the file and `end`. SQLite does not write a page that is
// freed in the transaction that makes it, and may read it later: without this, nothing would tell it
// from one that the disk has lost.
static int fill(struct checked_file *self, sqlite3_int64 end) {
    sqlite3_file *file = below(&self->base);
    // A write that a full disk or a power cut has ended leaves a part of a page behind.
    self->size -= self->size % hermes_page_bytes;
    if (self->size >= end) { return SQLITE_OK; }
    memset(self->page, 0, hermes_page_bytes);
    hermes_page_seal(self->page);
    for (; self->size < end; self->size += hermes_page_bytes) {
        int code = file->pMethods->xWrite(file, self->page, hermes_page_bytes, self->size);
        if (code != SQLITE_OK) { return code; }
    }
    return SQLITE_OK;
}

static int checked_write(
    sqlite3_file *file, const void *from, int count, sqlite3_int64 offset) {
    struct checked_file *self = (struct checked_file *)file;
    sqlite3_file *system = below(file);
    const uint8_t *bytes = from;
    if (offset == 0 && count == hermes_page_bytes) {
        // A first page alone, as a change of the journal's mode writes it, seals no other page.
        self->is_sealed = (self->is_sealed || self->is_rewritten)
            && (bytes[16] << 8 | bytes[17]) == hermes_page_bytes
            && bytes[20] == hermes_page_reserved;
    }
    if (!self->is_sealed || count != hermes_page_bytes) {
        return system->pMethods->xWrite(system, from, count, offset);
    }
    int code = fill(self, offset);
    if (code != SQLITE_OK) { return code; }
    memcpy(self->page, from, hermes_page_bytes);
    hermes_page_seal(self->page);
    code = system->pMethods->xWrite(system, self->page, count, offset);
    if (code == SQLITE_OK && self->size < offset + count) { self->size = offset + count; }
    return code;
}

static int checked_truncate(sqlite3_file *file, sqlite3_int64 size) {
    struct checked_file *self = (struct checked_file *)file;
    int code = self->is_sealed ? fill(self, size) : SQLITE_OK;
    if (code != SQLITE_OK) { return code; }
    code = below(file)->pMethods->xTruncate(below(file), size);
    if (code == SQLITE_OK) { self->size = size; }
    return code;
}

static int checked_control(sqlite3_file *file, int operation, void *argument) {
    struct checked_file *self = (struct checked_file *)file;
    switch (operation) {
    case hermes_control_is_sealed:
        *(int *)argument = self->is_sealed;
        return SQLITE_OK;
    case hermes_control_rewrites:
        self->is_rewritten = 1;
        return SQLITE_OK;
    case hermes_control_last_damaged:
        *(uint64_t *)argument = self->last_damaged;
        return SQLITE_OK;
    case hermes_control_last_corrected:
        *(uint64_t *)argument = self->last_corrected;
        return SQLITE_OK;
    default:
        return below(file)->pMethods->xFileControl(below(file), operation, argument);
    }
}

static int checked_characteristics(sqlite3_file *file) {
    int all = below(file)->pMethods->xDeviceCharacteristics(below(file));
#ifdef SQLITE_IOCAP_SUBPAGE_READ
    all &= ~SQLITE_IOCAP_SUBPAGE_READ;
#endif
    return all;
}

// MARK: Calls that are passed on

static int checked_sync(sqlite3_file *file, int flags) {
    return below(file)->pMethods->xSync(below(file), flags);
}
static int checked_size(sqlite3_file *file, sqlite3_int64 *size) {
    return below(file)->pMethods->xFileSize(below(file), size);
}
static int checked_lock(sqlite3_file *file, int level) {
    return below(file)->pMethods->xLock(below(file), level);
}
static int checked_unlock(sqlite3_file *file, int level) {
    return below(file)->pMethods->xUnlock(below(file), level);
}
static int checked_reserved(sqlite3_file *file, int *is_reserved) {
    return below(file)->pMethods->xCheckReservedLock(below(file), is_reserved);
}
static int checked_sector(sqlite3_file *file) {
    return below(file)->pMethods->xSectorSize(below(file));
}
static int checked_shm_map(
    sqlite3_file *file, int region, int size, int extends, void volatile **memory) {
    return below(file)->pMethods->xShmMap(below(file), region, size, extends, memory);
}
static int checked_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
static void checked_shm_barrier(sqlite3_file *file) {
    below(file)->pMethods->xShmBarrier(below(file));
}
static int checked_shm_unmap(sqlite3_file *file, int deletes) {
    return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

// Version 2 has no mapped pages, which would be read without a check.
static const sqlite3_io_methods methods = {
    2,
    checked_close,
    checked_read,
    checked_write,
    checked_truncate,
    checked_sync,
    checked_size,
    checked_lock,
    checked_unlock,
    checked_reserved,
    checked_control,
    checked_sector,
    checked_characteristics,
    checked_shm_map,
    checked_shm_lock,
    checked_shm_barrier,
    checked_shm_unmap,
    NULL,
    NULL,
};

// MARK: The layer

// Finds out whether an existing file has checksums. One without a page is going to have them.
static int look_at_header(struct checked_file *self) {
    sqlite3_file *file = below(&self->base);
    int code = file->pMethods->xFileSize(file, &self->size);
    if (code != SQLITE_OK) { return code; }
    code = file->pMethods->xRead(file, self->page, hermes_page_bytes, 0);
    if (code == SQLITE_IOERR_SHORT_READ) {
        self->is_sealed = self->size == 0;
        return SQLITE_OK;
    }
    if (code != SQLITE_OK) { return code; }
    // Flipped bits of the header are corrected before it is believed.
    hermes_page_verify(self->page);
    self->is_sealed = is_header_sealed(self->page);
    if (self->is_sealed) { self->size -= self->size % hermes_page_bytes; }
    return SQLITE_OK;
}

static int checked_open(
    sqlite3_vfs *layer, const char *name, sqlite3_file *file, int flags, int *given) {
    sqlite3_vfs *system = system_of(layer);
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
        return system->xOpen(system, name, file, flags, given);
    }
    struct checked_file *self = (struct checked_file *)file;
    memset(self, 0, sizeof *self);
    self->page = sqlite3_malloc(hermes_page_bytes);
    if (self->page == NULL) { return SQLITE_NOMEM; }
    int code = system->xOpen(system, name, below(file), flags, given);
    // SQLite closes a file that has methods, also after a failure.
    if (below(file)->pMethods != NULL) { self->base.pMethods = &methods; }
    if (code == SQLITE_OK) { code = look_at_header(self); }
    if (code != SQLITE_OK) {
        if (self->base.pMethods != NULL) {
            checked_close(file);
            self->base.pMethods = NULL;
        } else {
            sqlite3_free(self->page);
        }
    }
    return code;
}

static sqlite3_vfs checked_layer;
static const char *registered_name;

static void register_layer(void) {
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (system == NULL) { return; }
    // What concerns no open file is the system's own; these functions use nothing of the layer.
    checked_layer = *system;
    checked_layer.pNext = NULL;
    checked_layer.zName = layer_name;
    checked_layer.pAppData = system;
    checked_layer.szOsFile = (int)sizeof(struct checked_file) + system->szOsFile;
    checked_layer.xOpen = checked_open;
    if (sqlite3_vfs_register(&checked_layer, 0) == SQLITE_OK) { registered_name = layer_name; }
}

void hermes_pages_use_temporary_folder(const char *folder) {
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = sqlite3_mprintf("%s", folder);
}

const char *hermes_checked_pages(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_layer);
    return registered_name;
}
