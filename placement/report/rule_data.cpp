#include "placement/report/rule_data.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/graph/state_shard.h"
#include "placement/report/placement_report.h"
#include "placement/resolve.h"

namespace tandem {
namespace {

using Shard = api::Rule::Shard;

// In the order of the public enumerations.
constexpr std::array<std::string_view, 3> ship_words{"auto", "rows", "results"};
constexpr std::array<std::string_view, 7> shard_words{"whole",          "rows",  "columns", "state",
                                                      "state+gradient", "table", "heads"};
constexpr std::array<std::string_view, 9> attribute_words{
    "run", "param", "state", "acts", "lookahead", "ship", "cache", "shard", "ahead"};
static_assert(static_cast<int>(api::Rule::Acts::recompute) ==
              static_cast<int>(Activations::recompute));
static_assert(static_cast<int>(api::Phase::update) == static_cast<int>(Phase::update));

/// The enumerator whose word this is. The reader of the file has checked it.
template <class Enum, std::size_t count>
Enum enumerator(const std::array<std::string_view, count>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  assert(found != words.end());
  return static_cast<Enum>(found - words.begin());
}

template <class Enum, std::size_t count>
std::string word_of(const std::array<std::string_view, count>& words, Enum value) {
  return std::string(words[static_cast<std::size_t>(value)]);
}

std::string selector_text(const std::optional<Selector>& selector) {
  return selector ? selector->text() : "";
}

std::optional<Selector> selector_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(Selector(text));
}

}  // namespace

api::Rule rule_data(const PolicyRule& rule) {
  api::Rule data;
  data.at = rule.at.text();
  data.op = rule.op;
  data.min = rule.min;
  data.after = selector_text(rule.after);
  data.before = selector_text(rule.before);
  if (rule.run && rule.run == rule.param && rule.run == rule.state) {
    data.on = rule.run;
  } else {
    data.run = rule.run;
    data.param = rule.param;
    data.state = rule.state;
  }
  if (rule.acts) data.acts = static_cast<api::Rule::Acts>(*rule.acts);
  data.lookahead = rule.lookahead;
  if (rule.ship) data.ship = enumerator<api::Rule::Ship>(ship_words, *rule.ship);
  if (rule.cache) data.cache = {rule.cache->bytes, rule.cache->part};
  if (rule.shard) data.shard = enumerator<Shard>(shard_words, *rule.shard);
  data.prefer = rule.prefer;
  data.optional = rule.optional;
  data.why = rule.why;
  return data;
}

PolicyRule rule_of(const api::Rule& data) {
  PolicyRule rule;
  rule.at = Selector(data.at);
  rule.op = data.op;
  rule.min = data.min;
  rule.after = selector_of(data.after);
  rule.before = selector_of(data.before);
  rule.run = data.run ? data.run : data.on;
  rule.param = data.param ? data.param : data.on;
  rule.state = data.state ? data.state : data.on;
  if (data.acts) rule.acts = static_cast<Activations>(*data.acts);
  rule.lookahead = data.lookahead;
  if (data.ship) rule.ship = word_of(ship_words, *data.ship);
  if (data.cache) rule.cache = CacheSize{data.cache->bytes, data.cache->part};
  if (data.shard) rule.shard = word_of(shard_words, *data.shard);
  rule.prefer = data.prefer;
  rule.optional = data.optional;
  rule.why = data.why;
  return rule;
}

api::PartCounts counts_data(const ItemCounts& counts) {
  return {counts.operators, counts.parameters, counts.buffers, counts.added};
}

ItemCounts counts_of(const api::PartCounts& counts) {
  return {counts.operators, counts.parameters, counts.buffers, counts.added};
}

api::Attribute attribute_of(std::string_view key) {
  return enumerator<api::Attribute>(attribute_words, key);
}

api::Phase phase_data(Phase phase) { return static_cast<api::Phase>(phase); }

const char* phase_name(api::Phase phase) { return phase_name(static_cast<Phase>(phase)); }

}  // namespace tandem

namespace tandem::api {
inline namespace v1 {

std::string_view name(Attribute attribute) {
  return attribute_words[static_cast<std::size_t>(attribute)];
}

}  // namespace v1
}  // namespace tandem::api
