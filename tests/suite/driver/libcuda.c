// A driver for tests: it has a GPU's functions and no GPU.
//
// Its memory is the host's, it does all work when it is queued, and only the kernel `scale` does
// anything. It records what it hands out, so that double releases and leaks show. At the end of the
// process it writes these lines to the file that FAKE_CUDA_REPORT names:
//
//     calls NAME NUMBER     the number of calls of a function
//     live KIND NUMBER      the number of objects of a kind that were not released
//     wrong TEXT            a call that no program may make
//
// FAKE_CUDA makes it misbehave, with instructions that end in ';'. CALL is the number of a call of
// the function, counted from 1; 0 means every call.
//
//     fail NAME CALL CODE     return the code, and do nothing
//     odd NAME CALL           return success, together with null, -1, NaN or text without an end
//     sticky NAME CALL CODE   return the code from every later call, until the end of the process
//     late NAME               do this function's copies at the next call of cuMemGetInfo_v2
//     set ATTRIBUTE VALUE     set a device's attribute, by its number
//     size KERNEL NUMBER BYTES   set the size of a parameter, counted from 1
//
// As on a GPU, the error of a kernel that leaves its buffer is sticky: every later call returns
// 700, even after the context is released and retained again.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Status;
typedef uint64_t Address;

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_PTX = 218, NOT_FOUND = 500,
       ILLEGAL_ADDRESS = 700, TOO_LARGE = 720 };

// ---- Instructions and the account of calls ----

#define FUNCTIONS(F) \
    F(cuCtxGetCurrent) F(cuCtxSetCurrent) F(cuCtxSynchronize) F(cuDeviceGet) F(cuDeviceGetAttribute) \
    F(cuDeviceGetCount) F(cuDeviceGetName) F(cuDevicePrimaryCtxRelease_v2) F(cuDevicePrimaryCtxRetain) \
    F(cuDriverGetVersion) F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventElapsedTime) F(cuEventRecord) \
    F(cuEventSynchronize) F(cuFuncGetAttribute) F(cuFuncGetParamInfo) F(cuFuncSetAttribute) \
    F(cuGetErrorName) \
    F(cuGetErrorString) F(cuGraphDestroy) F(cuGraphExecDestroy) F(cuGraphInstantiateWithFlags) \
    F(cuGraphLaunch) F(cuInit) F(cuIpcCloseMemHandle) F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle_v2) F(cuLaunchCooperativeKernel) F(cuLaunchKernel) F(cuMemAllocAsync) F(cuMemAlloc_v2) \
    F(cuMemFreeAsync) F(cuMemFree_v2) F(cuMemGetAddressRange_v2) F(cuMemGetInfo_v2) F(cuMemcpyDtoHAsync_v2) F(cuMemcpyHtoDAsync_v2) F(cuMemsetD8Async) \
    F(cuModuleGetFunction) F(cuModuleLoadDataEx) F(cuModuleUnload) \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) F(cuStreamBeginCapture_v2) F(cuStreamCreate) \
    F(cuStreamDestroy_v2) F(cuStreamEndCapture) F(cuStreamSynchronize) F(cuStreamWaitEvent)

#define NUMBER(name) N_##name,
#define NAME(name) #name,
enum { FUNCTIONS(NUMBER) COUNT };
static const char *const names[] = { FUNCTIONS(NAME) };

static struct { unsigned calls; int late; } functions[COUNT];
static Status stuck;
static char wrongs[4096];

static void wrong(const char *text, const char *name) {
    size_t used = strlen(wrongs);
    snprintf(wrongs + used, sizeof wrongs - used, "wrong %s in %s\n", text, name);
}

struct Instruction { char what[8], name[64]; long call, code; };

// Finds the instruction of this kind for this call of a function.
static int asked(const char *what, const char *name, unsigned call, struct Instruction *found) {
    const char *text = getenv("FAKE_CUDA");
    for (; text && *text; text = strchr(text, ';') ? strchr(text, ';') + 1 : NULL) {
        memset(found, 0, sizeof *found);
        if (sscanf(text, " %7s %63[^; ] %ld %ld", found->what, found->name, &found->call, &found->code) < 2)
            continue;
        if (!strcmp(found->what, what) && !strcmp(found->name, name)
            && (found->call == 0 || found->call == (long) call))
            return 1;
    }
    return 0;
}

// Counts a call; sets `*odd` if its answers must be nonsense.
static Status enter(int number, int *odd) {
    struct Instruction found;
    const char *name = names[number];
    unsigned call = ++functions[number].calls;
    *odd = asked("odd", name, call, &found);
    functions[number].late = asked("late", name, 0, &found);
    if (number == N_cuGetErrorName || number == N_cuGetErrorString || number == N_cuDriverGetVersion)
        return asked("fail", name, call, &found) ? (Status) found.code : 0;
    if (!stuck && asked("sticky", name, call, &found))
        stuck = (Status) found.code;
    if (stuck)
        return stuck;
    return asked("fail", name, call, &found) ? (Status) found.code : 0;
}

#define ENTER(name) \
    const char *const this = #name; (void) this; \
    int odd; Status entered = enter(N_##name, &odd); \
    if (entered != 0) return entered

// ---- Objects that are handed out ----

enum { ALLOCATION, STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXEC, KINDS };
static const char *const kinds[] = { "allocation", "stream", "event", "module", "function", "graph", "exec" };

struct Launch { struct Thing *function; Address values; float factor; uint32_t len; struct Launch *next; };

struct Thing {
    int kind, live;
    char *memory; size_t bytes;            // an allocation
    struct Launch *launches; int captures; // a stream that captures, a graph, an exec
    int timed, recorded;                   // an event
    char *text;                            // a module's PTX, a function's name
    struct Thing *next;
};
static struct Thing *things;
static int contexts;
static int context;                        // its address is the handle
static __thread void *current;

static struct Thing *give(int kind) {
    struct Thing *thing = calloc(1, sizeof *thing);
    thing->kind = kind, thing->live = 1, thing->next = things;
    return things = thing;
}

// Returns the live object behind a handle, or null.
static struct Thing *get(void *handle, int kind, const char *name) {
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing == handle && thing->kind == kind && thing->live)
            return thing;
    wrong("a handle that is not live", name);
    return NULL;
}

// Returns the bytes at an address of the device.
static char *at(Address address, size_t bytes, const char *name) {
    for (struct Thing *thing = things; thing; thing = thing->next) {
        Address start = (Address) (uintptr_t) thing->memory;
        if (thing->kind == ALLOCATION && thing->live && address >= start
            && address - start <= thing->bytes && bytes <= thing->bytes - (address - start))
            return thing->memory + (address - start);
    }
    if (name)
        wrong("memory outside of every allocation", name);
    return NULL;
}

static Status is_current(const char *name) {
    if (current == &context)
        return 0;
    wrong("no current context", name);
    return INVALID_CONTEXT;
}

#define CURRENT() do { Status s_ = is_current(this); if (s_) return s_; } while (0)
#define GET(variable, handle, kind) \
    struct Thing *variable = get(handle, kind, this); if (!variable) return INVALID_VALUE
#define GET_STREAM(handle) if (handle) { GET(stream_, handle, STREAM); (void) stream_; }

// ---- Copies, now or late ----

struct Copy { void *to; const void *from; size_t bytes; struct Copy *next; };
static struct Copy *late;

static void copy(int number, void *to, const void *from, size_t bytes) {
    if (!functions[number].late) {
        memcpy(to, from, bytes);
        return;
    }
    struct Copy *one = malloc(sizeof *one);
    *one = (struct Copy) { to, from, bytes, late };
    late = one;
}

static void finish_copies(void) {
    for (; late; late = late->next)
        memcpy(late->to, late->from, late->bytes);
}

// ---- The end ----

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("FAKE_CUDA_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int number = 0; number < COUNT; number++)
        fprintf(file, "calls %s %u\n", names[number], functions[number].calls);
    for (int kind = 0; kind < KINDS; kind++) {
        int live = 0;
        for (struct Thing *thing = things; thing; thing = thing->next)
            live += thing->kind == kind && thing->live;
        fprintf(file, "live %s %d\n", kinds[kind], live);
    }
    fprintf(file, "live context %d\n%s", contexts, wrongs);
    fclose(file);
}

// ---- The driver and its one device ----

Status cuInit(unsigned flags) { ENTER(cuInit); return flags ? INVALID_VALUE : 0; }

Status cuDriverGetVersion(int *version) {
    ENTER(cuDriverGetVersion);
    *version = odd ? -1 : 13000;
    return 0;
}

Status cuDeviceGetCount(int *count) { ENTER(cuDeviceGetCount); *count = odd ? -1 : 1; return 0; }

Status cuDeviceGet(int *device, int ordinal) {
    ENTER(cuDeviceGet);
    *device = odd ? -1 : 0;
    return ordinal ? INVALID_VALUE : 0;
}

Status cuDeviceGetName(char *name, int len, int device) {
    (void) device;
    ENTER(cuDeviceGetName);
    if (odd)
        memset(name, 0xEE, (size_t) len);
    else
        snprintf(name, (size_t) len, "GPU of a test");
    return 0;
}

Status cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void) device;
    static const int known[][2] = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {10, 32}, {13, 1980000}, {16, 4}, {36, 2619000}, {37, 5120}, {39, 2048}, {75, 9}, {76, 0},
        {81, 233472}, {82, 65536}, {95, 1}, {97, 232448}, {115, 1},
    };
    ENTER(cuDeviceGetAttribute);
    char number[16];
    struct Instruction found;
    snprintf(number, sizeof number, "%d", attribute);
    *value = 0;
    for (size_t n = 0; n < sizeof known / sizeof *known; n++)
        if (known[n][0] == attribute)
            *value = known[n][1];
    const char *text = getenv("FAKE_CUDA");
    for (; text && *text; text = strchr(text, ';') ? strchr(text, ';') + 1 : NULL)
        if (sscanf(text, " %7s %63[^; ] %ld", found.what, found.name, &found.call) == 3
            && !strcmp(found.what, "set") && !strcmp(found.name, number))
            *value = (int) found.call;
    if (odd)
        *value = -1;
    return 0;
}

Status cuDevicePrimaryCtxRetain(void **out, int device) {
    (void) device;
    ENTER(cuDevicePrimaryCtxRetain);
    contexts += !odd;
    *out = odd ? NULL : &context;
    return 0;
}

Status cuDevicePrimaryCtxRelease_v2(int device) {
    (void) device;
    ENTER(cuDevicePrimaryCtxRelease_v2);
    if (--contexts < 0)
        wrong("a context that is not held", this);
    return 0;
}

Status cuCtxGetCurrent(void **out) { ENTER(cuCtxGetCurrent); *out = odd ? NULL : current; return 0; }

Status cuCtxSetCurrent(void *handle) { ENTER(cuCtxSetCurrent); current = handle; return 0; }

Status cuCtxSynchronize(void) { ENTER(cuCtxSynchronize); CURRENT(); return 0; }

static Status say(Status code, const char **out, int odd, const char *unknown, const char *launch_failed) {
    *out = !odd && code == 999 ? unknown : !odd && code == 719 ? launch_failed : NULL;
    return *out || odd ? 0 : INVALID_VALUE;
}

Status cuGetErrorName(Status code, const char **out) {
    ENTER(cuGetErrorName);
    return say(code, out, odd, "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_LAUNCH_FAILED");
}

Status cuGetErrorString(Status code, const char **out) {
    ENTER(cuGetErrorString);
    return say(code, out, odd, "unknown error", "unspecified launch failure");
}

// ---- Memory ----

Status cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER(cuMemGetInfo_v2);
    CURRENT();
    finish_copies();
    *free_bytes = odd ? SIZE_MAX : (size_t) 1 << 32;
    *total = odd ? 0 : (size_t) 1 << 33;
    return 0;
}

static Status allocate(Address *address, size_t bytes, int odd) {
    if (bytes > (size_t) 1 << 30)
        return OUT_OF_MEMORY;
    *address = odd ? 0 : 1;
    if (odd)
        return 0;
    struct Thing *thing = give(ALLOCATION);
    thing->bytes = bytes;
    thing->memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(thing->memory, 0xCC, bytes);
    *address = (Address) (uintptr_t) thing->memory;
    return 0;
}

static Status deallocate(Address address, const char *name) {
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == ALLOCATION && thing->live && (Address) (uintptr_t) thing->memory == address) {
            thing->live = 0; // not freed, so that no address is used twice and each stays known
            return 0;
        }
    wrong("memory that is not allocated", name);
    return INVALID_VALUE;
}

Status cuMemAlloc_v2(Address *address, size_t bytes) {
    ENTER(cuMemAlloc_v2);
    CURRENT();
    return allocate(address, bytes, odd);
}

Status cuMemAllocAsync(Address *address, size_t bytes, void *stream) {
    ENTER(cuMemAllocAsync);
    CURRENT();
    GET_STREAM(stream);
    return allocate(address, bytes, odd);
}

Status cuMemFree_v2(Address address) { ENTER(cuMemFree_v2); CURRENT(); return deallocate(address, this); }

Status cuMemFreeAsync(Address address, void *stream) {
    ENTER(cuMemFreeAsync);
    CURRENT();
    GET_STREAM(stream);
    return deallocate(address, this);
}

Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
    ENTER(cuMemcpyHtoDAsync_v2);
    CURRENT();
    GET_STREAM(stream);
    char *memory = at(to, bytes, this);
    if (!memory)
        return INVALID_VALUE;
    copy(N_cuMemcpyHtoDAsync_v2, memory, from, bytes);
    return 0;
}

Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) {
    ENTER(cuMemcpyDtoHAsync_v2);
    CURRENT();
    GET_STREAM(stream);
    char *memory = at(from, bytes, this);
    if (!memory)
        return INVALID_VALUE;
    copy(N_cuMemcpyDtoHAsync_v2, to, memory, bytes);
    return 0;
}

Status cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void *stream) {
    ENTER(cuMemsetD8Async);
    CURRENT();
    GET_STREAM(stream);
    char *memory = at(to, bytes, this);
    if (!memory)
        return INVALID_VALUE;
    memset(memory, byte, bytes);
    return 0;
}

// ---- Memory of other processes: a separate allocation of the same size ----

struct Handle { char word[8]; size_t bytes; char rest[48]; };

Status cuIpcGetMemHandle(struct Handle *handle, Address address) {
    ENTER(cuIpcGetMemHandle);
    CURRENT();
    memset(handle, 0, sizeof *handle);
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == ALLOCATION && thing->live && (Address) (uintptr_t) thing->memory == address) {
            memcpy(handle->word, odd ? "another" : "memory", 7);
            handle->bytes = thing->bytes;
            return 0;
        }
    wrong("memory that is not allocated", this);
    return INVALID_VALUE;
}

Status cuIpcOpenMemHandle_v2(Address *address, struct Handle handle, unsigned flags) {
    ENTER(cuIpcOpenMemHandle_v2);
    CURRENT();
    if (flags != 1 || strcmp(handle.word, "memory"))
        return INVALID_VALUE;
    return allocate(address, handle.bytes, odd);
}

Status cuIpcCloseMemHandle(Address address) {
    ENTER(cuIpcCloseMemHandle);
    CURRENT();
    return deallocate(address, this);
}

Status cuMemGetAddressRange_v2(Address *start, size_t *bytes, Address address) {
    ENTER(cuMemGetAddressRange_v2);
    CURRENT();
    for (struct Thing *thing = things; thing; thing = thing->next)
        if (thing->kind == ALLOCATION && thing->live && (Address) (uintptr_t) thing->memory == address) {
            *start = address;
            *bytes = odd ? 1 : thing->bytes;
            return 0;
        }
    wrong("memory that is not allocated", this);
    return INVALID_VALUE;
}

// ---- Streams and events ----

Status cuStreamCreate(void **out, unsigned flags) {
    (void) flags;
    ENTER(cuStreamCreate);
    CURRENT();
    *out = odd ? NULL : give(STREAM);
    return 0;
}

Status cuStreamDestroy_v2(void *handle) {
    ENTER(cuStreamDestroy_v2);
    GET(stream, handle, STREAM);
    stream->live = 0;
    return 0;
}

Status cuStreamSynchronize(void *handle) { ENTER(cuStreamSynchronize); CURRENT(); GET_STREAM(handle); return 0; }

Status cuStreamWaitEvent(void *handle, void *event, unsigned flags) {
    (void) flags;
    ENTER(cuStreamWaitEvent);
    CURRENT();
    GET_STREAM(handle);
    GET(one, event, EVENT);
    if (!one->recorded)
        wrong("an event that was not recorded", this);
    return 0;
}

Status cuEventCreate(void **out, unsigned flags) {
    ENTER(cuEventCreate);
    CURRENT();
    *out = NULL;
    if (!odd) {
        struct Thing *event = give(EVENT);
        event->timed = !(flags & 2);
        *out = event;
    }
    return 0;
}

Status cuEventDestroy_v2(void *handle) {
    ENTER(cuEventDestroy_v2);
    GET(event, handle, EVENT);
    event->live = 0;
    return 0;
}

Status cuEventRecord(void *handle, void *stream) {
    ENTER(cuEventRecord);
    CURRENT();
    GET_STREAM(stream);
    GET(event, handle, EVENT);
    event->recorded = 1;
    return 0;
}

// Called only by groups on several GPUs.
Status cuEventQuery(struct Thing *event) { return event->recorded ? 0 : INVALID_VALUE; }

Status cuEventSynchronize(void *handle) {
    ENTER(cuEventSynchronize);
    CURRENT();
    GET(event, handle, EVENT);
    return event->recorded ? 0 : INVALID_VALUE;
}

Status cuEventElapsedTime(float *ms, void *start, void *end) {
    ENTER(cuEventElapsedTime);
    CURRENT();
    GET(one, start, EVENT);
    GET(other, end, EVENT);
    if (!one->timed || !other->timed || !one->recorded || !other->recorded)
        wrong("events without a time", this);
    *ms = odd ? NAN : 1.5f;
    return 0;
}

// ---- Modules and kernels ----

Status cuModuleLoadDataEx(void **out, const void *text, unsigned count, int *options, void **values) {
    ENTER(cuModuleLoadDataEx);
    CURRENT();
    *out = NULL;
    if (!strstr(text, ".target")) {
        char *log = NULL;
        size_t bytes = 0;
        for (unsigned n = 0; n < count; n++) {
            if (options[n] == 5)
                log = values[n];
            if (options[n] == 6)
                bytes = (size_t) (uintptr_t) values[n];
        }
        if (log)
            snprintf(log, bytes, "line 1; error : there is no .target\n");
        return INVALID_PTX;
    }
    if (!odd) {
        struct Thing *module = give(MODULE);
        module->text = strdup(text);
        *out = module;
    }
    return 0;
}

Status cuModuleUnload(void *handle) {
    ENTER(cuModuleUnload);
    GET(module, handle, MODULE);
    module->live = 0;
    return 0;
}

Status cuModuleGetFunction(void **out, void *handle, const char *name) {
    ENTER(cuModuleGetFunction);
    CURRENT();
    GET(module, handle, MODULE);
    if (!strstr(module->text, name) || !strcmp(name, "not_compiled"))
        return NOT_FOUND;
    *out = NULL;
    if (!odd) {
        struct Thing *function = give(FUNCTION);
        function->text = strdup(name);
        *out = function;
    }
    return 0;
}

Status cuFuncGetAttribute(int *value, int attribute, void *handle) {
    static const int known[] = {1024, 0, 0, 0, 16};
    ENTER(cuFuncGetAttribute);
    GET(function, handle, FUNCTION);
    (void) function;
    *value = odd ? -1 : attribute >= 0 && attribute < 5 ? known[attribute] : 0;
    return 0;
}

// Returns the size of a kernel's parameter, or 0 without such a parameter; sets its offset.
static size_t parameter(const struct Thing *function, size_t index, size_t *offset) {
    static const size_t scale[3][2] = {{0, 8}, {8, 4}, {12, 4}};
    struct Instruction found;
    int known = !strcmp(function->text, "scale") && index < 3;
    *offset = known ? scale[index][0] : 16;
    if (asked("size", function->text, (unsigned) index + 1, &found))
        return (size_t) found.code;
    return known ? scale[index][1] : 0;
}

Status cuFuncGetParamInfo(void *handle, size_t index, size_t *offset, size_t *bytes) {
    ENTER(cuFuncGetParamInfo);
    CURRENT();
    GET(function, handle, FUNCTION);
    size_t size = parameter(function, index, offset);
    if (!size)
        return INVALID_VALUE;
    *bytes = odd ? (size_t) -1 : size;
    return 0;
}

Status cuFuncSetAttribute(void *handle, int attribute, int value) {
    (void) attribute;
    ENTER(cuFuncSetAttribute);
    GET(function, handle, FUNCTION);
    (void) function;
    return value < 0 ? INVALID_VALUE : 0;
}

// The number of SMs, and the threads of each, which alone limit its blocks.
enum { SMS = 4, SM_THREADS = 2048 };

static unsigned resident(unsigned threads) { return SMS * (SM_THREADS / threads); }

Status cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, void *handle, int threads, size_t shared, unsigned flags
) {
    (void) shared, (void) flags;
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    CURRENT();
    GET(function, handle, FUNCTION);
    (void) function;
    *blocks = odd ? -1 : SM_THREADS / threads;
    return 0;
}

static void run(const struct Launch *launch) {
    if (strcmp(launch->function->text, "scale"))
        return;
    float *values = (float *) (void *) at(launch->values, sizeof(float) * launch->len, NULL);
    if (!values) {
        stuck = ILLEGAL_ADDRESS; // the next call returns it
        return;
    }
    for (uint32_t n = 0; n < launch->len; n++)
        values[n] *= launch->factor;
}

// Runs a kernel that is launched on a stream, or records it if the stream captures.
static Status launch(struct Thing *function, struct Thing *stream, void **params, const char *this) {
    struct Launch *one = calloc(1, sizeof *one);
    one->function = function;
    if (!strcmp(function->text, "scale")) {
        memcpy(&one->values, params[0], sizeof one->values);
        memcpy(&one->factor, params[1], sizeof one->factor);
        memcpy(&one->len, params[2], sizeof one->len);
        size_t offset, bytes = parameter(function, 2, &offset);
        for (size_t n = sizeof one->len; n < bytes; n++)
            if (((const char *) params[2])[n]) {
                wrong("what is no argument", this);
                break;
            }
    }
    if (stream && stream->captures) {
        struct Launch **end = &stream->launches;
        while (*end)
            end = &(*end)->next;
        *end = one;
    } else {
        run(one);
    }
    return 0;
}

Status cuLaunchKernel(
    void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void *stream, void **params, void **extra
) {
    (void) shared;
    ENTER(cuLaunchKernel);
    CURRENT();
    GET_STREAM(stream);
    GET(function, handle, FUNCTION);
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || extra)
        wrong("an empty launch", this);
    return launch(function, stream, params, this);
}

Status cuLaunchCooperativeKernel(
    void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void *stream, void **params
) {
    (void) shared;
    ENTER(cuLaunchCooperativeKernel);
    CURRENT();
    GET_STREAM(stream);
    GET(function, handle, FUNCTION);
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
        wrong("an empty launch", this);
    if (grid_x * grid_y * grid_z > resident(block_x * block_y * block_z))
        return TOO_LARGE;
    return launch(function, stream, params, this);
}

// ---- Graphs ----

Status cuStreamBeginCapture_v2(void *handle, int mode) {
    (void) mode;
    ENTER(cuStreamBeginCapture_v2);
    GET(stream, handle, STREAM);
    stream->captures = 1;
    return 0;
}

Status cuStreamEndCapture(void *handle, void **out) {
    ENTER(cuStreamEndCapture);
    GET(stream, handle, STREAM);
    stream->captures = 0;
    *out = NULL;
    if (!odd) {
        struct Thing *graph = give(GRAPH);
        graph->launches = stream->launches;
        *out = graph;
    }
    return 0;
}

Status cuGraphInstantiateWithFlags(void **out, void *handle, unsigned long long flags) {
    (void) flags;
    ENTER(cuGraphInstantiateWithFlags);
    GET(graph, handle, GRAPH);
    *out = NULL;
    if (!odd) {
        struct Thing *exec = give(EXEC);
        exec->launches = graph->launches;
        *out = exec;
    }
    return 0;
}

Status cuGraphDestroy(void *handle) {
    ENTER(cuGraphDestroy);
    GET(graph, handle, GRAPH);
    graph->live = 0;
    return 0;
}

Status cuGraphExecDestroy(void *handle) {
    ENTER(cuGraphExecDestroy);
    GET(exec, handle, EXEC);
    exec->live = 0;
    return 0;
}

Status cuGraphLaunch(void *handle, void *stream) {
    ENTER(cuGraphLaunch);
    CURRENT();
    GET_STREAM(stream);
    GET(exec, handle, EXEC);
    for (const struct Launch *launch = exec->launches; launch; launch = launch->next)
        run(launch);
    return 0;
}
