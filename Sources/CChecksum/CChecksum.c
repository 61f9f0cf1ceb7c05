#include "CChecksum.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

// tables[k][b] is the checksum register after the byte b and k zero bytes.
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0);
        }
        tables[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int zeros = 1; zeros < 8; zeros++) {
            uint32_t before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    }
}

uint32_t hermes_crc32c_portable(uint32_t crc, const void *bytes, size_t count) {
    pthread_once(&tables_once, fill_tables);
    const uint8_t *next = bytes;
    crc = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        crc ^= (uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16
            | (uint32_t)next[3] << 24;
        crc = tables[7][crc & 0xFF] ^ tables[6][(crc >> 8) & 0xFF] ^ tables[5][(crc >> 16) & 0xFF]
            ^ tables[4][crc >> 24] ^ tables[3][next[4]] ^ tables[2][next[5]] ^ tables[1][next[6]]
            ^ tables[0][next[7]];
    }
    for (; count > 0; count--, next++) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *next) & 0xFF];
    }
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(
    uint32_t crc, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    uint64_t state = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, sizeof word);
        state = _mm_crc32_u64(state, word);
    }
    for (; count > 0; count--, next++) {
        state = _mm_crc32_u8((uint32_t)state, *next);
    }
    return ~(uint32_t)state;
}

static int has_instruction;

// Runs before main, so that no call finds the answer missing.
__attribute__((constructor)) static void look_for_instruction(void) {
    unsigned eax, ebx, ecx, edx;
    has_instruction = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_SSE4_2);
}

#elif defined(__ARM_FEATURE_CRC32)

enum { has_instruction = 1 };

static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    uint32_t state = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, sizeof word);
        state = __crc32cd(state, word);
    }
    for (; count > 0; count--, next++) {
        state = __crc32cb(state, *next);
    }
    return ~state;
}

#else

enum { has_instruction = 0 };
#define crc32c_instruction hermes_crc32c_portable

#endif

int hermes_crc32c_is_accelerated(void) { return has_instruction != 0; }

uint32_t hermes_crc32c(uint32_t crc, const void *bytes, size_t count) {
    if (has_instruction) { return crc32c_instruction(crc, bytes, count); }
    return hermes_crc32c_portable(crc, bytes, count);
}
