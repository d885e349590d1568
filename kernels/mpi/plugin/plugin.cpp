// The plug-in: functions of the MPI that it was built with, in a table that names none of its
// types.
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/mpi/mpi_functions.h"

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(std::uintptr_t));

MPI_Comm communicator = MPI_COMM_NULL;  // our own: apart from messages of a program around us
std::atomic<bool> ends_in_order{true};

std::uintptr_t number_of(MPI_Request request) {
  std::uintptr_t number = 0;
  std::memcpy(&number, &request, sizeof request);
  return number + 1;  // 0 is none, whatever MPI calls its own
}

MPI_Request request_of(std::uintptr_t number) {
  MPI_Request request = MPI_REQUEST_NULL;
  --number;
  std::memcpy(&request, &number, sizeof request);
  return request;
}

const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (text[0] == 0) (void)MPI_Get_library_version(text, &length);
  return text;
}

void error_text(int error, char* text, std::size_t bytes) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(error, whole, &length) != MPI_SUCCESS)
    (void)std::snprintf(whole, sizeof whole, "error %d of MPI", error);
  (void)std::snprintf(text, bytes, "%s", whole);
}

/// Where ranks have died or failed, the end would wait for them.
void end() {
  int is_over = 0;
  if (!ends_in_order || MPI_Finalized(&is_over) != MPI_SUCCESS || is_over != 0) return;
  (void)MPI_Finalize();
}

int start(int* rank, int* ranks, int* local_rank, int* local_ranks, char* problem,
          std::size_t problem_bytes) {
  int is_over = 0, is_started = 0, level = MPI_THREAD_SINGLE;
  (void)MPI_Finalized(&is_over);
  if (is_over != 0) {
    (void)std::snprintf(problem, problem_bytes, "MPI has been ended in this process");
    return 1;
  }
  (void)MPI_Initialized(&is_started);
  if (is_started == 0) {
    // Calls come from several threads, never two at a time.
    if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
        error != MPI_SUCCESS) {
      error_text(error, problem, problem_bytes);
      return error;
    }
    (void)std::atexit(end);
  } else if (communicator == MPI_COMM_NULL) {
    (void)MPI_Query_thread(&level);
  } else {
    level = MPI_THREAD_SERIALIZED;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    (void)std::snprintf(problem, problem_bytes,
                        "MPI allows only one thread: start it with MPI_THREAD_SERIALIZED or more");
    return 1;
  }
  int error = MPI_SUCCESS;
  if (communicator == MPI_COMM_NULL) {
    error = MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  }
  static int local[2] = {-1, -1};
  if (error == MPI_SUCCESS && local[0] < 0) {
    MPI_Comm machine = MPI_COMM_NULL;
    error = MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    if (error == MPI_SUCCESS) error = MPI_Comm_size(machine, &local[1]);
    if (error == MPI_SUCCESS) error = MPI_Comm_rank(machine, &local[0]);
    if (error == MPI_SUCCESS) error = MPI_Comm_free(&machine);
  }
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(communicator, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(communicator, ranks);
  if (error != MPI_SUCCESS) error_text(error, problem, problem_bytes);
  *local_rank = local[0];
  *local_ranks = local[1];
  return error;
}

int send(int to, int channel, const void* bytes, std::size_t count, std::uintptr_t* request) {
  MPI_Request begun = MPI_REQUEST_NULL;
  const int error =
      MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, channel, communicator, &begun);
  *request = error == MPI_SUCCESS ? number_of(begun) : 0;
  return error;
}

int receive(int from, int channel, void* bytes, std::size_t count, std::uintptr_t* request) {
  MPI_Request begun = MPI_REQUEST_NULL;
  const int error =
      MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, from, channel, communicator, &begun);
  *request = error == MPI_SUCCESS ? number_of(begun) : 0;
  return error;
}

int is_done(std::uintptr_t* request, int* done) {
  *done = 1;
  if (*request == 0) return MPI_SUCCESS;
  MPI_Request asked = request_of(*request);
  const int error = MPI_Test(&asked, done, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS) *request = *done != 0 ? 0 : number_of(asked);
  return error;
}

void end_in_order(int in_order) { ends_in_order = in_order != 0; }

const TandemMpi table = {tandem_mpi_table, library, start,      send,
                         receive,          is_done, error_text, end_in_order};

}  // namespace

extern "C" const TandemMpi* tandem_mpi() { return &table; }
