// Names of the numbers that lines of metrics.jsonl have besides metrics and terms of the loss.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// "step", "lr", "norm.gradient/fc1", ...; not "loss", which the metric of that name is.
bool is_log_member(std::string_view name);

/// What lines call a term of the loss: its name, or "loss.NAME" where another number has that one,
/// as "loss" is the sum of all terms.
std::string logged_term(const std::string& name);

}  // namespace tandem
