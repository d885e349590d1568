// Runs what a function of the C library does, and keeps what went wrong for the thread that called.
#pragma once

#include <string>

#include "engine/graph/structures/function_ref.h"
#include "tandem/c_values.h"
#include "tandem/error.h"

namespace tandem::c_library {

/// The status of a call; what it throws is the thread's error until its next call.
TandemStatus guarded(FunctionRef<void()> call) noexcept;

/// Error{usage} about an argument.
[[nodiscard]] Error bad_argument(const std::string& name, std::string message,
                                 std::string expected = "", std::string got = "");

/// What a pointer refers to. Throws Error{usage} where it is null.
template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw bad_argument(name, "this argument is NULL");
  return *pointer;
}

/// A text that may be left out.
inline std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

/// Sets an object that a function will have made to null, so that it is null where the function
/// fails.
template <class T>
T*& made(T** object, const char* name) {
  T*& result = required(object, name);
  result = nullptr;
  return result;
}

}  // namespace tandem::c_library
