#define _GNU_SOURCE
#include "bootstrap/run/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/run/say.h"
#include "runtime/base/printed.h"

static const char usage[] =
    "usage: gshmemrun -n N [options] PROGRAM [ARGUMENTS...]\n"
    "\n"
    "Starts N processing elements (PEs) of a GSHMEM program on this machine.\n"
    "\n"
    "  -n N, -np N       how many PEs\n"
    "  --hosts K         deal them, in blocks, to K pretended nodes that share no memory\n"
    "  -x VAR=VALUE      set an environment variable for the PEs\n"
    "  -x VAR            hand one on (all are; this insists that it is set)\n"
    "  --tag-output      begin each line that a PE writes with its number: [3] ...\n"
    "  --timeout SECONDS end the job after that time, with status 124\n"
    "  --bind core|none  give each PE a core of its own, in turn; none, the default: any CPU\n"
    "  -N N, -ppn N      how many PEs a node may have; without -n, how many each has\n"
    "  --wdir DIR        start PROGRAM in that folder\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "As other launchers spell it, with one dash or two: -c and --np are -n; -l and -prepend-rank "
    "are\n"
    "--tag-output; -genv NAME VALUE and -env NAME VALUE are -x; --bind-to hwthread and core are "
    "--bind\n"
    "core, the rest none; -H, -host LIST and -hosts LIST may name this machine. Without effect "
    "are\n"
    "--oversubscribe, --allow-run-as-root, --map-by WORD, --rank-by WORD, --mca NAME VALUE, "
    "-genvall,\n"
    "-envall, -genvlist NAMES, -envlist NAMES, --report-bindings, --quiet, -q, --verbose, -v.\n"
    "Several machines, and several programs in a job (A : B), are for mpirun, mpiexec and srun.\n"
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
    "  GSHMEM_RUN_WIRE, GSHMEM_RUN_LIFELINE, GSHMEM_RUN_LOG, GSHMEM_RUN_WITHIN\n"
    "                      descriptors for libgshmem; a wrapper script must keep them open\n"
    "\n"
    "Exit status: 0; a PE's own; 1 when the job failed otherwise; 2 bad usage; 124 timeout;\n"
    "126 PROGRAM cannot be executed; 127 PROGRAM not found.\n";

enum {
    HOSTS = 256,
    HOST,
    HOST_FILE,
    PER_HOST,
    TAG_OUTPUT,
    TIMEOUT,
    BIND,
    BIND_TO,
    WORK_FOLDER,
    VARIABLE_PAIR,
    NO_VARIABLES,
    IGNORED,
    IGNORED_PAIR,
    HELP,
    VERSION
};

static const struct option long_options[] = {
    {"hosts", required_argument, NULL, HOSTS},
    {"H", required_argument, NULL, HOST},
    {"host", required_argument, NULL, HOST},
    {"f", required_argument, NULL, HOST_FILE},
    {"hostfile", required_argument, NULL, HOST_FILE},
    {"machinefile", required_argument, NULL, HOST_FILE},
    {"N", required_argument, NULL, PER_HOST},
    {"ppn", required_argument, NULL, PER_HOST},
    {"perhost", required_argument, NULL, PER_HOST},
    {"npernode", required_argument, NULL, PER_HOST},
    {"tag-output", no_argument, NULL, TAG_OUTPUT},
    {"l", no_argument, NULL, TAG_OUTPUT},
    {"prepend-rank", no_argument, NULL, TAG_OUTPUT},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"bind", required_argument, NULL, BIND},
    {"bind-to", required_argument, NULL, BIND_TO},
    {"np", required_argument, NULL, 'n'},
    {"n", required_argument, NULL, 'n'},
    {"c", required_argument, NULL, 'n'},
    {"x", required_argument, NULL, 'x'},
    {"genv", required_argument, NULL, VARIABLE_PAIR},
    {"env", required_argument, NULL, VARIABLE_PAIR},
    {"genvnone", no_argument, NULL, NO_VARIABLES},
    {"envnone", no_argument, NULL, NO_VARIABLES},
    {"wdir", required_argument, NULL, WORK_FOLDER},
    {"wd", required_argument, NULL, WORK_FOLDER},
    {"oversubscribe", no_argument, NULL, IGNORED},
    {"allow-run-as-root", no_argument, NULL, IGNORED},
    {"map-by", required_argument, NULL, IGNORED},
    {"rank-by", required_argument, NULL, IGNORED},
    {"mca", required_argument, NULL, IGNORED_PAIR},
    {"genvall", no_argument, NULL, IGNORED},
    {"envall", no_argument, NULL, IGNORED},
    {"genvlist", required_argument, NULL, IGNORED},
    {"envlist", required_argument, NULL, IGNORED},
    {"report-bindings", no_argument, NULL, IGNORED},
    {"quiet", no_argument, NULL, IGNORED},
    {"q", no_argument, NULL, IGNORED},
    {"verbose", no_argument, NULL, IGNORED},
    {"v", no_argument, NULL, IGNORED},
    {"help", no_argument, NULL, HELP},
    {"h", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {"V", no_argument, NULL, VERSION},
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

/* VALUE in "NAME=VALUE" for the PEs, whatever was said of NAME before. */
static bool set_variable(struct options *o, const char *name, size_t length, const char *value)
{
    char *text;

    if (length == 0) {
        say("-x %s: expected VAR or VAR=VALUE", name);
        return bad_usage();
    }
    if (length >= 11 && strncmp(name, "GSHMEM_RUN_", 11) == 0) {
        say("-x %s: GSHMEM_RUN_ variables are gshmemrun's own", name);
        return bad_usage();
    }
    char **set = realloc(o->set, (o->n_set + 1) * sizeof *set);
    if (set)
        o->set = set;
    if (!set || asprintf(&text, "%.*s=%s", (int)length, name, value) < 0) {
        say("out of memory");
        return false;
    }
    size_t i = 0;
    while (i < o->n_set && strncmp(set[i], text, length + 1) != 0)
        i++;
    if (i < o->n_set)
        free(set[i]);
    else
        o->n_set++;
    set[i] = text;
    return true;
}

static bool parse_variable(struct options *o, const char *text)
{
    size_t length = strcspn(text, "=");

    if (text[length] || length == 0)
        return set_variable(o, text, length, text + length + 1);
    if (getenv(text))
        return true; /* the PEs have the whole environment */
    say("-x %s: it is not set here; -x %s=VALUE sets it", text, text);
    return bad_usage();
}

/* hydra's: NAME VALUE, or NAME=VALUE. */
static bool parse_variable_pair(struct options *o, const char *text, int argc, char **argv)
{
    size_t length = strcspn(text, "=");

    if (text[length])
        return set_variable(o, text, length, text + length + 1);
    if (optind < argc)
        return set_variable(o, text, length, argv[optind++]);
    say("-genv %s: expected a name and a value", text);
    return bad_usage();
}

static bool no_other_machines(const char *option, const char *text)
{
    say("%s %s: gshmemrun starts PEs on this machine alone; mpirun, mpiexec and srun start GSHMEM "
        "programs on several",
        option, text);
    return bad_usage();
}

static bool is_this_machine(const char *name, size_t length)
{
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    size_t up_to_dot = strcspn(here, ".");

    return (length == strlen(here) && strncmp(name, here, length) == 0) ||
           (length == up_to_dot && strncmp(name, here, length) == 0) ||
           (length == 9 && strncmp(name, "localhost", length) == 0) ||
           (length == 9 && strncmp(name, "127.0.0.1", length) == 0);
}

/* NAME[:PLACES],…: places for PEs, if all of the names are this machine's. */
static bool parse_hosts(struct options *o, const char *option, const char *text)
{
    o->places = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t length = strcspn(at, ":,");
        if (!is_this_machine(at, length))
            return no_other_machines(option, text);
        char *end = (char *)at + length;
        long places = *end == ':' ? strtol(end + 1, &end, 10) : 1;
        if ((*end && *end != ',') || places < 1 || places > OPTIONS_PES_MAX - o->places) {
            say("%s %s: expected names with numbers of PEs: localhost:4", option, text);
            return bad_usage();
        }
        o->places += (int)places;
    }
    return true;
}

/* How many PEs, where -n does not say. */
static bool count_pes(struct options *o)
{
    if (o->n_pes == 0 && o->per_node && o->n_nodes > OPTIONS_PES_MAX / o->per_node) {
        say("-N %d on each of %d nodes: a job has at most %d PEs", o->per_node, o->n_nodes,
            OPTIONS_PES_MAX);
        return bad_usage();
    }
    if (o->n_pes == 0 && o->per_node)
        o->n_pes = o->per_node * o->n_nodes;
    if (o->n_pes == 0)
        o->n_pes = o->places;
    if (o->n_pes == 0) {
        say("-n N is missing: how many PEs?");
        return bad_usage();
    }
    if (o->per_node && (o->n_pes + o->n_nodes - 1) / o->n_nodes > o->per_node) {
        say("-n %d with at most %d PEs on a node asks for more than %d node%s: --hosts %d pretends "
            "that there are more, and mpirun, mpiexec and srun start PEs on several machines",
            o->n_pes, o->per_node, o->n_nodes, o->n_nodes == 1 ? "" : "s",
            (o->n_pes + o->per_node - 1) / o->per_node);
        return bad_usage();
    }
    return true;
}

static bool options_check(struct options *o, bool literal)
{
    if (!count_pes(o))
        return false;
    if (o->n_nodes > o->n_pes) {
        say("--hosts %d: more nodes than PEs (-n %d)", o->n_nodes, o->n_pes);
        return bad_usage();
    }
    if (!o->program[0]) {
        say("which program? It comes after the options");
        return bad_usage();
    }
    for (char **word = o->program; *word && !literal; word++)
        if (strcmp(*word, ":") == 0) {
            say("several programs in a job (%s ... : ...) are for mpirun and mpiexec; if ':' is an "
                "argument of the "
                "program, put -- before %s",
                o->program[0], o->program[0]);
            return bad_usage();
        }
    return true;
}

/* --wdir. PWD names the folder too: a program that reads the variable would otherwise take the
 * folder that gshmemrun was started in. -x PWD=... wins, wherever it stands. */
static bool enter_folder(const char *folder)
{
    char *name = chdir(folder) == 0 ? getcwd(NULL, 0) : NULL;
    const bool done = name && setenv("PWD", name, 1) == 0;
    if (!done)
        say("--wdir %s: %s", folder, strerror(errno));
    free(name);
    return done || bad_usage();
}

/* One option. False ends parsing, with *status. */
static bool options_take(struct options *o, int option, int argc, char **argv, int *status)
{
    switch (option) {
    case 'n':
        return parse_count("-n", optarg, &o->n_pes);
    case HOSTS: /* hydra's -hosts takes names */
        return optarg[strspn(optarg, "+-0123456789")] ? parse_hosts(o, "-hosts", optarg)
                                                      : parse_count("--hosts", optarg, &o->n_nodes);
    case HOST:
        return parse_hosts(o, "-H", optarg);
    case HOST_FILE:
        return no_other_machines("--hostfile", optarg);
    case PER_HOST:
        return parse_count("-N", optarg, &o->per_node);
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
    case VARIABLE_PAIR:
        return parse_variable_pair(o, optarg, argc, argv);
    case NO_VARIABLES:
        say("-genvnone: the PEs have gshmemrun's whole environment; env -i NAME=VALUE gshmemrun "
            "... gives them less");
        return bad_usage();
    case WORK_FOLDER:
        return enter_folder(optarg);
    case IGNORED:
        return true;
    case IGNORED_PAIR:
        if (optind < argc && argv[optind]) {
            optind++;
            return true;
        }
        say("--mca %s: expected a name and a value", optarg);
        return bad_usage();
    case HELP:
        fputs(usage, stdout);
        *status = printed("gshmemrun", 0);
        return false;
    case VERSION:
        puts("gshmemrun " GSHMEM_VERSION_TEXT);
        *status = printed("gshmemrun", 0);
        return false;
    default:
        return bad_usage(); /* getopt has said why */
    }
}

bool options_parse(int argc, char **argv, struct options *o, int *status)
{
    static char name[] = "gshmemrun";
    int option;

    *o = (struct options){.n_nodes = 1, .timeout_ms = -1};
    *status = 2;
    if (argc < 1)
        return bad_usage();
    argv[0] = name; /* as getopt's messages begin */
    /* +: what follows the program's name is the program's. */
    while ((option = getopt_long_only(argc, argv, "+n:x:", long_options, NULL)) >= 0) {
        if (!options_take(o, option, argc, argv, status))
            return false;
    }
    o->program = argv + optind;
    return options_check(o, optind > 1 && strcmp(argv[optind - 1], "--") == 0);
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < o->n_set; i++)
        free(o->set[i]);
    free(o->set);
    o->set = NULL;
    o->n_set = 0;
}
