// NCCL for tests, over the fake driver: ranks are processes that exchange arrays as files in the
// folder that FAKE_NCCL_FOLDER names. No call waits: each is in progress until all ranks have made
// it.
//
// The end of a communicator is a file there too: `finalized`, `destroyed` or `aborted`, with the
// rank. FAKE_NCCL makes it misbehave: `version NUMBER`, `fail NAME CODE` (the result of a
// function), `state CODE` (an error while in progress), `hang NAME` (an operation that never ends).

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Status;
enum { SUCCESS = 0, INVALID_ARGUMENT = 4, IN_PROGRESS = 7 };

typedef struct { char bytes[128]; } Id;
typedef struct { size_t size; unsigned magic, version; int blocking; } Config;
typedef struct { int rank, size, calls, pending, hangs, root, peer, sent[8], received[8]; void *to; size_t bytes; } Comm;
enum { ALL = -1, MEETING = -2, SENDING = -3, RECEIVING = -4 }; // or the root of a broadcast

static int asked(const char *what, const char *name, long *code) {
    char first[16], second[64];
    const char *text = getenv("FAKE_NCCL");
    if (!text || sscanf(text, "%15s %63s %ld", first, second, code) < 2 || strcmp(first, what))
        return 0;
    return name ? !strcmp(second, name) : sscanf(second, "%ld", code) == 1;
}

#define MAY_FAIL(name) long code = 0; if (asked("fail", name, &code)) return (Status) code

static void path(char *to, size_t size, const char *name, int number, int rank) {
    snprintf(to, size, "%s/%s-%d-%d", getenv("FAKE_NCCL_FOLDER"), name, number, rank);
}

static void publish(const char *name, int number, int rank, const void *bytes, size_t len) {
    char file[512], begun[520];
    path(file, sizeof file, name, number, rank);
    snprintf(begun, sizeof begun, "%s.new", file);
    FILE *out = fopen(begun, "wb");
    fwrite(bytes, 1, len, out);
    fclose(out);
    rename(begun, file);
}

static int read_back(const char *name, int number, int rank, void *bytes, size_t len) {
    char file[512];
    path(file, sizeof file, name, number, rank);
    FILE *in = fopen(file, "rb");
    if (!in)
        return 0;
    size_t got = bytes ? fread(bytes, 1, len, in) : 0;
    fclose(in);
    return !bytes || got == len;
}

Status ncclGetVersion(int *version) {
    MAY_FAIL("ncclGetVersion");
    *version = asked("version", NULL, &code) ? (int) code : 22203;
    return SUCCESS;
}

const char *ncclGetErrorString(Status status) { return status > 8 ? NULL : status == 6 ? "remote process exited" : "some error"; }

Status ncclGetUniqueId(Id *id) {
    MAY_FAIL("ncclGetUniqueId");
    memset(id->bytes, 0x5A, sizeof id->bytes);
    return SUCCESS;
}

Status ncclCommInitRankConfig(Comm **out, int size, Id id, int rank, Config *config) {
    MAY_FAIL("ncclCommInitRankConfig");
    for (size_t i = 0; i < sizeof id.bytes; i++)
        if (id.bytes[i] != 0x5A)
            return INVALID_ARGUMENT;
    if (config->size < sizeof *config || config->magic != 0xcafebeef || config->version < 21400 || config->blocking)
        return INVALID_ARGUMENT;
    Comm *comm = *out = calloc(1, sizeof *comm);
    comm->rank = rank, comm->size = size, comm->pending = 1, comm->root = MEETING;
    comm->hangs = asked("hang", "ncclCommInitRankConfig", &code);
    publish("op", 0, rank, "", 0);
    return IN_PROGRESS;
}

Status ncclCommGetAsyncError(Comm *comm, Status *state) {
    MAY_FAIL("ncclCommGetAsyncError");
    *state = comm->pending ? IN_PROGRESS : SUCCESS;
    if (comm->root != MEETING && asked("state", NULL, &code))
        *state = (Status) code;
    if (!comm->pending || comm->hangs)
        return SUCCESS;
    if (comm->root == SENDING || comm->root == RECEIVING) {
        // A send ends when the receiver has removed the file.
        char name[16], file[512];
        int is_sender = comm->root == SENDING, to = is_sender ? comm->peer : comm->rank;
        int from = is_sender ? comm->rank : comm->peer;
        int number = is_sender ? comm->sent[to] : comm->received[from];
        snprintf(name, sizeof name, "to%d", to);
        path(file, sizeof file, name, number, from);
        if (is_sender ? access(file, F_OK) == 0 : !read_back(name, number, from, comm->to, comm->bytes))
            return SUCCESS;
        if (!is_sender)
            remove(file);
        comm->pending = 0;
        return SUCCESS;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        int wanted = comm->root == ALL || comm->root == rank;
        char *to = (char *) comm->to + (comm->root == ALL ? (size_t) rank * comm->bytes : 0);
        if (!read_back("op", comm->calls, rank, wanted ? to : NULL, comm->bytes))
            return SUCCESS;
    }
    comm->pending = 0;
    return SUCCESS;
}

static Status begin(Comm *comm, const char *name, const void *from, void *to, size_t bytes, int type, int root) {
    long code;
    if (asked("fail", name, &code))
        return (Status) code;
    if (comm->pending || type != 0 || !from || !to)
        return INVALID_ARGUMENT;
    comm->calls++, comm->pending = 1, comm->to = to, comm->bytes = bytes, comm->root = root;
    comm->hangs = asked("hang", name, &code);
    publish("op", comm->calls, comm->rank, from, bytes);
    return IN_PROGRESS;
}

Status ncclAllGather(const void *from, void *to, size_t bytes, int type, Comm *comm, void *stream) {
    (void) stream;
    return begin(comm, "ncclAllGather", from, to, bytes, type, ALL);
}

Status ncclBroadcast(const void *from, void *to, size_t bytes, int type, int root, Comm *comm, void *stream) {
    (void) stream;
    return begin(comm, "ncclBroadcast", from, to, bytes, type, root);
}

static Status between(Comm *comm, const char *name, void *array, size_t bytes, int type, int peer, int way) {
    long code;
    if (asked("fail", name, &code))
        return (Status) code;
    if (comm->pending || type != 0 || !array || peer < 0 || peer >= comm->size || peer == comm->rank)
        return INVALID_ARGUMENT;
    comm->pending = 1, comm->to = array, comm->bytes = bytes, comm->peer = peer, comm->root = way;
    comm->hangs = asked("hang", name, &code);
    if (way == SENDING) {
        char to[16];
        snprintf(to, sizeof to, "to%d", peer);
        publish(to, ++comm->sent[peer], comm->rank, array, bytes);
    } else {
        comm->received[peer]++;
    }
    return IN_PROGRESS;
}

Status ncclSend(const void *from, size_t bytes, int type, int peer, Comm *comm, void *stream) {
    (void) stream;
    return between(comm, "ncclSend", (void *) from, bytes, type, peer, SENDING);
}

Status ncclRecv(void *to, size_t bytes, int type, int peer, Comm *comm, void *stream) {
    (void) stream;
    return between(comm, "ncclRecv", to, bytes, type, peer, RECEIVING);
}

static Status end(Comm *comm, const char *how) {
    publish(how, 0, comm->rank, "", 0);
    return SUCCESS;
}

Status ncclCommFinalize(Comm *comm) { MAY_FAIL("ncclCommFinalize"); return end(comm, "finalized"); }
Status ncclCommDestroy(Comm *comm) { end(comm, "destroyed"); free(comm); return SUCCESS; }
Status ncclCommAbort(Comm *comm) { end(comm, "aborted"); free(comm); return SUCCESS; }
