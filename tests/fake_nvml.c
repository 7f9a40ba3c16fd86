/* A driver whose figures stand in the file FAKE_NVML, one a line: owner, what, value. The owner is "driver" or a UUID.
 * A value !N is NVML's error N; what is not in the file is not supported. OLD leaves out what old drivers lack. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, LOST = 15, VERSION_MISMATCH = 25 };
typedef struct { unsigned pid; unsigned long long bytes; unsigned instance, compute; } Process;
typedef struct { unsigned version, sensor; int degrees; } Temperature;

static int planted(const char *owner, const char *what, char *value) {
    char line[400], line_owner[100], line_what[100];
    int result = NOT_SUPPORTED;
    FILE *file = fopen(getenv("FAKE_NVML"), "r");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%99s %99s %199s", line_owner, line_what, value) != 3) continue;
        if (strcmp(owner, line_owner) || strcmp(what, line_what)) continue;
        result = value[0] == '!' ? atoi(value + 1) : SUCCESS;
        break;
    }
    fclose(file);
    return result;
}

static int number(const char *owner, const char *what, unsigned long long *result) {
    char value[200];
    int error = planted(owner, what, value);
    if (!error) *result = strtoull(value, NULL, 10);
    return error;
}

static int small(const char *owner, const char *what, unsigned *result) {
    unsigned long long value = 0;
    int error = number(owner, what, &value);
    if (!error) *result = (unsigned)value;
    return error;
}

int nvmlInitWithFlags(unsigned flags) { char value[200]; return planted("driver", "init", value); }

const char *nvmlErrorString(int error) { return "an error of the fake"; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) { return planted("driver", "version", version); }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    char value[200];
    int error = planted(uuid, "handle", value);
    *device = strdup(uuid);
    return error == NOT_SUPPORTED ? NOT_FOUND : error;
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) {
    return small(device, clock == 1 ? "sm" : clock == 2 ? "memory" : "other", mhz);
}

int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz) {
    return small(device, clock == 1 ? "sm_most" : "other", mhz);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { return small(device, "power", milliwatts); }

/* Planted as pid:bytes,pid:bytes; bytes of -1 become NVML's "not available". */
static int processes(const char *device, const char *what, unsigned *count, Process *list) {
    char value[200];
    unsigned room = *count, found = 0;
    int error = planted(device, what, value);
    if (error) return error;
    for (char *one = strtok(value, ","); one; one = strtok(NULL, ","), found++)
        if (found < room && strchr(one, ':'))
            list[found] = (Process){atoi(one), strtoull(strchr(one, ':') + 1, NULL, 10), -1, -1};
        else if (!strchr(one, ':'))
            found--; /* a dash: nobody */
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* "energy" is the power in milliwatts, counted in steps of 100 ms of the clock FAKE_SECONDS, the first of them 1 ms
 * after the first question. After "energy_questions" questions the GPU is lost. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    static int64_t start = 0;
    static unsigned long long questions = 0;
    unsigned long long milliwatts, most = -1;
    int error = number(device, "energy", &milliwatts);
    if (error) return error;
    number(device, "energy_questions", &most);
    if (questions++ >= most) return LOST;
    int64_t milliseconds = (int64_t)(1000 * atof(getenv("FAKE_SECONDS")));
    if (!start) start = milliseconds - 99;
    *millijoules = 5000000 + milliwatts * ((milliseconds - start) / 100) / 10;
    if (!number(device, "energy_back", &most)) *millijoules = 9000000 - *millijoules;
    return SUCCESS;
}

#ifdef OLD
#define LISTED(kind) nvmlDeviceGet##kind##RunningProcesses_v2
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
    return sensor ? NOT_SUPPORTED : small(device, "temperature", degrees);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
    return number(device, "reasons", bits);
}
#else
#define LISTED(kind) nvmlDeviceGet##kind##RunningProcesses_v3
int nvmlDeviceGetTemperatureV(void *device, Temperature *asked) {
    unsigned degrees = 0;
    if (asked->version != (sizeof *asked | 1 << 24)) return VERSION_MISMATCH;
    int error = asked->sensor ? NOT_SUPPORTED : small(device, "temperature", &degrees);
    asked->degrees = (int)degrees;
    return error;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits) {
    return number(device, "reasons", bits);
}
#endif

int LISTED(Compute)(void *device, unsigned *count, Process *list) { return processes(device, "compute", count, list); }
int LISTED(Graphics)(void *device, unsigned *count, Process *list) { return processes(device, "graphics", count, list); }
