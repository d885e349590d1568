// Returns the text of the error that an action throws, and checks its kind.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tandem/tandem.h"

namespace tandem::testing {

inline std::string error_of(const std::function<void()>& action,
                            ErrorKind kind = ErrorKind::usage) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

}  // namespace tandem::testing
