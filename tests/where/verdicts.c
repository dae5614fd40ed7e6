/* Who is blamed: jobs as they are collected, and the report of each. A job is put together by a
 * function; no process is asked. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/clock.h"
#include "runtime/where/function_name.h"
#include "runtime/where/lines.h"
#include "runtime/where/where.h"

enum { PES = 100, TEAM = 7 };

static const uint64_t second = 1000000000u;
static struct where_job job;
static char *report;
static size_t report_bytes;

/* ---- A job ---- */

/* PEs that wait for nothing, outside of calls. The process of PE i has the number 1000 + i. */
static void job_begin(int n_pes)
{
    job = (struct where_job){.name = "j", .program = "p", .n_pes = n_pes, .nodes = 1};
    CHECK((job.pe = calloc((size_t)n_pes, sizeof *job.pe)) != NULL);
    for (int i = 0; i < n_pes; i++) {
        struct where_pe *p = &job.pe[i];
        *p = (struct where_pe){.pe = i, .state = STATE_OUTSIDE, .now = 9 * second};
        CHECK((p->page = calloc(1, sizeof *p->page)) != NULL);
        CHECK((p->waits = calloc(WHERE_WAITS, sizeof *p->waits)) != NULL);
        p->page->pid = 1000 + i;
    }
}

static struct where_wait *add(int pe, int thread, enum where_kind kind, const char *call)
{
    struct where_pe *p = &job.pe[pe];
    struct where_wait *w = &p->waits[p->n_waits++];

    *w = (struct where_wait){
        .kind = kind, .tid = p->page->pid + thread, .team = -1, .segment = -1, .since = 6 * second};
    snprintf(w->call, sizeof w->call, "%s", call);
    if (thread == 0)
        p->state = STATE_WAITS;
    return w;
}

/* A thread waits for that PE; thread 0 is the main one. */
static struct where_wait *wait_for(int pe, int thread, enum where_kind kind, const char *call,
                                   int other)
{
    struct where_wait *w = add(pe, thread, kind, call);

    where_add_peer(w, other);
    w->team = kind == WHERE_COLLECTIVE ? TEAM : -1;
    return w;
}

static void add_thread(int pe, int thread, char state)
{
    struct where_pe *p = &job.pe[pe];

    if (!p->stacks)
        CHECK((p->stacks = calloc(1, sizeof *p->stacks)) != NULL);
    p->stacks->thread[p->stacks->threads++] =
        (struct where_thread){.tid = p->page->pid + thread, .state = state};
}

static const char *last_line(void)
{
    char *end = report + strlen(report) - 1;

    CHECK(*end == '\n');
    *end = 0;
    const char *line = strrchr(report, '\n') + 1;
    *end = '\n';
    return line;
}

static void job_judge(void)
{
    struct culprit culprit;

    free(report);
    FILE *to = open_memstream(&report, &report_bytes);
    CHECK(to && culprit_find(&job, &culprit));
    report_print(&job, &culprit, 0, "", to);
    fclose(to);
    free(culprit.pe);
    where_free(&job);
}

/* ---- The jobs ---- */

/* The PE that is missing is far beyond those that a record lists; the list has a hole, as have the
 * members of another node. */
static void test_many_members(void)
{
    job_begin(PES);
    for (int pe = 0; pe < PES - 1; pe++) {
        struct where_wait *w = add(pe, 0, WHERE_COLLECTIVE, "gshmem_barrier_all");
        w->team = 0;
        for (int other = 0; other < PES; other++) {
            if (other != pe || w->peers >= WHERE_PEERS)
                where_add_peer(w, other);
        }
    }
    job_judge();
    CHECK_HAS(report, "PEs 0-98: in gshmem_barrier_all on team 0, for PE 99");
    CHECK_HAS(last_line(), "the others wait for PE 99, which is outside of calls that wait");
}

/* PE 1 stopped soon after a round of kernels, before the record of its wait was old: it is not in
 * the round that PE 0 waits in. A round that PE 1 is in already PE 0 does not wait for. */
static void test_rounds(uint64_t of_stopped, bool is_missing)
{
    job_begin(2);
    struct where_wait *w = wait_for(0, 0, WHERE_COLLECTIVE, "a collective in a kernel", 1);
    w->round = 8;
    w = wait_for(1, 0, WHERE_COLLECTIVE, "a collective in a kernel", 0);
    w->round = of_stopped;
    job.pe[1].state = STATE_STOPPED;
    job_judge();
    CHECK_EQ(strstr(report, "PE 0: in a collective in a kernel on team 7, for PE 1") != NULL,
             is_missing);
    CHECK_HAS(last_line(), "PE 1, which is stopped");
}

/* Every third PE, and then one that is in no order: the rest is not known, and is not made up. */
static void test_peers(void)
{
    struct where_wait w = {.peers = 0};

    for (int i = 0; i < 60; i++)
        where_add_peer(&w, 3 * i);
    CHECK_EQ(w.peers, 60);
    CHECK_EQ(where_peer(&w, 0), 0);
    CHECK_EQ(where_peer(&w, 47), 141);
    CHECK_EQ(where_peer(&w, 48), 144);
    CHECK_EQ(where_peer(&w, 59), 177);
    CHECK_EQ(where_peer(&w, 60), -1);
    CHECK_EQ(where_peer(&w, -1), -1);
    where_add_peer(&w, 3); /* it is there */
    CHECK_EQ(w.peers, 60);
    where_add_peer(&w, 1);
    CHECK_EQ(w.peers, 61);
    CHECK_EQ(where_peer(&w, 47), 141);
    CHECK_EQ(where_peer(&w, 48), -1);
    CHECK_EQ(where_peer(&w, 60), -1);
}

/* PE 1 answers though it waits in a barrier for PE 0. */
static void test_network(enum where_kind kind)
{
    job_begin(3);
    struct where_wait *w = wait_for(0, 0, kind, "gshmem_quiet", 1);
    snprintf(w->text, sizeof w->text, "1 answer over tcp");
    wait_for(1, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 0);
    wait_for(2, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 0);
    job_judge();
    CHECK_HAS(last_line(), "the others wait for PE 0, which waits in gshmem_quiet: 1 answer over "
                           "tcp, for PE 1; PEs answer without a call of their own");
}

static void test_network_alone(void)
{
    job_begin(2);
    wait_for(0, 0, WHERE_NETWORK, "gshmem_quiet", 1);
    wait_for(1, 0, WHERE_NETWORK, "gshmem_quiet", 0);
    job_judge();
    CHECK_HAS(last_line(), "PEs 0,1 wait in gshmem_quiet");
}

/* PE 0 may be the one to make the update, when the network has served it. */
static void test_network_and_update(void)
{
    job_begin(2);
    wait_for(0, 0, WHERE_NETWORK, "gshmem_quiet", 1);
    add(1, 0, WHERE_VARIABLE, "signal_wait_until");
    job_judge();
    CHECK_HAS(last_line(), "PE 0 waits in gshmem_quiet");
}

static void test_network_of_silent(void)
{
    job_begin(3);
    wait_for(0, 0, WHERE_NETWORK, "gshmem_quiet", 2);
    wait_for(1, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 0);
    job.pe[2].state = STATE_SILENT;
    job_judge();
    CHECK_HAS(last_line(), "because of PE 2, which does not answer");
}

/* The main threads wait for others, which call. */
static void test_threads(void)
{
    job_begin(3);
    wait_for(0, 1, WHERE_COLLECTIVE, "gshmem_barrier_all", 1);
    wait_for(2, 1, WHERE_COLLECTIVE, "gshmem_barrier_all", 1);
    job_judge();
    CHECK_HAS(last_line(), "the others wait for PE 1, which is outside");
}

static void test_cycle_of_threads(void)
{
    job_begin(2);
    wait_for(0, 1, WHERE_LOCK, "gshmem_set_lock", 1);
    wait_for(1, 1, WHERE_LOCK, "gshmem_set_lock", 0);
    add_thread(0, 0, 'S');
    job_judge();
    CHECK_HAS(last_line(), "deadlock, unless another thread ends it: PE 0 waits for PE 1 (in "
                           "gshmem_set_lock), PE 1 for PE 0 (in gshmem_set_lock)");
}

/* The main thread of PE 1 computes: it may come to the barrier. */
static void test_cycle_of_one_that_runs(void)
{
    job_begin(2);
    wait_for(0, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 1);
    wait_for(1, 1, WHERE_LOCK, "gshmem_set_lock", 0);
    add_thread(1, 0, 'R');
    job_judge();
    CHECK_HAS(last_line(), "the others wait for PE 1, which is outside");
}

/* A cycle of main threads, and a thread of PE 1 that may let go of the lock. */
static void test_cycle_with_thread(bool thread)
{
    job_begin(2);
    wait_for(0, 0, WHERE_LOCK, "gshmem_set_lock", 1);
    wait_for(1, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 0);
    add_thread(1, 0, 'S');
    if (thread)
        add_thread(1, 1, 'S');
    job_judge();
    CHECK_HAS(last_line(), thread ? "deadlock, unless another thread ends it: PE 0 waits for PE 1"
                                  : "deadlock: PE 0 waits for PE 1");
}

/* Each of the waits that are in the cycle is named, and not what else its PE waits for. */
static void test_cycle_names_its_waits(void)
{
    job_begin(2);
    add(0, 0, WHERE_VARIABLE, "signal_wait_until");
    wait_for(0, 1, WHERE_LOCK, "gshmem_set_lock", 1);
    wait_for(1, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 0);
    job_judge();
    CHECK_HAS(last_line(), "PE 0 waits for PE 1 (in gshmem_set_lock), PE 1 for PE 0 (in "
                           "gshmem_barrier_all)");
}

static void test_long_cycle(void)
{
    job_begin(PES);
    for (int pe = 0; pe < PES; pe++)
        wait_for(pe, 0, WHERE_LOCK, "gshmem_set_lock", (pe + 1) % PES);
    job_judge();
    CHECK_HAS(last_line(), "deadlock: PE 0 waits for PE 1 (in gshmem_set_lock), PE 1 for PE 2");
    CHECK_HAS(last_line(), " PEs more, back to PE 0");
}

/* PE 0 waits for PE 1, and PE 1 for the update. */
static void test_who_waits_for_update(void)
{
    job_begin(3);
    wait_for(0, 0, WHERE_COLLECTIVE, "gshmem_team_sync", 1);
    add(1, 0, WHERE_VARIABLE, "signal_wait_until");
    job_judge();
    CHECK_HAS(last_line(), "only PE 2 can make the update that PE 1 waits for, and is outside");
}

static void test_update_for_threads(void)
{
    job_begin(2);
    add(0, 1, WHERE_VARIABLE, "signal_wait_until");
    add(1, 1, WHERE_VARIABLE, "signal_wait_until");
    job_judge();
    CHECK_HAS(last_line(), "only PEs 0,1 can make the update that PE 0 waits for, and are outside");
}

/* PE 1 has the lock; PE 0, which is stopped, waits for it before PE 2. */
static void test_queue_of_lock(void)
{
    job_begin(3);
    wait_for(0, 0, WHERE_LOCK, "gshmem_set_lock", 1);
    wait_for(2, 0, WHERE_LOCK, "gshmem_set_lock", 0);
    job.pe[0].state = STATE_STOPPED;
    job_judge();
    CHECK_HAS(last_line(), "because of PE 0, which is stopped");
    CHECK_HAS(last_line(), "; PE 2 waits behind it for a lock");
}

/* The wait of the main thread is first, and waits that are alike are one. */
static void test_threads_alike(void)
{
    job_begin(2);
    wait_for(0, 0, WHERE_COLLECTIVE, "gshmem_barrier_all", 1);
    for (int thread = 1; thread < WHERE_WAITS; thread++)
        add(0, thread, WHERE_VARIABLE, thread == 2 ? "wait_until_any" : "signal_wait_until");
    job.pe[0].page->more = 9;
    job_judge();
    CHECK_HAS(report, "PE 0: in gshmem_barrier_all on team 7, for PE 1; 30 other threads: in "
                      "signal_wait_until; another thread: in wait_until_any, or still more");
    CHECK_HAS(last_line(), "the others wait for PE 1");
}

/* ---- Names of functions in the lines ---- */

static void expect_name(const char *function, const char *expected)
{
    char text[128];

    function_name_shorten(function, text, sizeof text);
    CHECK_STR(text, expected);
}

static void test_names(void)
{
    char small[8];

    expect_name("main", "main");
    expect_name("solve(int, double)", "solve");
    expect_name("void a::table<std::map<int, b<long> > >::each<c>(c, int (*)(long))",
                "a::table<>::each<>");
    expect_name("(anonymous namespace)::compute(int)", "(anonymous namespace)::compute");
    expect_name("run(int)::{lambda(int, long)#1}::operator()(int, long) const",
                "run::{lambda()#1}::operator()");
    expect_name("a::operator<<(std::ostream&, a::b const&)", "a::operator<<");
    expect_name("bool a::operator< <int>(int)", "a::operator<<>");
    expect_name("a::operator->()", "a::operator->");
    expect_name("a::operator bool() const", "a::operator bool");
    expect_name("std::function<void (int)>::operator()(int) const",
                "std::function<>::operator()");
    expect_name("operators_of(int)", "operators_of");
    expect_name("a::f<(b)1, &(a::g(int))>(int) const", "a::f<>");
    expect_name("a<b->c>::d()", "a<>::d");
    expect_name("(", "(");
    expect_name("f<", "f<>");
    expect_name("f{(", "f{()");
    function_name_shorten("a_function_of_c(int)", small, sizeof small);
    CHECK_STR(small, "a_funct");
}

/* ---- A slow addr2line ---- */

static void write_program(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fchmod(fileno(file), 0700) == 0);
    CHECK(fclose(file) == 0);
}

static size_t bytes_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

/* Its time is for all files together: those that come later are not looked up by it. */
static void test_slow_addr2line(void)
{
    static struct where_page page = {.modules = 3};
    char directory[] = "/tmp/gshmem-verdicts-XXXXXX", program[64], text[160], started[64], path[128];
    struct lines *lines = lines_new();

    CHECK(mkdtemp(directory) != NULL);
    snprintf(program, sizeof program, "%s/addr2line", directory);
    snprintf(started, sizeof started, "%s/started", directory);
    snprintf(text, sizeof text, "#!/bin/sh\necho >>%s\nexec sleep 60\n", started);
    write_program(program, text);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", directory);
    CHECK(setenv("PATH", path, 1) == 0);
    for (int i = 0; i < 3; i++) {
        struct where_module *m = &page.module[i];
        *m = (struct where_module){.begin = 1000u * (i + 1), .end = 1000u * (i + 1) + 999};
        snprintf(m->path, sizeof m->path, "%s/file%d", directory, i);
        lines_add(lines, &page, m->begin + 10);
    }
    lines_resolve(lines, clock_ns() + 300 * (uint64_t)CLOCK_MS);
    CHECK(bytes_of(started) <= 1);
    lines_free(lines);
    unlink(program);
    unlink(started);
    CHECK(rmdir(directory) == 0);
}

int main(void)
{
    test_names();
    test_slow_addr2line();
    test_peers();
    test_many_members();
    test_rounds(7, true);
    test_rounds(8, false);
    test_rounds(9, false);
    test_network(WHERE_NETWORK);
    test_network(WHERE_ROOM);
    test_network_alone();
    test_network_and_update();
    test_network_of_silent();
    test_threads();
    test_cycle_of_threads();
    test_cycle_of_one_that_runs();
    test_cycle_with_thread(false);
    test_cycle_with_thread(true);
    test_cycle_names_its_waits();
    test_long_cycle();
    test_who_waits_for_update();
    test_update_for_threads();
    test_queue_of_lock();
    test_threads_alike();
    free(report);
    return 0;
}
