/* GSHMEM_CHECK=races in kernels. */
#ifndef GSHMEM_RUNTIME_PROXY_FOLLOW_H
#define GSHMEM_RUNTIME_PROXY_FOLLOW_H

struct job;

/* The job has kernels. If those of any module do not tell what they do, the job is not checked, and
 * a line says so. */
void follow_modules(struct job *j);

#endif
