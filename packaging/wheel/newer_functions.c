// What static libraries of this machine expect of glibc after 2.28; wheels take these instead.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#pragma GCC visibility push(hidden)

// 2.32: whether the process has one thread. "No" is always right.
char __libc_single_threaded = 0;

// 2.30. Without it the deadline is moved to the clock that every version knows.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  typedef int Wait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  Wait* const own = (Wait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  if (own != NULL) return own(condition, mutex, clock, deadline);
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t second = 1000000000;
  const int64_t at = (wall.tv_sec + deadline->tv_sec - now.tv_sec) * second + wall.tv_nsec +
                     deadline->tv_nsec - now.tv_nsec;
  wall.tv_sec = at / second;
  wall.tv_nsec = at % second;
  return pthread_cond_timedwait(condition, mutex, &wall);
}

// 2.36.
uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    if (errno != EINTR) abort();
  return number;
}

// Where libraries that were compiled for programs look for stderr (libraries.sh).
FILE* portable_stderr = NULL;
__attribute__((constructor)) static void set_portable_stderr(void) { portable_stderr = stderr; }
