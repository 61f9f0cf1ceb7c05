// The checksums of a page: its last 4 bytes are the CRC32C of all others, the 4 before them a hash
// of the content. The CRC says which one or two bits have flipped, if it was no more, and the hash
// proves that: a page with other damage passes for one with two flipped bits once in some billion
// times.

#include "CCheckedPages.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "CChecksum.h"

enum {
    content_bytes = hermes_page_bytes - hermes_page_reserved,
    crc_place = hermes_page_bytes - 4,
    page_bits = hermes_page_bytes * 8,
    crc_bits_from = crc_place * 8,
    // Twice as many as there are bits, and a power of two.
    slots = 2 * page_bits,
};

// The reflected polynomial of CRC32C.
static const uint32_t polynomial = 0x82F63B78u;

static uint32_t get(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

static void put(uint8_t *to, uint32_t value) {
    value = htole32(value);
    memcpy(to, &value, sizeof value);
}

// Two chains of multiplications that the processor runs side by side.
static uint32_t hash(const uint8_t *page) {
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t even = 1, odd = 2;
    size_t at = 0;
    for (; at + 16 <= content_bytes; at += 16) {
        uint64_t words[2];
        memcpy(words, page + at, sizeof words);
        even = (even ^ le64toh(words[0])) * factor;
        odd = (odd ^ le64toh(words[1])) * factor;
        even ^= even >> 32;
        odd ^= odd >> 32;
    }
    for (; at < content_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, page + at, sizeof word);
        even = (even ^ le64toh(word)) * factor;
        even ^= even >> 32;
    }
    uint64_t both = (even ^ (odd << 1 | odd >> 63)) * factor;
    return (uint32_t)(both >> 32);
}

void hermes_page_seal(uint8_t page[hermes_page_bytes]) {
    put(page + content_bytes, hash(page));
    put(page + crc_place, hermes_crc32c(0, page, crc_place));
}

static int hash_agrees(const uint8_t *page) { return get(page + content_bytes) == hash(page); }

static void flip(uint8_t *page, uint32_t bit) { page[bit / 8] ^= (uint8_t)(1u << bit % 8); }

// The change of (stored CRC xor computed CRC) by a flip of each bit, into `syndromes`.
static void fill_syndromes(uint32_t *syndromes) {
    uint32_t value = polynomial;
    for (uint32_t bit = crc_bits_from; bit-- > 0;) {
        syndromes[bit] = value;
        value = (value >> 1) ^ ((value & 1) ? polynomial : 0);
    }
    for (uint32_t bit = 0; bit < 32; bit++) { syndromes[crc_bits_from + bit] = 1u << bit; }
}

static uint32_t slot_of(uint32_t syndrome) { return (syndrome * 0x9E3779B1u) >> 14; }
_Static_assert(slots == 1 << 18, "slot_of keeps 18 bits");

// Flips the bits back; 0, with the page unchanged, if that needs more than two.
static int correct(uint8_t *page, uint32_t difference) {
    // places[s] is a bit and 1, found by the bit's syndrome; 0 for none.
    uint32_t *syndromes = calloc(page_bits, sizeof *syndromes);
    uint32_t *places = calloc(slots, sizeof *places);
    int is_correct = 0;
    if (syndromes == NULL || places == NULL) { goto done; }
    fill_syndromes(syndromes);
    for (uint32_t bit = 0; bit < page_bits; bit++) {
        uint32_t slot = slot_of(syndromes[bit]);
        while (places[slot] != 0) { slot = (slot + 1) % slots; }
        places[slot] = bit + 1;
    }
    // The first round looks for one bit, the others for a bit and another one behind it.
    for (uint32_t first = 0; first <= page_bits && !is_correct; first++) {
        uint32_t rest = first == 0 ? difference : difference ^ syndromes[first - 1];
        for (uint32_t slot = slot_of(rest); places[slot] != 0; slot = (slot + 1) % slots) {
            uint32_t second = places[slot] - 1;
            if (syndromes[second] != rest || (first > 0 && second <= first - 1)) { continue; }
            if (first > 0) { flip(page, first - 1); }
            flip(page, second);
            is_correct = hash_agrees(page);
            if (is_correct) { break; }
            flip(page, second);
            if (first > 0) { flip(page, first - 1); }
        }
    }
done:
    free(syndromes);
    free(places);
    return is_correct;
}

enum hermes_page_state hermes_page_verify(uint8_t page[hermes_page_bytes]) {
    uint32_t difference = get(page + crc_place) ^ hermes_crc32c(0, page, crc_place);
    if (difference == 0 && hash_agrees(page)) { return hermes_page_intact; }
    if (difference == 0 || !correct(page, difference)) { return hermes_page_damaged; }
    return hermes_page_corrected;
}
