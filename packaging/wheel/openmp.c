// The functions of OpenMP that oneDNN's library and the engine call, for one thread.
//
// Wheels bring this as libgomp.so.1. The engine replaces the calls by those of its own threads
// (OneDnnTeam), so that no second pool of threads is in the process. GCC compiles a region to:
// start, the caller's own part, end.
#include <stdbool.h>

void GOMP_parallel_start(void (*work)(void*), void* data, unsigned threads) {}
void GOMP_parallel_end(void) {}
void GOMP_barrier(void) {}
void GOMP_loop_end_nowait(void) {}
bool GOMP_loop_static_next(long* begin, long* end) { return false; }

bool GOMP_loop_static_start(long start, long end, long step, long chunk, long* begin,
                            long* part_end) {
  *begin = start;
  *part_end = end;
  return step > 0 ? start < end : start > end;
}

int omp_get_max_threads(void) { return 1; }
void omp_set_num_threads(int threads) {}
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
int omp_in_parallel(void) { return 0; }
