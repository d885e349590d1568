// Access to handles of the public library that may have been moved from.
#pragma once

#include <memory>
#include <string>

#include "tandem/error.h"

namespace tandem::api {

/// The object that a handle holds. Throws Error{usage} where the handle was moved from.
template <class Impl>
Impl& held(const std::unique_ptr<Impl>& impl, const char* kind) {
  if (impl) return *impl;
  Diagnostic d;
  d.message = std::string("this ") + kind + " was moved from: another one has its state";
  d.fix = "call the one that it was moved to, or assign to this one first";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace tandem::api
