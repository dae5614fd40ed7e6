/* This PE's page of what its threads wait for (runtime/where/record.h), in the memory that the
 * node shares, and where the pages of the node's other PEs are. */
#ifndef GSHMEM_RUNTIME_NODE_WHERE_PAGE_H
#define GSHMEM_RUNTIME_NODE_WHERE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/where/record.h"

struct node;

/* Fills in this PE's page, at that offset of the system part of each PE's memory. */
void where_page_begin(struct node *node, size_t offset, int pe);
/* Code has been loaded since, perhaps: enters it. */
void where_page_refresh(struct node *node);
/* This PE's clock, for PEs that get the page; 0: nobody will go on to tell it. */
void where_page_tell_time(struct node *node, uint64_t now);
/* The page of the PE with that index; NULL: the memory is not mapped. */
const struct where_page *where_page_of(const struct node *node, int index);

/* From now on waits of this thread are not shown: it does not belong to the job's work. */
void where_page_hide(void);

/* Waits of this thread are those of a stream until the next call, or are not. */
void where_page_of_stream(bool is);

/* A record for a wait of this thread that began at that time; kernel: for one of a kernel. NULL:
 * there is no page, or no record is free. The caller fills it in between where_write_begin and
 * where_write_end. */
struct where_wait *where_page_claim(struct node *node, const char *call, uint64_t since,
                                    bool kernel);
void where_page_release(struct node *node, struct where_wait *w);

#endif
