// The text of an Error, for tests that compare messages.
#pragma once

#include <string>

#include "engine/graph/error.h"

namespace tandem::testing {

/// The text of the Error that f throws; "no error" if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tandem::testing
