/* GSHMEM_CHECK=races in kernels. */
#ifndef GSHMEM_RUNTIME_PROXY_FOLLOW_H
#define GSHMEM_RUNTIME_PROXY_FOLLOW_H

struct job;

/* The job has kernels. Where these do not tell what they do, the job is not checked, and a line
 * says so. */
void follow_start(struct job *j);

#endif
