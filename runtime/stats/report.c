/* Counts for people, as a table; and for programs, as JSON. */
#include <inttypes.h>
#include <string.h>

#include "runtime/base/json_text.h"
#include "runtime/stats/stats.h"

enum { OF_PAIR = 2 + STATS_CLASSES, MATRIX_MOST = 16 };

/* ---- The table ---- */

static uint64_t sum_of(const struct stats_report *r, int name)
{
    uint64_t sum = 0;

    for (int i = 0; i < r->n; i++)
        sum += stats_named(r->of[i], name);
    return sum;
}

/* In a unit in which it has at most five digits. */
static const char *short_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char unit[] = "\0KMGTPE";
    int u = 0;
    double value = (double)bytes;

    for (; value >= 99999.5; u++)
        value /= 1024;
    snprintf(text, size, "%.0f%s%c", value, u ? " " : "", unit[u] ? unit[u] : ' ');
    return text;
}

static void print_operations(FILE *to, const struct stats_report *r)
{
    bool any = false;
    char bytes[24];

    for (int pair = 0; pair < STATS_PAIRS; pair++) {
        const int first = pair * OF_PAIR;
        const char *name = stats_name(first);
        if (!sum_of(r, first))
            continue;
        if (!any)
            fprintf(to, "  %-24s %10s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "operations",
                    "number", "bytes", "to 8", "to 64", "to 512", "to 4K", "to 32K", "to 256K",
                    "to 2M", "larger");
        any = true;
        fprintf(to, "  %-24.*s %10" PRIu64 " %8s", (int)(strrchr(name, '.') - name), name,
                sum_of(r, first), short_bytes(sum_of(r, first + 1), bytes, sizeof bytes));
        for (int c = 0; c < STATS_CLASSES; c++)
            fprintf(to, " %8" PRIu64, sum_of(r, first + 2 + c));
        fputc('\n', to);
    }
    if (!any)
        fprintf(to, "  no operations\n");
}

static void print_counters(FILE *to, const struct stats_report *r)
{
    bool any = false;

    for (int name = STATS_PAIRS * OF_PAIR; name < stats_names(); name++) {
        int least = 0, most = 0;
        if (!sum_of(r, name))
            continue;
        for (int i = 1; i < r->n; i++) {
            const uint64_t value = stats_named(r->of[i], name);
            least = value < stats_named(r->of[least], name) ? i : least;
            most = value > stats_named(r->of[most], name) ? i : most;
        }
        if (!any)
            fprintf(to, "  %-24s %16s %16s %6s %16s %6s\n", "", "all PEs", "least", "PE", "most",
                    "PE");
        any = true;
        fprintf(to, "  %-24s %16" PRIu64 " %16" PRIu64 " %6d %16" PRIu64 " %6d\n", stats_name(name),
                sum_of(r, name), stats_named(r->of[least], name), r->pe[least],
                stats_named(r->of[most], name), r->pe[most]);
    }
}

/* Which of a PE's calls has that name; -1: none. */
static int report_find_call(const struct stats_sums *of, const char *name)
{
    for (int c = 0; c < STATS_CALLS && of->call[c][0]; c++) {
        if (strcmp(of->call[c], name) == 0)
            return c;
    }
    return -1;
}

static void print_call(FILE *to, const struct stats_report *r, const char *name)
{
    uint64_t calls = 0, us = 0, most = 0;
    int by = r->pe[0];

    for (int i = 0; i < r->n; i++) {
        const int c = report_find_call(r->of[i], name);
        if (c < 0)
            continue;
        const uint64_t own = r->of[i]->value[STATS_CALLS_NS + c] / 1000;
        calls += r->of[i]->value[STATS_COUNTERS_END + c];
        us += own;
        if (own > most) {
            most = own;
            by = r->pe[i];
        }
    }
    if (calls)
        fprintf(to, "  %-40s %12" PRIu64 " %14" PRIu64 " %14" PRIu64 " %6d\n", name, calls, us,
                most, by);
}

/* Each name once, at the first PE that has it. */
static void print_calls(FILE *to, const struct stats_report *r)
{
    bool any = false;

    for (int i = 0; i < r->n; i++) {
        for (int c = 0; c < STATS_CALLS && r->of[i]->call[c][0]; c++) {
            bool again = false;
            for (int before = 0; before < i && !again; before++)
                again = report_find_call(r->of[before], r->of[i]->call[c]) >= 0;
            if (again)
                continue;
            if (!any)
                fprintf(to, "  %-40s %12s %14s %14s %6s\n", "calls and ranges", "number",
                        "us within", "most", "PE");
            any = true;
            print_call(to, r, r->of[i]->call[c]);
        }
    }
}

static uint64_t cell_of(const struct stats_row *row, int what)
{
    return what == 0 ? row->operations : what == 1 ? row->bytes : row->ns / 1000;
}

static void print_matrix(FILE *to, const struct stats_report *r)
{
    static const char *const title[] = {"operations", "bytes", "us of waiting"};

    for (int what = 0; what < 3; what++) {
        const int columns = r->n_pes + (what == 2); /* waits may be for several PEs */
        fprintf(to, "  %s of each PE, by the other PE:\n  %6s", title[what], "PE");
        for (int pe = 0; pe < columns; pe++) {
            if (pe < r->n_pes)
                fprintf(to, " %11d", pe);
            else
                fprintf(to, " %11s", "several");
        }
        fputc('\n', to);
        for (int i = 0; i < r->n; i++) {
            fprintf(to, "  %6d", r->pe[i]);
            for (int pe = 0; pe < columns; pe++)
                fprintf(to, " %11" PRIu64, cell_of(&r->of[i]->peer[pe], what));
            fputc('\n', to);
        }
    }
}

/* Whether each of these PEs has counted all of its operations. */
static bool all_counted(const struct stats_report *r)
{
    bool all = true;

    for (int i = 0; i < r->n; i++)
        all &= r->of[i]->counts_all != 0;
    return all;
}

void stats_print(FILE *to, const struct stats_report *r)
{
    if (r->n == 1)
        fprintf(to, "gshmem: counts of PE %d of %d", r->pe[0], r->n_pes);
    else
        fprintf(to, "gshmem: counts of %d PEs", r->n);
    fprintf(to, ", %s%s%s\n",
            all_counted(r) ? "of all operations"
                           : "without the inline operations of PEs where GSHMEM_STATS is not set",
            r->network ? "; the network is " : "", r->network ? r->network : "");
    print_operations(to, r);
    print_calls(to, r);
    print_counters(to, r);
    if (r->n_pes <= MATRIX_MOST)
        print_matrix(to, r);
    else
        fprintf(to, "  the matrix of %d PEs: GSHMEM_STATS=FILE, and gshmem-plot FILE\n", r->n_pes);
}

/* ---- JSON ---- */

static void json_calls(FILE *to, const struct stats_sums *of)
{
    fprintf(to, "\"calls\":[");
    for (int c = 0; c < STATS_CALLS && of->call[c][0]; c++) {
        fprintf(to, "%s\n{\"name\":", c ? "," : "");
        json_text(to, of->call[c]);
        fprintf(to, ",\"calls\":%" PRIu64 ",\"ns\":%" PRIu64 "}", of->value[STATS_COUNTERS_END + c],
                of->value[STATS_CALLS_NS + c]);
    }
    fprintf(to, "],");
}

static void json_peers(FILE *to, const struct stats_report *r, const struct stats_sums *of)
{
    const char *between = "";

    fprintf(to, "\"peers\":[");
    for (int pe = 0; pe <= r->n_pes; pe++) {
        const struct stats_row *row = &of->peer[pe];
        if (!row->operations && !row->ns)
            continue;
        fprintf(to, "%s\n{\"pe\":%d,\"operations\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"wait_ns\":%"
                PRIu64 "}", between, pe < r->n_pes ? pe : -1, row->operations, row->bytes, row->ns);
        between = ",";
    }
    fprintf(to, "]");
}

void stats_print_json(FILE *to, const struct stats_report *r)
{
    fprintf(to, "{\"gshmem_stats\":1,\"n_pes\":%d,\"network\":\"%s\",\"PEs\":[", r->n_pes,
            r->network ? r->network : "");
    for (int i = 0; i < r->n; i++) {
        const char *between = "";
        fprintf(to, "%s\n{\"pe\":%d,\"counts_all\":%s,\"values\":{", i ? "," : "", r->pe[i],
                r->of[i]->counts_all ? "true" : "false");
        for (int name = 0; name < stats_names(); name++) {
            const uint64_t value = stats_named(r->of[i], name);
            if (!value)
                continue;
            fprintf(to, "%s\n\"%s\":%" PRIu64, between, stats_name(name), value);
            between = ",";
        }
        fprintf(to, "},");
        json_calls(to, r->of[i]);
        json_peers(to, r, r->of[i]);
        fprintf(to, "}");
    }
    fprintf(to, "]}\n");
}
