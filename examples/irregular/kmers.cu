/* k-mers in a kernel: each thread counts words of a DNA sequence in a hash table that is spread
 * over all PEs. A word's slot is taken by compare_swap. */
#include "irregular.h"

enum { K = 6, LETTERS = 1000, SLOTS = 4096, BLOCKS = 2, THREADS = 64 }; /* of each PE */

/* The word that begins at a letter, 2 bits a letter; the sequence is a circle. */
FOR_ALL long word_at(uint64_t i)
{
    uint64_t text = 0;

    for (uint64_t k = 0; k < K; k++)
        text = text << 2 | mixed((i + k) % (uint64_t)(LETTERS * gshmem_n_pes())) % 4;
    return (long)text;
}

__global__ void count_words(long *word, long *count)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < LETTERS; i += BLOCKS * THREADS) {
        const long text = word_at((uint64_t)(gshmem_my_pe() * LETTERS + i));
        uint64_t at = mixed((uint64_t)text), slot;
        for (;; at += (uint64_t)gshmem_n_pes()) { /* on the same PE */
            slot = place(at) % SLOTS;
            const long was =
                gshmem_long_atomic_compare_swap(&word[slot], 0, text + 1, home(at));
            if (!was || was == text + 1)
                break;
        }
        gshmem_long_atomic_inc(&count[slot], home(at));
    }
}

int main()
{
    static long expected[1 << 2 * K], words[SLOTS], counts[SLOTS];
    long wrong, found = 0;

    if (begin())
        return 1;
    long *word = (long *)gshmem_calloc(SLOTS, sizeof *word);
    long *count = (long *)gshmem_calloc(SLOTS, sizeof *count);
    count_words<<<BLOCKS, THREADS>>>(word, count);
    wrong = cudaDeviceSynchronize() != cudaSuccess;
    barrier(); /* completes what kernels of all PEs have issued */

    wrong += cudaMemcpy(words, word, sizeof words, cudaMemcpyDefault) != cudaSuccess;
    wrong += cudaMemcpy(counts, count, sizeof counts, cudaMemcpyDefault) != cudaSuccess;
    for (uint64_t i = 0; i < (uint64_t)(LETTERS * n); i++)
        expected[word_at(i)]++;
    for (int i = 0; i < SLOTS; i++) {
        found += words[i] != 0;
        wrong += words[i] ? counts[i] != expected[words[i] - 1] : counts[i] != 0;
    }
    for (int i = 0; i < 1 << 2 * K; i++) /* as many words as there are */
        wrong += home(mixed((uint64_t)i)) == me && expected[i] ? 1 : 0;
    gshmem_raise(gshmem_free(count));
    gshmem_raise(gshmem_free(word));
    return end("kmers", found, "words of kernels", wrong - found);
}
