// CRC32C (Castagnoli): polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4 has test vectors.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Continues the checksum `crc` (0 at the start) over `count` bytes, with the processor's
/// instruction if it has one. The checksum of two runs is that of the second, continued from that
/// of the first.
uint32_t hermes_crc32c(uint32_t crc, const void *bytes, size_t count);

/// Does the same with tables, on every processor. Used in tests and where there is no instruction.
uint32_t hermes_crc32c_portable(uint32_t crc, const void *bytes, size_t count);

/// 1 if `hermes_crc32c` uses the processor's instruction.
int hermes_crc32c_is_accelerated(void);
