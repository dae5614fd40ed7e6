#include "runtime/operations/heap_agreement.h"

#include <stdio.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/collectives/collectives.h"
#include "runtime/job/job.h"
#include "runtime/races/races.h"
#include "runtime/teams/team.h"

_Static_assert((int)REQUEST_WORDS <= (int)COLLECTIVE_AGREE_MAX, "all words go into one agreement");

/* ---- Which PE differs; only failures come here ---- */

static void request_describe(const struct request *r, enum request_word word, uint64_t value,
                             char *text, size_t size)
{
    unsigned long long v = value;

    switch (word) {
    case REQUEST_CALL:
        snprintf(text, size, "calls %s",
                 v <= HEAP_UNREGISTER ? heap_call_name[v] : "something else");
        break;
    case REQUEST_BYTES:
        snprintf(text, size, "asks for %llu B", v);
        break;
    case REQUEST_ALIGNMENT:
        snprintf(text, size, "asks for an alignment of %llu", v);
        break;
    case REQUEST_HINTS:
        snprintf(text, size, "gives hints %#llx", v);
        break;
    case REQUEST_OBJECT:
        if (r->word[REQUEST_CALL] == HEAP_REGISTER && v)
            snprintf(text, size, "prefers offset %#llx of the heap", v - 1);
        else if (r->word[REQUEST_CALL] == HEAP_REGISTER)
            snprintf(text, size, "prefers no place of the heap");
        else if (v)
            snprintf(text, size, "passes the object at offset %#llx of the heap%s",
                     (v & ~(REQUEST_OF_DEVICE | REQUEST_OF_NICS)) - 1,
                     v & REQUEST_OF_DEVICE ? " in GPU memory"
                     : v & REQUEST_OF_NICS ? " that NICs update"
                                           : "");
        else
            snprintf(text, size, "passes NULL");
        break;
    case REQUEST_RESULT:
        snprintf(text, size, "would place it at offset %#llx of the heap", v - 1);
        break;
    default:
        snprintf(text, size, "answers %llu", v);
    }
}

/* The least of a number that each PE has. */
static gshmem_status_t request_least(const struct request *r, uint64_t mine, uint64_t *result)
{
    uint64_t most;

    return collective_agree(job->team[GSHMEM_TEAM_WORLD], request_name(r), &mine, result, &most, 1);
}

/* The value of a word on one PE, sent to all. */
static gshmem_status_t value_of(const struct request *r, enum request_word word, uint64_t pe,
                                uint64_t *value)
{
    return request_least(r, (uint64_t)job->pe == pe ? r->word[word] : UINT64_MAX, value);
}

static gshmem_status_t explain_difference(const struct request *r, enum request_word word)
{
    uint64_t mine = r->word[word], first, pe, other;
    char here[64], there[64];
    gshmem_status_t status;

    if ((status = value_of(r, word, 0, &first)) ||
        (status = request_least(r, mine != first ? (uint64_t)job->pe : UINT64_MAX, &pe)) ||
        (status = value_of(r, word, pe, &other)))
        return status;
    request_describe(r, word, first, here, sizeof here);
    request_describe(r, word, other, there, sizeof there);
    return (job->pe == 0 ? fail : fail_silently)(
        GSHMEM_ERR_MISMATCH, "%s: PE %d %s, PE 0 %s: all PEs must make the same call",
        request_name(r), (int)pe, there, here);
}

/* The error line is that of the lowest PE that refuses. */
static gshmem_status_t explain_refusal(const struct request *r, enum request_word word)
{
    uint64_t mine = r->word[word], pe, answer;
    gshmem_status_t status;

    if ((status = request_least(r, mine ? (uint64_t)job->pe : UINT64_MAX, &pe)) ||
        (status = value_of(r, word, pe, &answer)))
        return status;
    if ((uint64_t)job->pe == pe && !r->said)
        return fail((gshmem_status_t)mine, "%s: %s", request_name(r), r->why);
    if (mine == answer)
        return fail_silently((gshmem_status_t)mine, "%s: %s", request_name(r), r->why);
    return fail_silently((gshmem_status_t)answer, "%s: refused by PE %d, which says why",
                         request_name(r), (int)pe);
}

gshmem_status_t request_agree(const struct request *asked)
{
    uint64_t min[REQUEST_WORDS], max[REQUEST_WORDS];
    struct request own = *asked, *r = &own;
    const struct team *world = job->team[GSHMEM_TEAM_WORLD];
    gshmem_status_t status = gshmem_quiet();
    uint32_t round = 0;

    if (status && !r->word[REQUEST_MISUSE] && !r->word[REQUEST_MEMORY])
        request_refuse_failed(r, status); /* on all PEs, which wait for this one */
    if (GSHMEM_UNLIKELY(job->races != NULL))
        round = races_arrive(GSHMEM_TEAM_WORLD);
    status = collective_agree(job->team[GSHMEM_TEAM_WORLD], request_name(r), r->word, min, max,
                              REQUEST_WORDS);
    if (GSHMEM_UNLIKELY(job->races != NULL))
        races_leave(GSHMEM_TEAM_WORLD, round, world->members, world->n_pes, status);
    if (status)
        return status;
    for (enum request_word word = 0; word < REQUEST_WORDS; word++) {
        if (word == REQUEST_MISUSE || word == REQUEST_MEMORY) {
            if (max[word])
                return explain_refusal(r, word);
        } else if (min[word] != max[word]) {
            if (word == REQUEST_BYTES && r->largest) {
                *r->largest = max[word];
                return GSHMEM_ERR_MISMATCH;
            }
            return explain_difference(r, word);
        }
    }
    return GSHMEM_OK;
}
