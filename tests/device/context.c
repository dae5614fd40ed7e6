/* Switching stacks, by hand and by ucontext (built with CONTEXT_PORTABLE): registers are kept, stacks
 * do not overlap, are used again, and an overflow faults instead of reaching a neighbour. */
#define _GNU_SOURCE
#include "device/host/fibers/context.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { FIBERS = 600, ROUNDS = 50 };

static struct stack home;
static struct stack *stacks[FIBERS];
static int turns[FIBERS];

static void run(void *argument)
{
    long mine = (long)argument;
    struct stack *self = stacks[mine];
    volatile double kept[4] = {(double)mine, (double)mine * 2, 3, 4};
    register double sum = kept[0] + kept[1];

    context_entered(self);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQ(turns[mine], round);
        turns[mine]++;
        context_switch(self, mine + 1 < FIBERS ? stacks[mine + 1] : &home);
        CHECK(sum == 3.0 * (double)mine && kept[3] == 4);
    }
    context_leave(self, mine + 1 < FIBERS ? stacks[mine + 1] : &home);
}

static void switches(struct stack_pool *pool)
{
    CHECK(stack_reserve(pool, FIBERS));
    for (long i = 0; i < FIBERS; i++) {
        stacks[i] = stack_take(pool);
        turns[i] = 0;
        context_prepare(stacks[i], run, (void *)i);
    }
    for (int round = 0; round <= ROUNDS; round++)
        context_switch(&home, stacks[0]);
    for (int i = 0; i < FIBERS; i++) {
        CHECK_EQ(turns[i], ROUNDS);
        stack_give(pool, stacks[i]);
    }
}

static void stacks_apart(struct stack_pool *pool)
{
    struct stack *a, *b;

    CHECK(stack_reserve(pool, 2));
    a = stack_take(pool);
    b = stack_take(pool);
    CHECK(a->low + a->size <= b->low || b->low + b->size <= a->low);
    memset(a->low, 1, a->size);
    memset(b->low, 2, b->size);
    CHECK_EQ(a->low[a->size - 1], 1);

    pid_t child = fork(); /* below the lowest byte */
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        ((volatile char *)a->low)[-1] = 1;
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(status != 0);
    stack_give(pool, a);
    stack_give(pool, b);
}

static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int n = 0;

    CHECK(maps);
    for (int c; (c = getc(maps)) != EOF;)
        n += c == '\n';
    fclose(maps);
    return n;
}

/* Whether a page may fault without a mapping of its own: since Linux 6.13. */
static bool have_guards_without_mappings(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    const bool have = madvise(page, 4096, 102) == 0;
    munmap(page, 4096);
    return have;
}

/* Those of very large launches have no mappings of their own, and all the same an overflow faults. */
static void many_have_guards(void)
{
    enum { MANY = 2000 };
    const int before = mappings();
    struct stack_pool pool;
    int status;

    stack_pool_init(&pool, 20000, 0);
    CHECK(stack_reserve(&pool, MANY));
    CHECK(mappings() - before < MANY / 10);
    for (unsigned i = 0; have_guards_without_mappings() && i < 3; i++) {
        struct stack *taken = stack_take(&pool);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            ((volatile char *)taken->low)[-1] = 1;
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(status != 0);
    }
    stack_pool_free(&pool);
}

/* Stacks that one large launch needed go back to the system, when all are free. */
static void trimmed(void)
{
    enum { GUARDED = 300, MANY = 2000 };
    struct stack_pool pool;
    struct stack *taken;

    stack_pool_init(&pool, 20000, GUARDED);
    CHECK(stack_reserve(&pool, MANY));
    taken = stack_take(&pool);
    stack_pool_trim(&pool);
    CHECK(pool.made >= MANY); /* one is in use */
    stack_give(&pool, taken);
    stack_pool_trim(&pool);
    CHECK(pool.made >= GUARDED && pool.made < 2 * GUARDED);
    CHECK_EQ(pool.free, pool.made);
    for (unsigned i = pool.made; i > 0; i--) {
        taken = stack_take(&pool);
        CHECK(taken);
        memset(taken->low, 1, taken->size);
    }
    CHECK(!pool.first && pool.free == 0);
    stack_pool_free(&pool);
}

int main(void)
{
    struct stack_pool pool;

    context_adopt(&home);
    stack_pool_init(&pool, 20000, 16384);
    CHECK(pool.stack_size >= 20000 && pool.stack_size % 4096 == 0);
    for (int i = 0; i < 3; i++)
        switches(&pool);
    CHECK(pool.made >= FIBERS && pool.made < 2 * FIBERS);
    stacks_apart(&pool);
    stack_pool_free(&pool);
    trimmed();
    many_have_guards();
    return 0;
}
