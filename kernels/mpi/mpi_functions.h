/* What the plug-in libtandem_mpi.so offers: the few functions of MPI that ranks need, without
   mpi.h, whose types differ from one MPI to the next. Plain C, so that plug-in and program may come
   from different compilers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { tandem_mpi_table = 1 }; /* the number of this form of the table */

/* All but `library` want `start` before; one thread at a time. Results are 0, or an error of MPI's
   that `error_text` explains. */
struct TandemMpi {
  int table;
  const char* (*library)(void); /* "Open MPI v4.1.4, …"; may be asked before the start */
  /* Once in a process; where the program itself has started MPI, that one is used. Ranks of all,
     and of this machine. A text in `problem` where it fails. */
  int (*start)(int* rank, int* ranks, int* local_rank, int* local_ranks, char* problem,
               size_t problem_bytes);
  /* Both begin. `count` is below 2^31, `channel` below 32768. */
  int (*send)(int to, int channel, const void* bytes, size_t count, uintptr_t* request);
  int (*receive)(int from, int channel, void* bytes, size_t count, uintptr_t* request);
  int (*is_done)(uintptr_t* request, int* done);
  void (*error_text)(int error, char* text, size_t text_bytes);
  /* Whether MPI is ended in order when the process ends, which waits for all ranks; so it is until
   * told otherwise. */
  void (*end_in_order)(int in_order);
};

/* The only symbol of the plug-in. */
const struct TandemMpi* tandem_mpi(void);

#ifdef __cplusplus
}
#endif
