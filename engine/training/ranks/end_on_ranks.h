// How a rank ends with an error, so that one of them tells people why.
#pragma once

#include "engine/graph/error.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

/// Throws the error, once the other ranks have been told of it; an ErrorElsewhere where another
/// rank tells people. `ranks` null: one process.
[[noreturn]] void end_on_ranks(Rendezvous* ranks, const Error& error);

}  // namespace tandem
