// Hashes of states of which no rank has the whole.
#pragma once

#include <map>
#include <string>

#include "engine/ranks/rendezvous.h"
#include "engine/runtime/program.h"
#include "engine/train/group/row_exchange.h"

namespace tandem {

/// The sha256 of the whole's row-major bytes, by name, for each frozen state that is sharded: the
/// counterpart of `frozen_hashes` for several processes. All ranks call it at the same point; rank
/// 0 reads the rows of the others through `exchange`, and sends the result to all.
std::map<std::string, std::string> shared_frozen_hashes(const StateStore& states, Rendezvous& ranks,
                                                        RowExchange& exchange);

}  // namespace tandem
