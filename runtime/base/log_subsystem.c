#include "runtime/base/log_subsystem.h"

#include <string.h>
#include <strings.h>

enum { INIT, BOOTSTRAP, TOPO, MEM, P2P, PROXY, COLL, TRANSPORT, DEVICE, UTIL, SUBSYSTEMS };

static const char *const subsystem_names[SUBSYSTEMS] = {
    "init", "bootstrap", "topo", "mem", "p2p", "proxy", "coll", "transport", "device", "util"};

/* The source files of each; the first row whose text is in a file's path decides. */
static const struct {
    const char *path;
    int subsystem;
} sources[] = {
    {"runtime/base/", UTIL},
    {"runtime/node/", TOPO},
    {"runtime/memory/domain", P2P},
    {"runtime/memory/map", P2P},
    {"runtime/memory/window", P2P},
    {"runtime/memory/", MEM},
    {"runtime/operations/malloc", MEM},
    {"runtime/operations/register", MEM},
    {"runtime/proxy/", PROXY},
    {"runtime/collectives/", COLL},
    {"runtime/teams/", COLL},
    {"runtime/network/", TRANSPORT},
    {"runtime/job/", INIT},
    {"runtime/start", INIT},
    {"runtime/init", INIT},
    {"runtime/end", INIT},
    {"runtime/setup", INIT},
    {"runtime/", UTIL},
    {"bootstrap/", BOOTSTRAP},
    {"transport/", TRANSPORT},
    {"device/", DEVICE},
};

unsigned log_subsystem_of(const char *source)
{
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strstr(source, sources[i].path))
            return 1u << sources[i].subsystem;
    }
    return 1u << UTIL;
}

bool log_subsystems_read(const char *list, unsigned *chosen, const char **wrong)
{
    const bool all_others = *list == '^';
    unsigned named = 0;

    for (const char *at = list + all_others; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t n = strcspn(at, ",");
        int found = 0;
        while (found < SUBSYSTEMS && (strlen(subsystem_names[found]) != n ||
                                      strncasecmp(at, subsystem_names[found], n) != 0))
            found++;
        if (found < SUBSYSTEMS)
            named |= 1u << found;
        else if (n == 3 && strncasecmp(at, "all", n) == 0)
            named = LOG_SUBSYSTEMS_ALL;
        else {
            *wrong = at;
            return false;
        }
    }
    *chosen = all_others ? ~named : named ? named : LOG_SUBSYSTEMS_ALL;
    return true;
}
