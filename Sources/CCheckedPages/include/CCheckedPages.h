// A layer of SQLite's file access that keeps a checksum in each page of a database file.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Bytes of a page, and of the checksums at its end, which SQLite leaves alone
/// (SQLITE_FCNTL_RESERVE_BYTES). Other page sizes and files without these bytes have no checksums.
enum {
    hermes_page_bytes = 16384,
    hermes_page_reserved = 8,
};

/// The name of the layer for sqlite3_open_v2; NULL without memory. Any thread may call.
const char *hermes_checked_pages(void);

/// Operations of sqlite3_file_control. The first sets an `int` to 1 if the pages of the file have
/// checksums. The second says that all pages are going to be written, so that a file without checksums
/// has them from its first page on; its argument is not used. The others set a `uint64_t` to the number, counted from 1, of the last page that this
/// connection could not correct, or has corrected; 0 without one.
enum {
    hermes_control_is_sealed = 0x48524D31,
    hermes_control_rewrites = 0x48524D34,
    hermes_control_last_damaged = 0x48524D32,
    hermes_control_last_corrected = 0x48524D33,
};

/// The findings of all reads, of all files, since the process began.
struct hermes_page_findings {
    /// Reads of pages with one or two flipped bits, which were corrected.
    uint64_t corrected;
    /// Reads of pages that could not be corrected, and failed.
    uint64_t damaged;
};
struct hermes_page_findings hermes_page_findings(void);

/// Has SQLite write its temporary files to a folder from now on; not while any is open.
void hermes_pages_use_temporary_folder(const char *folder);

/// Writes the checksums of a page to its end.
void hermes_page_seal(uint8_t page[hermes_page_bytes]);

/// What the checksums say of a page.
enum hermes_page_state {
    hermes_page_intact,
    /// One or two flipped bits were found and flipped back.
    hermes_page_corrected,
    hermes_page_damaged,
};
enum hermes_page_state hermes_page_verify(uint8_t page[hermes_page_bytes]);
