/* What the guard and the launcher agree on. */
#ifndef GSHMEM_BOOTSTRAP_RUN_ORDERS_H
#define GSHMEM_BOOTSTRAP_RUN_ORDERS_H

/* An order to the launcher is a byte: a signal to hand on, with this bit to those alone that are
 * not in gshmemrun's process group. */
enum { ORDER_OTHER_GROUPS = 0x80 };

/* The exit status of a job that has run too long, as timeout(1) has it. */
enum { STATUS_TIMEOUT = 124 };

#endif
