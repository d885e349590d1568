// How a rank ends with an error, so that exactly one of them reports why.
#pragma once

#include "engine/graph/error.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

/// Throws the error, once the other ranks have been informed; an ErrorElsewhere where another rank
/// reports it.
[[noreturn]] void end_on_ranks(Rendezvous& ranks, const Error& error);

}  // namespace tandem
