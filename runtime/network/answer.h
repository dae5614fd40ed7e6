/* The thread that answers gshmem-where and gshmemrun, of this user or of root
 * (runtime/where/socket.h): it says where the job stands. It sleeps until it gets a question, and
 * changes nothing in the job. */
#ifndef GSHMEM_RUNTIME_NETWORK_ANSWER_H
#define GSHMEM_RUNTIME_NETWORK_ANSWER_H

struct job;

/* Once the node's memory is mapped and the page has begun. A failure is a line of GSHMEM_LOG=info:
 * the job runs without it. */
void answer_start(struct job *j);
void answer_stop(struct job *j);
/* In a child of fork: closes what the parent answers by. */
void answer_leave_parent(struct job *j);

#endif
