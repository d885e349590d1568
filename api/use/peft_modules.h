// Which modules of a model PEFT means by the names in an adapter's configuration: it compares the
// ends of paths.
#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace tandem::api {

using PeftJson = nlohmann::ordered_json;

/// Whether PEFT saves the module, or one around it, for an entry of modules_to_save: "fc" also
/// means "blocks.0.c_fc", and all that is inside.
bool is_saved_by(const std::string& module, const std::string& entry);
bool is_saved_by(const std::string& module, const std::set<std::string>& entries);

/// Without those that another entry means already.
std::set<std::string> least_entries(const std::set<std::string>& modules);

/// target_modules: a list or, where the end of another one's path is equal, an expression, which is
/// compared with whole paths. `known`: modules of the model, with adapters and without.
PeftJson target_entries(const std::set<std::string>& targets, const std::set<std::string>& known);

/// rank_pattern or alpha_pattern: those that differ from `common`. PEFT takes the first entry that
/// the path ends in; where one of the targets is the end of another, all are listed, long ones
/// first.
template <class Number>
PeftJson pattern_entries(const std::map<std::string, Number>& numbers, Number common);

extern template PeftJson pattern_entries(const std::map<std::string, std::int64_t>&, std::int64_t);
extern template PeftJson pattern_entries(const std::map<std::string, double>&, double);

}  // namespace tandem::api
