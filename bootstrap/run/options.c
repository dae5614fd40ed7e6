#define _GNU_SOURCE
#include "bootstrap/run/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/run/say.h"

static const char usage[] =
    "usage: gshmemrun -n N [options] PROGRAM [ARGUMENTS...]\n"
    "\n"
    "Starts N processing elements (PEs) of a GSHMEM program on this machine.\n"
    "\n"
    "  -n N, -np N       how many PEs\n"
    "  --hosts K         deal them, in blocks, to K pretended hosts that share no memory\n"
    "  -x VAR=VALUE      set an environment variable for the PEs\n"
    "  -x VAR            hand one on (all are; this insists that it is set)\n"
    "  --tag-output      begin each line that a PE writes with its number: [3] ...\n"
    "  --timeout SECONDS end the job after that time, with status 124\n"
    "  --bind core|none  give each PE a core of its own, in turn; none, the default: any CPU\n"
    "  --help, --version\n"
    "\n"
    "So that scripts written for other launchers work: --bind-to (hwthread and core are core, the\n"
    "rest none), --np; without effect are --oversubscribe, --allow-run-as-root, --map-by WORD,\n"
    "--rank-by WORD, --mca NAME VALUE, -genvall, -envall; each with one dash or two.\n"
    "\n"
    "PE 0 has gshmemrun's standard input, the others have /dev/null. INT, TERM, HUP, QUIT, TSTP\n"
    "and CONT sent to gshmemrun reach every process of the job, USR1 and USR2 every PE.\n"
    "\n"
    "When a PE exits with a status other than 0, is killed, or ends before gshmem_finalize, the\n"
    "job is ended, and gshmemrun exits with that PE's status or with 128 + the signal. Nothing\n"
    "that PEs have started outlives the job.\n"
    "\n"
    "Environment of a PE:\n"
    "  GSHMEM_RUN_PE       its number, 0..N-1\n"
    "  GSHMEM_RUN_NPES     N\n"
    "  GSHMEM_RUN_WIRE, GSHMEM_RUN_LIFELINE\n"
    "                      descriptors for libgshmem; a wrapper script must keep them open\n"
    "\n"
    "Exit status: 0; a PE's own; 1 when the job failed otherwise; 2 bad usage; 124 timeout;\n"
    "126 PROGRAM cannot be executed; 127 PROGRAM not found.\n";

enum { HOSTS = 256, TAG_OUTPUT, TIMEOUT, BIND, BIND_TO, IGNORED, IGNORED_PAIR, HELP, VERSION };

static const struct option long_options[] = {
    {"hosts", required_argument, NULL, HOSTS},
    {"tag-output", no_argument, NULL, TAG_OUTPUT},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"bind", required_argument, NULL, BIND},
    {"bind-to", required_argument, NULL, BIND_TO},
    {"np", required_argument, NULL, 'n'},
    {"n", required_argument, NULL, 'n'},
    {"x", required_argument, NULL, 'x'},
    {"oversubscribe", no_argument, NULL, IGNORED},
    {"allow-run-as-root", no_argument, NULL, IGNORED},
    {"map-by", required_argument, NULL, IGNORED},
    {"rank-by", required_argument, NULL, IGNORED},
    {"mca", required_argument, NULL, IGNORED_PAIR},
    {"genvall", no_argument, NULL, IGNORED},
    {"envall", no_argument, NULL, IGNORED},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static bool bad_usage(void)
{
    say("gshmemrun --help says what it takes");
    return false;
}

static bool parse_count(const char *option, const char *text, int *count)
{
    char *end;

    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > OPTIONS_PES_MAX) {
        say("%s %s: expected a number from 1 to %d", option, text, OPTIONS_PES_MAX);
        return bad_usage();
    }
    *count = (int)value;
    return true;
}

static bool parse_timeout(const char *text, int64_t *milliseconds)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds > 0 && seconds <= 1e9)) {
        say("--timeout %s: expected seconds, more than 0", text);
        return bad_usage();
    }
    *milliseconds = (int64_t)(seconds * 1000);
    return true;
}

static bool parse_bind(const char *text, bool *core)
{
    *core = strcmp(text, "core") == 0;
    if (*core || strcmp(text, "none") == 0)
        return true;
    say("--bind %s: expected core or none", text);
    return bad_usage();
}

static bool parse_variable(struct options *o, char *text)
{
    size_t name = strcspn(text, "=");

    if (name == 0) {
        say("-x %s: expected VAR or VAR=VALUE", text);
        return bad_usage();
    }
    if (strncmp(text, "GSHMEM_RUN_", 11) == 0) {
        say("-x %s: GSHMEM_RUN_ variables are gshmemrun's own", text);
        return bad_usage();
    }
    if (!text[name]) {
        if (getenv(text))
            return true; /* the PEs have the whole environment */
        say("-x %s: it is not set here; -x %s=VALUE sets it", text, text);
        return bad_usage();
    }
    char **set = realloc(o->set, (o->n_set + 1) * sizeof *set);
    if (!set) {
        say("out of memory");
        return false;
    }
    o->set = set;
    o->set[o->n_set++] = text;
    return true;
}

static bool check(const struct options *o)
{
    if (!o->n_pes) {
        say("-n N is missing: how many PEs?");
        return bad_usage();
    }
    if (o->n_hosts > o->n_pes) {
        say("--hosts %d: more hosts than PEs (-n %d)", o->n_hosts, o->n_pes);
        return bad_usage();
    }
    if (!o->program[0]) {
        say("which program? It comes after the options");
        return bad_usage();
    }
    return true;
}

/* One option. False ends parsing, with *status. */
static bool take(struct options *o, int option, int *status)
{
    switch (option) {
    case 'n':
        return parse_count("-n", optarg, &o->n_pes);
    case HOSTS:
        return parse_count("--hosts", optarg, &o->n_hosts);
    case 'x':
        return parse_variable(o, optarg);
    case TAG_OUTPUT:
        return o->tag_output = true;
    case TIMEOUT:
        return parse_timeout(optarg, &o->timeout_ms);
    case BIND:
        return parse_bind(optarg, &o->bind_core);
    case BIND_TO:
        o->bind_core = strcmp(optarg, "core") == 0 || strcmp(optarg, "hwthread") == 0;
        return true;
    case IGNORED:
        return true;
    case IGNORED_PAIR:
        say("--mca %s: expected a name and a value", optarg);
        return bad_usage();
    case HELP:
        *status = fputs(usage, stdout) < 0 || fflush(stdout) ? 1 : 0;
        return false;
    case VERSION:
        *status = puts("gshmemrun " GSHMEM_VERSION_TEXT) < 0 || fflush(stdout) ? 1 : 0;
        return false;
    default:
        return bad_usage(); /* getopt has said why */
    }
}

bool options_parse(int argc, char **argv, struct options *o, int *status)
{
    static char name[] = "gshmemrun";
    int option;

    *o = (struct options){.n_hosts = 1, .timeout_ms = -1};
    *status = 2;
    if (argc < 1)
        return bad_usage();
    argv[0] = name; /* as getopt's messages begin */
    /* +: what follows the program's name is the program's. */
    while ((option = getopt_long_only(argc, argv, "+n:x:", long_options, NULL)) >= 0) {
        if (option == IGNORED_PAIR && optind < argc) {
            optind++;
            option = IGNORED;
        }
        if (!take(o, option, status))
            return false;
    }
    o->program = argv + optind;
    return check(o);
}

void options_free(struct options *o)
{
    free(o->set);
    o->set = NULL;
}
