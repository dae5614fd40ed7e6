/* Counts the k-mers of a DNA sequence: how often does each word of K letters occur? They are in a
 * hash table that is spread over all PEs; a word's slot is taken by compare_swap. */
#include "irregular.h"

enum { K = 6, LETTERS = 3000, SLOTS = 4096 }; /* LETTERS of each PE, SLOTS too */

static long word[SLOTS];  /* this PE's part: 1 + the word in 2 bits a letter, or 0 */
static long count[SLOTS]; /* how often it was met */

static uint64_t letter(uint64_t i)
{
    return mixed(i) % 4;
}

/* The word that begins at a letter; the sequence is a circle. */
static long word_at(uint64_t i)
{
    uint64_t text = 0;

    for (uint64_t k = 0; k < K; k++)
        text = text << 2 | letter((i + k) % (uint64_t)(LETTERS * n));
    return (long)text;
}

static void meet(long text)
{
    for (uint64_t at = mixed((uint64_t)text);; at += (uint64_t)n) { /* on the same PE */
        const uint64_t slot = place(at) % SLOTS;
        const long was = gshmem_long_atomic_compare_swap(&word[slot], 0, text + 1, home(at));
        if (was && was != text + 1)
            continue;
        gshmem_raise(gshmem_long_atomic_inc(&count[slot], home(at)));
        return;
    }
}

int main(void)
{
    static long expected[1 << 2 * K];
    long wrong = 0, words = 0;

    if (begin())
        return 1;
    barrier();
    for (int i = 0; i < LETTERS; i++)
        meet(word_at((uint64_t)(me * LETTERS + i)));
    barrier();

    for (uint64_t i = 0; i < (uint64_t)(LETTERS * n); i++)
        expected[word_at(i)]++;
    for (int i = 0; i < SLOTS; i++) {
        words += word[i] != 0;
        wrong += word[i] ? count[i] != expected[word[i] - 1] : count[i] != 0;
    }
    for (int i = 0; i < 1 << 2 * K; i++) /* as many words as there are */
        wrong += home(mixed((uint64_t)i)) == me && expected[i] ? 1 : 0;
    return end("kmers", words, "words", wrong - words);
}
