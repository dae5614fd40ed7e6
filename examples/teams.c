/* How do I do a collective over some PEs only? The PEs form a grid; each row and each column is a
 * team, with collectives and PE numbers of its own. */
#include <gshmem.h>
#include <stdio.h>

static int mine, row_sum, column_max, wrong, all_wrong;

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes(), columns = n < 2 ? 1 : 2;
    int x = me % columns, y = me / columns;
    gshmem_team_t row, column;

    if (gshmem_team_split_2d(GSHMEM_TEAM_WORLD, columns, NULL, 0, &row, NULL, 0, &column))
        return 1;
    mine = me + 1;
    gshmem_raise(gshmem_int_sum_reduce(row, &row_sum, &mine, 1));
    gshmem_raise(gshmem_int_max_reduce(column, &column_max, &mine, 1));

    int expected = 0, last_in_column = x + (n - 1 - x) / columns * columns;
    for (int pe = y * columns; pe < (y + 1) * columns && pe < n; pe++)
        expected += pe + 1;
    wrong = row_sum != expected || column_max != last_in_column + 1 ||
            gshmem_team_my_pe(row) != x || gshmem_team_my_pe(column) != y;
    gshmem_raise(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1));
    if (me == 0)
        printf("teams: %d PEs in rows of %d, the first row's sum is %d: %s\n", n, columns, row_sum,
               all_wrong ? "wrong" : "right");
    gshmem_raise(gshmem_team_destroy(row));
    gshmem_raise(gshmem_team_destroy(column));
    return gshmem_finalize() || all_wrong;
}
