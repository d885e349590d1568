// Where values of a run stopped being finite: a short stretch of it is made again up to that step.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/train/loop/run.h"

namespace tandem {

inline constexpr const char* lower_rate = "lower optimizer.lr, or set optimizer.clip_norm";

/// The origin in a step, or in the first one that leaves states which are not finite, and advice
/// (`fix`). Nothing where a repetition takes long, or is not possible. `infinite`: states that held
/// infinities at the start.
std::vector<Diagnostic> origin_of(const Run& run, const std::set<std::string>& infinite,
                                  std::optional<std::uint64_t> step, std::string& fix);

}  // namespace tandem
