// What ranks send each other between steps: bytes of any number, and errors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/structures/function_ref.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

/// The bytes of every rank, in their order; as Rendezvous::exchange, in as many pieces as they
/// take.
std::vector<std::string> gathered(Rendezvous& ranks, const std::string& name,
                                  const std::string& bytes);

/// Calls `action` on every rank of a run, however long it takes. Where it
/// throws on any of them all throw: rank 0 its own error and the ones that are not the same, with
/// "rank 3: " before them, the others an ErrorElsewhere. Calls `exchange` from a thread meanwhile,
/// so that `action` must not.
void on_all_ranks(Rendezvous& ranks, const std::string& name, FunctionRef<void()> action);

/// Like on_all_ranks, but in turn: rank 0, and once that has succeeded all others.
void on_rank_0_first(Rendezvous& ranks, const std::string& name, FunctionRef<void()> action);

/// What `action` returns on rank 0, the only one that calls it; throws on all where it throws
/// there.
std::string from_rank_0(Rendezvous& ranks, const std::string& name,
                        FunctionRef<std::string()> action);

}  // namespace tandem
