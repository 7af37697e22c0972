/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * SHA-256 (FIPS 180-4) and base64 (RFC 4648), for one purpose: the security
 * policy of a page names its own style and script by their hashes, so that a
 * browser runs nothing else. */
#include "page.h"

#include <stdint.h>
#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t
rotated(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

/* The 64 words that a block of 16 is spread to. */
static void
spread(const uint8_t block[64], uint32_t words[64])
{
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)block[4 * i] << 24
                   | (uint32_t)block[4 * i + 1] << 16
                   | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];

        a = rotated(a, 7) ^ rotated(a, 18) ^ a >> 3;
        b = rotated(b, 17) ^ rotated(b, 19) ^ b >> 10;
        words[i] = words[i - 16] + a + words[i - 7] + b;
    }
}

static void
digest_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t words[64], s[8];

    spread(block, words);
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; i++) {
        uint32_t e = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
        uint32_t a = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t major = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t mixed = s[7] + e + choice + round_constants[i] + words[i];

        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += mixed;
        s[0] = mixed + a + major;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

static void
digest(const char *bytes, size_t length, uint8_t result[32])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t tail[128] = {0};
    size_t rest = length % 64;
    size_t tail_bytes = rest < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)length * 8;

    for (size_t at = 0; at + 64 <= length; at += 64) {
        digest_block(state, (const uint8_t *)bytes + at);
    }
    memcpy(tail, bytes + length - rest, rest);
    tail[rest] = 0x80;
    for (size_t i = 0; i < 8; i++) {
        tail[tail_bytes - 1 - i] = (uint8_t)(bits >> 8 * i);
    }
    for (size_t at = 0; at < tail_bytes; at += 64) {
        digest_block(state, tail + at);
    }
    for (int i = 0; i < 32; i++) {
        result[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void
cm_page_hash(const char *bytes, size_t length, char result[CM_PAGE_HASH_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t sum[33] = {0}; /* 33 = 11 groups of 3; the last byte is padding */
    char *at = result;

    digest(bytes, length, sum);
    memcpy(at, "sha256-", 7);
    at += 7;
    for (size_t i = 0; i < 33; i += 3) {
        uint32_t group =
            (uint32_t)sum[i] << 16 | (uint32_t)sum[i + 1] << 8 | sum[i + 2];

        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = digits[group >> 6 & 63];
        *at++ = digits[group & 63];
    }
    at[-1] = '=';
    *at = '\0';
}
