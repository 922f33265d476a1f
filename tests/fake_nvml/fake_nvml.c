/* A library of NVIDIA's driver that a test writes: answers come from a file of key=value lines, read
 * again for each call, so that a test changes a device while somebody asks about it.
 *
 *   count=2                      devices; 0.name=..., 1.memory_used=... are of each
 *   0.fail.nvmlDeviceGetName=3   that call fails with a code; without a number before it, for all
 *   0.sleep.nvmlDeviceGetName=60000   it takes so many ms
 *   0.field.269=5                a field value; 0.field.269.fail=3 one that fails
 *   0.proc=7:1024                a process and its bytes, one a line; gproc, mproc likewise
 *   0.xid=79                     told once by the events, again when the number of lines grows
 *   0.mig=1, 0.mig.0.uuid=...    a device that is cut, and its slices
 *
 * FAKE_NVML_STATE names the file; FAKE_NVML_LOG, if set, gets a line for each call. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int
enum { OK, BAD_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10,
       OLD_VERSION = 25, DEVICES = 16, SLICES = 8, TEXT = 1 << 16 };
typedef struct { int index, slice; } *Device;
typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct { uint pid; ull bytes; uint gi, ci; } Process;
typedef struct { char old[16]; uint domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { ull total, free, used; } Memory;
typedef struct { uint version; ull total, reserved, free, used; } Memory2;
typedef struct { uint id, scope; long long at, took; uint type, code; union { double d; ull u; } value; } Field;
typedef struct { Device device; ull type, data; uint gi, ci; } Event;
typedef struct { uint sms, copy, decode, encode, jpeg, ofa, gi, ci; ull memory_mb; } Attributes;
_Static_assert(sizeof(Process) == 24 && sizeof(Pci) == 68, "as nvml.h has them");
_Static_assert(sizeof(Field) == 40 && sizeof(Event) == 32, "as nvml.h has them");

static struct { int index, slice; } devices[DEVICES], slices[DEVICES][SLICES];
static char text[TEXT];
static uint told[DEVICES];

/* What a healthy device that nobody uses says. */
static const char *usual[][2] = {
    {"name", "NVIDIA H100 80GB HBM3"}, {"memory_total", "85899345920"}, {"memory_used", "0"},
    {"memory_reserved", "671088640"}, {"utilization", "0"}, {"power_mw", "70000"},
    {"energy_tick_ms", "20"}, {"temperature", "34"}, {"slowdown", "90"}, {"shutdown", "95"},
    {"sm_mhz", "345"}, {"mem_mhz", "2619"}, {"sm_max_mhz", "1980"}, {"mem_max_mhz", "2619"},
    {"app_mhz", "1980"}, {"base_mhz", "1590"}, {"limit_mw", "700000"}, {"default_mw", "700000"}, {"min_mw", "200000"},
    {"max_mw", "700000"}, {"events", "1"}, {"ecc", "1"}, {"ecc_pending", "1"}, {"corrected", "0"},
    {"uncorrected", "0"}, {"remap.0", "0"}, {"remap.1", "0"}, {"remap.2", "0"}, {"remap.3", "0"},
    {"retired_pending", "0"}, {"retired.0", "0"}, {"retired.1", "0"}, {"mig", "0"},
    {"mig_pending", ""}, {"persistence", "1"}, {"compute_mode", "0"}, {"pcie_gen", "5"},
    {"pcie_width", "16"}, {"links", "2"}, {"link_errors", "0"}, {"numa", "0"}, {"cpus", "255"},
    {"capability", "90"}, {"architecture", "9"}, {"cores", "16896"}, {"bus_bits", "5120"},
    {"vbios", "96.00.5E.00.01"}, {"gsp", "580.65.06"}, {"part", "900-21010-0000-000"},
    {"serial", "1650000000001"}, {"pstate", "0"}, {"minor", ""}, {"virtualization", "0"},
};

static void load(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = file < 0 ? 0 : read(file, text, TEXT - 1);
    text[size < 0 ? 0 : size] = 0;
    if (file >= 0) close(file);
}

/* The value of the nth line of a key, copied; 0 if there is none. */
static int line(const char *key, uint nth, char *out, size_t size) {
    size_t length = strlen(key);
    for (char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (!strncmp(at, key, length) && at[length] == '=' && !nth--) {
            size_t end = strcspn(at + length + 1, "\n");
            snprintf(out, size, "%.*s", (int)(end < size ? end : size - 1), at + length + 1);
            return 1;
        }
    return 0;
}

static const char *word(int index, const char *name) {
    static char out[256];
    char key[128];
    snprintf(key, sizeof key, "%d.%s", index, name);
    if (line(key, 0, out, sizeof out)) return out;
    for (size_t at = 0; at < sizeof usual / sizeof *usual; at++)
        if (!strcmp(usual[at][0], name)) return usual[at][1];
    return "";
}

static ull number(int index, const char *name) { return strtoull(word(index, name), 0, 0); }

static ull now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* What a call does first: it is logged, it takes its time, and it may fail. */
static int enter(const char *symbol, int index) {
    char key[160], value[32];
    load();
    const char *path = getenv("FAKE_NVML_LOG");
    int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (log >= 0) {
        int size = snprintf(key, sizeof key, "%llu %s %d\n", now_ns(), symbol, index);
        if (write(log, key, size) < 0) abort();
        close(log);
    }
    for (int mine = 1; mine >= 0; mine--) {
        char who[16] = "";
        if (mine) snprintf(who, sizeof who, "%d.", index);
        snprintf(key, sizeof key, "%ssleep.%s", who, symbol);
        if (line(key, 0, value, sizeof value)) usleep(1000 * atoi(value));
        snprintf(key, sizeof key, "%sfail.%s", who, symbol);
        if (line(key, 0, value, sizeof value)) return atoi(value);
    }
    return OK;
}

#define ENTER(index) do { int code_ = enter(__func__, index); if (code_) return code_; } while (0)
#define NUMBER(symbol, type, name) \
    API symbol(Device d, type *out) { ENTER(d->index); *out = (type)number(d->index, name); return OK; }
#define WORD(symbol, name) \
    API symbol(Device d, char *out, uint size) { ENTER(d->index); snprintf(out, size, "%s", word(d->index, name)); return OK; }

/* ── the library and its devices ─────────────────────────────────────────────────────────────── */

static int begin(void) {
    for (int at = 0; at < DEVICES; at++) {
        devices[at].index = at, devices[at].slice = -1;
        for (int part = 0; part < SLICES; part++) slices[at][part].index = at, slices[at][part].slice = part;
    }
    return OK;
}
static uint counted(void) { char out[16]; return line("count", 0, out, sizeof out) ? atoi(out) : 1; }
static void of_library(const char *key, const char *else_, char *out, uint size) {
    if (!line(key, 0, out, size)) snprintf(out, size, "%s", else_);
}

API nvmlInitWithFlags(uint flags) { (void)flags; ENTER(-1); return begin(); }
API nvmlInit_v2(void) { ENTER(-1); return begin(); }
API nvmlInit(void) { ENTER(-1); return begin(); }
API nvmlShutdown(void) { ENTER(-1); return OK; }
__attribute__((visibility("default"))) const char *nvmlErrorString(int code) { return code ? "an error" : "fine"; }
API nvmlSystemGetDriverVersion(char *out, uint size) { ENTER(-1); of_library("driver", "580.65.06", out, size); return OK; }
API nvmlSystemGetNVMLVersion(char *out, uint size) { ENTER(-1); of_library("nvml", "13.580.65.06", out, size); return OK; }
API nvmlSystemGetCudaDriverVersion_v2(int *out) { char t[16]; ENTER(-1); of_library("cuda", "13000", t, 16); *out = atoi(t); return OK; }
API nvmlSystemGetCudaDriverVersion(int *out) { char t[16]; ENTER(-1); of_library("cuda", "13000", t, 16); *out = atoi(t); return OK; }
API nvmlDeviceGetCount_v2(uint *out) { ENTER(-1); *out = counted(); return OK; }
API nvmlDeviceGetHandleByIndex_v2(uint index, Device *out) {
    ENTER((int)index);
    if (index >= counted()) return BAD_ARGUMENT;
    *out = (Device)&devices[index];
    return OK;
}

static void uuid_of(Device d, char *out, uint size) {
    char key[32];
    if (d->slice < 0) snprintf(key, sizeof key, "%d.uuid", d->index);
    else snprintf(key, sizeof key, "%d.mig.%d.uuid", d->index, d->slice);
    if (!line(key, 0, out, size))
        snprintf(out, size, d->slice < 0 ? "GPU-00000000-0000-0000-0000-%012d" : "MIG-00000000-0000-0000-%04d-%012d",
                 d->slice < 0 ? d->index : d->slice, d->index);
}
API nvmlDeviceGetUUID(Device d, char *out, uint size) { ENTER(d->index); uuid_of(d, out, size); return OK; }
API nvmlDeviceGetHandleByUUID(const char *uuid, Device *out) {
    char seen[96];
    ENTER(-1);
    for (uint at = 0; at < counted(); at++) {
        *out = (Device)&devices[at];
        uuid_of(*out, seen, sizeof seen);
        if (!strcmp(seen, uuid)) return OK;
    }
    return NOT_FOUND;
}
API nvmlDeviceGetPciInfo_v3(Device d, Pci *out) {
    ENTER(d->index);
    memset(out, 0, sizeof *out);
    const char *said = word(d->index, "pci");
    if (*said) snprintf(out->bus_id, sizeof out->bus_id, "%s", said);
    else snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", d->index + 1);
    return OK;
}
API nvmlDeviceGetIndex(Device d, uint *out) { ENTER(d->index); *out = d->index; return OK; }
API nvmlDeviceGetMinorNumber(Device d, uint *out) { ENTER(d->index); *out = d->index; return OK; }

/* ── slices ──────────────────────────────────────────────────────────────────────────────────── */

API nvmlDeviceGetMigMode(Device d, uint *now, uint *later) {
    ENTER(d->index);
    *now = number(d->index, "mig");
    *later = *word(d->index, "mig_pending") ? number(d->index, "mig_pending") : *now;
    return OK;
}
API nvmlDeviceGetMaxMigDeviceCount(Device d, uint *out) { ENTER(d->index); *out = SLICES - 1; return OK; }
API nvmlDeviceGetMigDeviceHandleByIndex(Device d, uint part, Device *out) {
    char key[32], said[96];
    ENTER(d->index);
    snprintf(key, sizeof key, "%d.mig.%u.uuid", d->index, part);
    if (part >= SLICES || !line(key, 0, said, sizeof said)) return NOT_FOUND;
    *out = (Device)&slices[d->index][part];
    return OK;
}
API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device d, Device *out) { ENTER(d->index); *out = (Device)&devices[d->index]; return OK; }
API nvmlDeviceGetGpuInstanceId(Device d, uint *out) { ENTER(d->index); *out = d->slice + 1; return OK; }
API nvmlDeviceGetAttributes_v2(Device d, Attributes *out) {
    ENTER(d->index);
    if (d->slice < 0) return NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->sms = 16, out->gi = 1, out->ci = 1, out->memory_mb = 9856;
    char key[32], said[64];
    snprintf(key, sizeof key, "%d.mig.%d.attributes", d->index, d->slice);
    if (line(key, 0, said, sizeof said)) sscanf(said, "%u,%u,%u,%llu", &out->sms, &out->gi, &out->ci, &out->memory_mb);
    return OK;
}

/* ── one number or word each ─────────────────────────────────────────────────────────────────── */

WORD(nvmlDeviceGetName, "name")
WORD(nvmlDeviceGetVbiosVersion, "vbios")
WORD(nvmlDeviceGetBoardPartNumber, "part")
WORD(nvmlDeviceGetSerial, "serial")
API nvmlDeviceGetGspFirmwareVersion(Device d, char *out) { ENTER(d->index); snprintf(out, 80, "%s", word(d->index, "gsp")); return OK; }
NUMBER(nvmlDeviceGetPowerUsage, uint, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, "limit_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, uint, "limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, uint, "default_mw")
NUMBER(nvmlDeviceGetPerformanceState, uint, "pstate")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, ull, "events")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, ull, "events")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, uint, "retired_pending")
NUMBER(nvmlDeviceGetPersistenceMode, uint, "persistence")
NUMBER(nvmlDeviceGetComputeMode, uint, "compute_mode")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, "pcie_gen")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, uint, "pcie_gen")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, uint, "pcie_width")
NUMBER(nvmlDeviceGetNumaNodeId, uint, "numa")
NUMBER(nvmlDeviceGetArchitecture, uint, "architecture")
NUMBER(nvmlDeviceGetNumGpuCores, uint, "cores")
NUMBER(nvmlDeviceGetMemoryBusWidth, uint, "bus_bits")
NUMBER(nvmlDeviceGetVirtualizationMode, uint, "virtualization")
NUMBER(nvmlDeviceGetSupportedEventTypes, ull, "event_types")

API nvmlDeviceGetPowerManagementLimitConstraints(Device d, uint *low, uint *high) {
    ENTER(d->index);
    *low = number(d->index, "min_mw"), *high = number(d->index, "max_mw");
    return OK;
}
API nvmlDeviceGetTemperature(Device d, int sensor, uint *out) { (void)sensor; ENTER(d->index); *out = number(d->index, "temperature"); return OK; }
API nvmlDeviceGetTemperatureThreshold(Device d, int which, uint *out) {
    ENTER(d->index);
    *out = number(d->index, which ? "slowdown" : "shutdown");
    return OK;
}
API nvmlDeviceGetClockInfo(Device d, int which, uint *out) { ENTER(d->index); *out = number(d->index, which == 2 ? "mem_mhz" : "sm_mhz"); return OK; }
API nvmlDeviceGetMaxClockInfo(Device d, int which, uint *out) { ENTER(d->index); *out = number(d->index, which == 2 ? "mem_max_mhz" : "sm_max_mhz"); return OK; }
API nvmlDeviceGetApplicationsClock(Device d, int which, uint *out) { (void)which; ENTER(d->index); *out = number(d->index, "app_mhz"); return OK; }
API nvmlDeviceGetDefaultApplicationsClock(Device d, int which, uint *out) { (void)which; ENTER(d->index); *out = number(d->index, "base_mhz"); return OK; }
API nvmlDeviceGetCudaComputeCapability(Device d, int *major, int *minor) {
    ENTER(d->index);
    *major = number(d->index, "capability") / 10, *minor = number(d->index, "capability") % 10;
    return OK;
}
API nvmlDeviceGetUtilizationRates(Device d, uint *out) { ENTER(d->index); out[0] = number(d->index, "utilization"), out[1] = 0; return OK; }
API nvmlDeviceGetEccMode(Device d, uint *now, uint *later) { ENTER(d->index); *now = number(d->index, "ecc"), *later = number(d->index, "ecc_pending"); return OK; }
API nvmlDeviceGetTotalEccErrors(Device d, int kind, int counter, ull *out) {
    (void)counter;
    ENTER(d->index);
    *out = number(d->index, kind ? "uncorrected" : "corrected");
    return OK;
}
API nvmlDeviceGetRemappedRows(Device d, uint *fixed, uint *lost, uint *waits, uint *failed) {
    ENTER(d->index);
    *fixed = number(d->index, "remap.0"), *lost = number(d->index, "remap.1");
    *waits = number(d->index, "remap.2"), *failed = number(d->index, "remap.3");
    return OK;
}
API nvmlDeviceGetRetiredPages(Device d, int why, uint *count, ull *pages) {
    ENTER(d->index);
    uint have = number(d->index, why ? "retired.1" : "retired.0");
    if (have && (!pages || *count < have)) { *count = have; return TOO_SMALL; }
    *count = have;
    for (uint at = 0; at < have; at++) pages[at] = 4096ull * at;
    return OK;
}
API nvmlDeviceGetNvLinkState(Device d, uint link, uint *out) {
    ENTER(d->index);
    if (link >= number(d->index, "links")) return NOT_SUPPORTED;
    *out = 1;
    return OK;
}
API nvmlDeviceGetNvLinkErrorCounter(Device d, uint link, int counter, ull *out) {
    ENTER(d->index);
    *out = link || counter ? 0 : number(d->index, "link_errors");
    return OK;
}
API nvmlDeviceGetCpuAffinity(Device d, uint words, unsigned long *out) {
    ENTER(d->index);
    memset(out, 0, words * sizeof *out);
    out[0] = number(d->index, "cpus");
    return OK;
}

/* ── memory, processes, energy, fields, events ───────────────────────────────────────────────── */

API nvmlDeviceGetMemoryInfo(Device d, Memory *out) {
    ENTER(d->index);
    out->total = number(d->index, "memory_total");
    out->used = number(d->index, "memory_used") + number(d->index, "memory_reserved");
    out->free = out->total - out->used;
    return OK;
}
API nvmlDeviceGetMemoryInfo_v2(Device d, Memory2 *out) {
    ENTER(d->index);
    if (out->version != 0x02000028) return OLD_VERSION;
    out->total = number(d->index, "memory_total"), out->used = number(d->index, "memory_used");
    out->reserved = number(d->index, "memory_reserved"), out->free = out->total - out->used - out->reserved;
    return OK;
}

static int processes(const char *symbol, const char *name, Device d, uint *count, Process *out) {
    char key[32], said[64];
    int code = enter(symbol, d->index);
    if (code) return code;
    snprintf(key, sizeof key, "%d.%s", d->index, name);
    uint have = 0;
    while (line(key, have, said, sizeof said)) have++;
    if (have && (!out || *count < have)) { *count = have; return TOO_SMALL; }
    *count = have;
    for (uint at = 0; at < have; at++) {
        memset(&out[at], 0, sizeof out[at]);
        line(key, at, said, sizeof said);
        sscanf(said, "%u:%llu", &out[at].pid, &out[at].bytes);
    }
    return OK;
}
#define LIST(symbol, name) API symbol(Device d, uint *count, Process *out) { return processes(__func__, name, d, count, out); }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "proc")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "gproc")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mproc")

/* Power times time since a moment that all processes share, as often as the counter ticks. */
static ull energy_mj(int index) {
    ull tick = number(index, "energy_tick_ms") * 1000000ull, since = now_ns() - number(index, "energy_epoch_ns");
    if (tick) since -= since % tick;
    return number(index, "power_mw") * (since / 1000) / 1000000;
}
API nvmlDeviceGetTotalEnergyConsumption(Device d, ull *out) { ENTER(d->index); *out = energy_mj(d->index); return OK; }
API nvmlDeviceGetFieldValues(Device d, int count, Field *fields) {
    ENTER(d->index);
    for (int at = 0; at < count; at++) {
        char key[48], said[64];
        uint id = fields[at].id;
        snprintf(key, sizeof key, "%d.field.%u.fail", d->index, id);
        fields[at].code = line(key, 0, said, sizeof said) ? (uint)atoi(said) : OK;
        snprintf(key, sizeof key, "%d.field.%u", d->index, id);
        int is_power = id == 185 || id == 186, is_energy = id == 83;
        if (line(key, 0, said, sizeof said)) fields[at].value.u = strtoull(said, 0, 0);
        else if (is_power) fields[at].value.u = number(d->index, "power_mw");
        else if (is_energy) fields[at].value.u = energy_mj(d->index);
        else fields[at].value.u = 0;
        fields[at].type = is_power ? 1 : 3;
        fields[at].at = now_ns() / 1000;
    }
    return OK;
}

API nvmlEventSetCreate(void **out) { ENTER(-1); *out = told; return OK; }
API nvmlEventSetFree(void *set) { (void)set; ENTER(-1); return OK; }
API nvmlDeviceRegisterEvents(Device d, ull types, void *set) { (void)types; (void)set; ENTER(d->index); return OK; }
API nvmlEventSetWait_v2(void *set, Event *out, uint wait_ms) {
    (void)set; (void)wait_ms;
    ENTER(-1);
    for (uint at = 0; at < counted() && at < DEVICES; at++) {
        char key[16], said[32];
        snprintf(key, sizeof key, "%u.xid", at);
        if (line(key, told[at], said, sizeof said)) {
            told[at]++;
            *out = (Event){(Device)&devices[at], 8, strtoull(said, 0, 0), ~0u, ~0u};
            return OK;
        }
    }
    return TIMEOUT;
}
