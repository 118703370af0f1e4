/* Load for the benchmarks, and an echo.
 *
 *   wire echo                       print the port, echo every byte on every connection until killed
 *   wire load PORT FILE ANSWER DEPTH SECONDS
 *       FILE: frames, each preceded by its length (uint32, native order); one connection per frame.
 *       Each connection keeps DEPTH copies of its frame in flight; every ANSWER bytes count as one answer.
 *       Prints: answers seconds
 */
#include <sys/epoll.h>

#include "wire.h"

#define CONNECTIONS_MAX 4096
#define BUFFER_BYTES (1 << 20)

static char buffer[BUFFER_BYTES];

static void watch(int epoll, int fd, int slot) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = ((unsigned long)slot << 32) | (unsigned)fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
}

static void echo(void) {
    int listener = listen_somewhere(), epoll = epoll_create1(0);
    struct epoll_event events[256];
    watch(epoll, listener, 0);
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = (int)(events[i].data.u64 & 0xffffffff);
            if (fd == listener) {
                int accepted = accept(listener, 0, 0);
                no_delay(accepted);
                watch(epoll, accepted, 0);
                continue;
            }
            ssize_t got = recv(fd, buffer, BUFFER_BYTES, 0);
            if (got <= 0)
                close(fd);
            else
                send_all(fd, buffer, got);
        }
    }
}

struct connection {
    char *frames;
    unsigned frame_bytes;
    size_t received;
};

static struct connection connections[CONNECTIONS_MAX];

static int open_all(int port, const char *path, int depth, int epoll) {
    FILE *file = fopen(path, "rb");
    unsigned bytes;
    int count = 0;
    if (!file) fail(path);
    while (count < CONNECTIONS_MAX && fread(&bytes, sizeof bytes, 1, file) == 1) {
        struct connection *c = &connections[count];
        int fd = connect_to(port);
        c->frame_bytes = bytes;
        c->frames = malloc((size_t)bytes * depth);
        if (fread(c->frames, bytes, 1, file) != 1) fail("frame");
        for (int i = 1; i < depth; i++) memcpy(c->frames + (size_t)i * bytes, c->frames, bytes);
        watch(epoll, fd, count++);
        send_all(fd, c->frames, (size_t)bytes * depth);
    }
    fclose(file);
    return count;
}

static int load(int port, const char *path, size_t answer, int depth, double seconds) {
    int epoll = epoll_create1(0);
    struct epoll_event events[256];
    double start, now;
    long answers = 0;
    open_all(port, path, depth, epoll);
    start = now = seconds_now();
    while (now < start + seconds) {
        int count = epoll_wait(epoll, events, 256, 1000);
        for (int i = 0; i < count; i++) {
            int fd = (int)(events[i].data.u64 & 0xffffffff);
            struct connection *c = &connections[events[i].data.u64 >> 32];
            ssize_t got = recv(fd, buffer, BUFFER_BYTES, 0);
            size_t whole;
            if (got <= 0) fail("the server closed a connection");
            c->received += got;
            whole = c->received / answer;
            c->received -= whole * answer;
            answers += whole;
            send_all(fd, c->frames, whole * c->frame_bytes);
        }
        now = seconds_now();
    }
    printf("%ld %.6f\n", answers, now - start);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "echo")) echo();
    if (argc == 7 && !strcmp(argv[1], "load"))
        return load(atoi(argv[2]), argv[3], strtoul(argv[4], 0, 10), atoi(argv[5]), atof(argv[6]));
    fprintf(stderr, "usage: wire echo | wire load PORT FILE ANSWER DEPTH SECONDS\n");
    return 2;
}
