// Structs of the C library, which may have the size of another version.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "api/c/guarded.h"
#include "tandem/c.h"

namespace tandem::c_library {

/// The size of a struct in the first version that has it; a struct that gets members keeps it.
template <class T>
inline constexpr std::size_t first_size = sizeof(T);

template <>
inline constexpr std::size_t first_size<TandemSessionConfig> = offsetof(TandemSessionConfig,
                                                                        policy);
template <>
inline constexpr std::size_t first_size<TandemTrainerConfig> = offsetof(TandemTrainerConfig,
                                                                        policy);

/// Larger ones are not the size of a struct of any version.
inline constexpr std::size_t most_size = 4096;

/// Throws Error{usage} where no version of the struct has this size.
template <class T>
void check_struct_size(std::size_t size, const char* name) {
  if (size >= first_size<T> && size <= most_size) return;
  throw bad_argument(name, "struct_size is not the size of this struct",
                     "the sizeof of its type, here " + std::to_string(sizeof(T)),
                     std::to_string(size));
}

/// A copy, in which members that the caller's version lacks are 0. Throws Error{usage} where the
/// caller has set members that this version lacks.
template <class T>
T read_struct(const T* from, const char* name) {
  const std::size_t size = required(from, name).struct_size;
  check_struct_size<T>(size, name);
  T result{};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  std::memcpy(&result, bytes, std::min(size, sizeof(T)));
  const bool has_more = size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size,
                                                        [](unsigned char byte) { return byte; });
  if (has_more) throw bad_argument(name, "this struct has members that need a newer library");
  return result;
}

/// A copy of one element of an array, as `read_struct` makes it.
template <class T>
T read_element(const T* first, std::size_t index, const char* name) {
  const std::size_t size = required(first, name).struct_size;
  check_struct_size<T>(size, name);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(first);
  const T* const element = reinterpret_cast<const T*>(bytes + index * size);
  if (element->struct_size == size) return read_struct(element, name);
  throw bad_argument(name, "the elements of this array differ in struct_size",
                     std::to_string(size) + ", as in the first",
                     std::to_string(element->struct_size));
}

/// Writes the members that the caller's version has, and 0 into those that this version lacks.
template <class T>
void write_struct(T value, T* to, const char* name) {
  value.struct_size = required(to, name).struct_size;
  check_struct_size<T>(value.struct_size, name);
  auto* const bytes = reinterpret_cast<unsigned char*>(to);
  std::memcpy(bytes, &value, std::min(value.struct_size, sizeof(T)));
  if (value.struct_size > sizeof(T))
    std::memset(bytes + sizeof(T), 0, value.struct_size - sizeof(T));
}

/// Writes what is wrong; texts stay those of `from`.
void write_diagnostic(const Diagnostic& from, TandemDiagnostic* to, const char* name);

}  // namespace tandem::c_library
