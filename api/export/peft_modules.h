// Selects modules of a model by the names in PEFT's adapter configuration, which are compared with
// the ends of paths.
#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace tandem::api {

using PeftJson = nlohmann::ordered_json;

/// Whether PEFT saves the module, or one that contains it, for an entry of modules_to_save: "fc"
/// also matches "blocks.0.c_fc", and everything inside.
bool is_saved_by(const std::string& module, const std::string& entry);
bool is_saved_by(const std::string& module, const std::set<std::string>& entries);

/// The entries without those that another entry already covers.
std::set<std::string> least_entries(const std::set<std::string>& modules);

/// target_modules: a list; or, where the path of another module has the same ending, a regular
/// expression, which PEFT compares with whole paths. `known`: modules of the model, with adapters
/// and without.
PeftJson target_entries(const std::set<std::string>& targets, const std::set<std::string>& known);

/// rank_pattern or alpha_pattern: the modules whose number differs from `common`. PEFT uses the
/// first entry that the path ends in; where one target is the ending of another, all are listed,
/// long ones first.
template <class Number>
PeftJson pattern_entries(const std::map<std::string, Number>& numbers, Number common);

extern template PeftJson pattern_entries(const std::map<std::string, std::int64_t>&, std::int64_t);
extern template PeftJson pattern_entries(const std::map<std::string, double>&, double);

}  // namespace tandem::api
