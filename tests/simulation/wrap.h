/* Calls of the library past the seam, which its linker leads here: --wrap in meson.build. */
#ifndef TEST_SIMULATION_WRAP_H
#define TEST_SIMULATION_WRAP_H

#include <dirent.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

int simulated_pthread_create(pthread_t *out, const pthread_attr_t *a, void *(*main)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_detach(pthread_t thread);
pthread_t __wrap_pthread_self(void);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);

int __wrap_threads_of_program(void);

ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __wrap_write(int fd, const void *from, size_t bytes);
int __wrap_close(int fd);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_fcntl64(int fd, int call, ...);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_timerfd_create(int clock, int flags);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);
void *__wrap_mremap(void *at, size_t bytes, size_t more, int flags, void *to);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes);

pid_t __wrap_getpid(void);
pid_t __wrap_getppid(void);
pid_t __wrap_gettid(void);
int __wrap_gethostname(char *name, size_t size);
int __wrap_getifaddrs(struct ifaddrs **out);
void __wrap_freeifaddrs(struct ifaddrs *list);
int __wrap_getrlimit64(int what, struct rlimit *limit);
int __wrap_setrlimit64(int what, const struct rlimit *limit);
int __wrap_getrusage(int who, struct rusage *usage);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set);
int __wrap_sched_getcpu(void);
long __wrap_sysconf(int name);

FILE *__wrap_fopen64(const char *path, const char *mode);
DIR *__wrap_opendir(const char *path);
int __wrap_scandir64(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_access(const char *path, int mode);
void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlsym(void *handle, const char *name);
char *__wrap_dlerror(void);
int __wrap_dl_iterate_phdr(int (*visit)(void *, size_t, void *), void *argument);

int __wrap_on_exit(void (*call)(int, void *), void *argument);
int __wrap___register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                             void *object);
void (*__wrap_signal(int number, void (*call)(int)))(int);
int __wrap_pause(void);
_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap__exit(int status);

#endif
