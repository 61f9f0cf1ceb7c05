#include <sqlite3.h>

/* SQLITE_STATIC and SQLITE_TRANSIENT are casts to function pointers, which Swift does not import.
   No bytes are an empty blob, not NULL. */

/* The bytes are not copied: they stay as they are until the statement is reset or bound anew. */
static inline int hermes_sqlite_bind_borrowed(
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count)
{
    return sqlite3_bind_blob64(statement, index, count == 0 ? "" : bytes, count, SQLITE_STATIC);
}

/* SQLite keeps a copy of the bytes. */
static inline int hermes_sqlite_bind_copied(
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count)
{
    return sqlite3_bind_blob64(statement, index, count == 0 ? "" : bytes, count, SQLITE_TRANSIENT);
}
