// What all functions of tandem/c.h have in common: rules, errors and tensors.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// A function or a field is added without a new number; any other change has one.
#define TANDEM_ABI_VERSION 1

#if defined(__GNUC__)
#define TANDEM_API __attribute__((visibility("default")))
#else
#define TANDEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// - A function that returns a TandemStatus never throws. Where it fails, tandem_error_message says
//   why, the object that it would have made is NULL, and what else it would have written stays as
//   it was.
// - A struct with a `struct_size` is passed with the size of its type in it, be it read or written,
//   and with 0 in every member that is not used: {.struct_size = sizeof(TandemTensor)}. So a
//   program works with later libraries, whose structs have more members. All elements of an array
//   have the same `struct_size`.
// - What a function gets stays the caller's, and is only read until the function returns, unless
//   its comment says otherwise. Texts are UTF-8 and end with a zero byte; the library owns those
//   that it gives.
// - An object is used by one thread at a time; different objects may be used by different threads.
//   The function that closes an object sets the caller's pointer to NULL, and does nothing where it
//   is NULL. Functions with a status refuse NULL as TANDEM_USAGE.

// ---------------------------------------------------------------- errors

/// What became of a call. The command-line tool exits with the same numbers.
typedef enum TandemStatus {
  TANDEM_OK = 0,
  TANDEM_RUNTIME = 1,       // failure while running: disk full, no memory, ended by a callback
  TANDEM_USAGE = 2,         // bad argument, model, configuration or policy
  TANDEM_DOES_NOT_FIT = 3,  // the plan exceeds a memory limit
  TANDEM_DATA = 4,          // bad data
  TANDEM_DIVERGED = 5       // a loss, parameter or statistic that is not finite
} TandemStatus;

/// One thing that is wrong. Texts are "", and numbers 0, where there is nothing to say.
typedef struct TandemDiagnostic {
  size_t struct_size;
  const char *message, *expected, *got, *fix;
  const char *file, *path;  // configuration, model or data file; operator, parameter or key
  int32_t line, column;     // counted from 1
} TandemDiagnostic;

/// Version of the library, "0.1.0".
TANDEM_API const char* tandem_version(void);
/// The TANDEM_ABI_VERSION of the library; a program compiled with a greater one must not use it.
TANDEM_API int32_t tandem_abi_version(void);
/// Everything that was wrong in this thread's last call that returned a status, one line each; ""
/// where it succeeded. The text is there until the thread's next such call.
TANDEM_API const char* tandem_error_message(void);
/// How many things were wrong.
TANDEM_API size_t tandem_error_count(void);
/// One of them, from 0 on. Does not count as a call, but returns TANDEM_USAGE where there is none.
TANDEM_API TandemStatus tandem_error_at(size_t index, TandemDiagnostic* diagnostic);

// ---------------------------------------------------------------- values

// clang-format off
typedef enum TandemDType {
  TANDEM_FLOAT32 = 0, TANDEM_FLOAT64 = 1, TANDEM_FLOAT16 = 2, TANDEM_BFLOAT16 = 3,
  TANDEM_INT8 = 4, TANDEM_INT16 = 5, TANDEM_INT32 = 6, TANDEM_INT64 = 7,
  TANDEM_UINT8 = 8, TANDEM_UINT16 = 9, TANDEM_UINT32 = 10, TANDEM_UINT64 = 11,
  TANDEM_BOOL = 12,  // one byte, 0 or 1
  TANDEM_FLOAT8_E4M3FN = 13, TANDEM_FLOAT8_E4M3FNUZ = 14,
  TANDEM_FLOAT8_E5M2 = 15, TANDEM_FLOAT8_E5M2FNUZ = 16, TANDEM_FLOAT8_E8M0FNU = 17
} TandemDType;
// clang-format on

struct DLManagedTensor;  // <dlpack/dlpack.h>

/// A row-major tensor in host memory. A function that writes one leaves `dlpack` NULL.
typedef struct TandemTensor {
  size_t struct_size;
  const char* name;      // the input, output, data field or parameter
  const int64_t* shape;  // `rank` extents, outermost first; batches are axis 0
  const void* data;
  size_t bytes;         // that the elements take
  int32_t dtype, rank;  // a TandemDType; rank 0: one element
  /// A tensor of another library in host memory, in place of all members but the name. It is only
  /// read: the caller calls its deleter.
  struct DLManagedTensor* dlpack;
} TandemTensor;

// These three never get more members.
typedef struct TandemTexts {
  const char* const* items;
  size_t count;
} TandemTexts;

typedef struct TandemValue {
  const char* name;
  double value;
} TandemValue;
typedef struct TandemValues {
  const TandemValue* items;
  size_t count;
} TandemValues;

/// Tensors that a session gave: their elements never change, and they outlive the session.
typedef struct TandemTensors TandemTensors;
TANDEM_API size_t tandem_tensors_count(const TandemTensors* tensors);
/// The tensor at an index, by alphabetical order of names. It is valid until `tensors` is closed.
TANDEM_API TandemStatus tandem_tensors_at(const TandemTensors* tensors, size_t index, TandemTensor* tensor);
/// Gives the elements to another library, which must only read them and calls the deleter. They
/// stay after `tensors` is closed.
TANDEM_API TandemStatus tandem_tensors_dlpack(const TandemTensors* tensors, size_t index,
                                              struct DLManagedTensor** managed);
TANDEM_API void tandem_tensors_close(TandemTensors** tensors);

#ifdef __cplusplus
}  // extern "C"
#endif
