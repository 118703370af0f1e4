/* What this machine can do: programs that do the least that a broker or a client has to do, for `make bench`.
 *
 *   floor store FILE FRAME BATCH_AT ANSWER
 *       Print the port; receive frames of FRAME bytes, check the CRC of the batch that ends each of them, append the
 *       batch to FILE, answer with ANSWER bytes; until killed.
 *   floor serve FILE FRAME
 *       Print the port; answer every FRAME bytes received with the whole of FILE by sendfile; until killed.
 *   floor walk PORT FILE ANSWER BATCH_AT COUNT
 *       Send the request in FILE again and again; in each answer of ANSWER bytes check the CRC of every batch from
 *       BATCH_AT on, and copy every record into columns: offsets and bytes of keys and values. Until COUNT records.
 *       Prints: records seconds CPU-seconds
 *   floor pack PORT FILE BATCH_AT ANSWER COUNT
 *       FILE: a Produce request that ends with one batch, whose records are all alike but for their offset. Encode its
 *       records again for each request, check that they are the same, compute the CRC, keep 5 requests in flight.
 *       Prints: records seconds CPU-seconds
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "wire.h"

enum { BATCH_CRC = 17, BATCH_CRC_FROM = 21, BATCH_RECORD_COUNT = 57, BATCH_RECORDS = 61, IN_FLIGHT = 5, BLOCK = 1024 };

static unsigned ahead[4][256];

#if defined(__x86_64__)
#include <nmmintrin.h>
#define TARGET __attribute__((target("sse4.2")))
TARGET static unsigned word(unsigned crc, const unsigned char *at) {
    unsigned long long eight;
    memcpy(&eight, at, 8);
    return (unsigned)_mm_crc32_u64(crc, eight);
}
TARGET static unsigned byte(unsigned crc, unsigned char at) { return _mm_crc32_u8(crc, at); }
#else
#define TARGET
static unsigned byte(unsigned crc, unsigned char at) {
    crc ^= at;
    for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
    return crc;
}
static unsigned word(unsigned crc, const unsigned char *at) {
    for (int i = 0; i < 8; i++) crc = byte(crc, at[i]);
    return crc;
}
#endif

/* What BLOCK zero bytes do to a CRC, as four tables: so three blocks can be summed side by side. */
static void prepare_crc(void) {
    static const unsigned char zeros[8];
    for (int part = 0; part < 4; part++)
        for (int value = 0; value < 256; value++) {
            unsigned crc = (unsigned)value << (8 * part);
            for (int i = 0; i < BLOCK; i += 8) crc = word(crc, zeros);
            ahead[part][value] = crc;
        }
}

static unsigned past_block(unsigned crc) {
    return ahead[0][crc & 255] ^ ahead[1][crc >> 8 & 255] ^ ahead[2][crc >> 16 & 255] ^ ahead[3][crc >> 24];
}

TARGET static unsigned crc32c(const unsigned char *at, size_t size) {
    unsigned crc = ~0u;
    for (; size >= 3 * BLOCK; at += 3 * BLOCK, size -= 3 * BLOCK) {
        unsigned second = 0, third = 0;
        for (int i = 0; i < BLOCK; i += 8) {
            crc = word(crc, at + i);
            second = word(second, at + BLOCK + i);
            third = word(third, at + 2 * BLOCK + i);
        }
        crc = past_block(past_block(crc) ^ second) ^ third;
    }
    for (; size >= 8; at += 8, size -= 8) crc = word(crc, at);
    while (size--) crc = byte(crc, *at++);
    return ~crc;
}

static unsigned int32_at(const unsigned char *at) {
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

static void check_crc(const unsigned char *batch, size_t size) {
    if (crc32c(batch + BATCH_CRC_FROM, size - BATCH_CRC_FROM) != int32_at(batch + BATCH_CRC)) {
        fputs("a batch has a wrong checksum\n", stderr);
        exit(1);
    }
}

static size_t whole_file(const char *path, unsigned char **bytes) {
    FILE *file = fopen(path, "rb");
    struct stat state;
    if (!file || fstat(fileno(file), &state) < 0) fail(path);
    *bytes = malloc(state.st_size);
    if (fread(*bytes, state.st_size, 1, file) != 1) fail(path);
    fclose(file);
    return state.st_size;
}

static void store(const char *path, size_t frame, size_t batch_at, size_t answer) {
    int listener = listen_somewhere(), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    unsigned char *bytes = malloc(frame), *zeros = calloc(1, answer);
    if (file < 0) fail(path);
    for (;;) {
        int fd = accept(listener, 0, 0);
        no_delay(fd);
        while (recv(fd, bytes, frame, MSG_WAITALL) == (ssize_t)frame) {
            check_crc(bytes + batch_at, frame - batch_at);
            if (write(file, bytes + batch_at, frame - batch_at) != (ssize_t)(frame - batch_at)) fail("write");
            if (send(fd, zeros, answer, MSG_NOSIGNAL) < 0) break;
        }
        close(fd);
    }
}

static void serve(const char *path, size_t frame) {
    int listener = listen_somewhere(), file = open(path, O_RDONLY);
    char *bytes = malloc(frame);
    struct stat state;
    if (file < 0 || fstat(file, &state) < 0) fail(path);
    for (;;) {
        int fd = accept(listener, 0, 0);
        no_delay(fd);
        while (recv(fd, bytes, frame, MSG_WAITALL) == (ssize_t)frame) {
            off_t from = 0;
            while (from < state.st_size && sendfile(fd, file, &from, state.st_size - from) > 0) continue;
            if (from < state.st_size) break;
        }
        close(fd);
    }
}

static long varint(const unsigned char **at) {
    unsigned long value = 0;
    int shift = 0;
    unsigned char next;
    do {
        next = *(*at)++;
        value |= (unsigned long)(next & 127) << shift;
        shift += 7;
    } while (next & 128);
    return (long)(value >> 1) ^ -(long)(value & 1);
}

static unsigned char *put_varint(unsigned char *at, long value) {
    unsigned long rest = (unsigned long)value << 1 ^ (unsigned long)(value >> 63);
    for (; rest > 127; rest >>= 7) *at++ = 128 | (rest & 127);
    *at++ = rest;
    return at;
}

struct column {
    unsigned char *bytes;
    unsigned *ends, count, size;
};

static void take(struct column *column, const unsigned char **at) {
    long size = varint(at);
    if (size > 0) memcpy(column->bytes + column->size, *at, size), *at += size, column->size += size;
    column->ends[column->count++] = column->size;
}

static long walk_batches(const unsigned char *at, const unsigned char *end, struct column *keys, struct column *values) {
    long total = 0;
    keys->count = keys->size = values->count = values->size = 0;
    while (end - at > BATCH_RECORDS) {
        size_t size = 12 + int32_at(at + 8);
        unsigned count = int32_at(at + BATCH_RECORD_COUNT);
        const unsigned char *record = at + BATCH_RECORDS;
        if (size > (size_t)(end - at)) break;
        check_crc(at, size);
        for (unsigned i = 0; i < count; i++) {
            long left = varint(&record);
            const unsigned char *next = record + left;
            record++;
            varint(&record);
            varint(&record);
            take(keys, &record);
            take(values, &record);
            record = next;
        }
        total += count;
        at += size;
    }
    return total;
}

static void print_rates(long records, double began, clock_t cpu) {
    printf("%ld %.6f %.6f\n", records, seconds_now() - began, (double)(clock() - cpu) / CLOCKS_PER_SEC);
}

static void walk(int port, const char *path, size_t answer, size_t batch_at, long count) {
    unsigned char *request, *bytes = malloc(answer);
    size_t size = whole_file(path, &request);
    struct column keys = {malloc(answer), malloc(answer), 0, 0}, values = {malloc(answer), malloc(answer), 0, 0};
    int fd = connect_to(port);
    double began = seconds_now();
    clock_t cpu = clock();
    long got = 0;
    send_all(fd, (char *)request, size);
    while (got < count) {
        if (recv(fd, bytes, answer, MSG_WAITALL) != (ssize_t)answer) fail("recv");
        send_all(fd, (char *)request, size);
        got += walk_batches(bytes + batch_at, bytes + answer, &keys, &values);
    }
    print_rates(got, began, cpu);
}

static void pack(int port, const char *path, size_t batch_at, size_t answer, long count) {
    unsigned char *frame, *answers = malloc(answer);
    size_t size = whole_file(path, &frame), batch_size = size - batch_at;
    unsigned char *batch = frame + batch_at, *packed = malloc(batch_size);
    unsigned records = int32_at(batch + BATCH_RECORD_COUNT);
    const unsigned char *first = batch + BATCH_RECORDS;
    long record_size = varint(&first), value_size;
    int fd = connect_to(port), flying = 0;
    first += 4;
    value_size = varint(&first);
    double began = seconds_now();
    clock_t cpu = clock();
    long sent = 0;
    memcpy(packed, batch, BATCH_RECORDS);
    for (; sent < count; sent += records) {
        unsigned char *at = packed + BATCH_RECORDS;
        for (unsigned i = 0; i < records; i++) {
            at = put_varint(at, record_size + (i > 63) + (i > 8191));
            *at++ = 0;
            at = put_varint(put_varint(at, 0), i);
            at = put_varint(put_varint(at, -1), value_size);
            memcpy(at, first, value_size);
            at = put_varint(at + value_size, 0);
        }
        if (!sent && (memcmp(packed + BATCH_RECORDS, batch + BATCH_RECORDS, batch_size - BATCH_RECORDS) || at != packed + batch_size)) {
            fputs("packed batches differ from the given one\n", stderr);
            exit(1);
        }
        check_crc(packed, batch_size);
        if (flying == IN_FLIGHT && recv(fd, answers, answer, MSG_WAITALL) != (ssize_t)answer) fail("recv");
        flying += flying < IN_FLIGHT;
        send_all(fd, (char *)frame, size);
    }
    for (; flying; flying--)
        if (recv(fd, answers, answer, MSG_WAITALL) != (ssize_t)answer) fail("recv");
    print_rates(sent, began, cpu);
}

int main(int argc, char **argv) {
    unsigned long given[8] = {0};
    for (int i = 2; i < argc && i < 8; i++) given[i] = strtoul(argv[i], 0, 10);
    signal(SIGPIPE, SIG_IGN);
    prepare_crc();
    if (argc == 6 && !strcmp(argv[1], "store")) store(argv[2], given[3], given[4], given[5]);
    if (argc == 4 && !strcmp(argv[1], "serve")) serve(argv[2], given[3]);
    if (argc == 7 && !strcmp(argv[1], "walk")) return walk(given[2], argv[3], given[4], given[5], given[6]), 0;
    if (argc == 7 && !strcmp(argv[1], "pack")) return pack(given[2], argv[3], given[4], given[5], given[6]), 0;
    fputs("usage: floor store|serve|walk|pack ARGUMENTS, as the head of floor.c says\n", stderr);
    return 2;
}
