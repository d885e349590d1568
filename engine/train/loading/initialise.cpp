#include "engine/train/loading/initialise.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/passes/adapters/adapter_kind.h"
#include "engine/train/loading/load_weights.h"

namespace tandem {
namespace {

/// SplitMix64, seeded from the run's seed and the parameter's name: draw k is a function of k, so
/// that any range of elements can be made without the others.
class Random {
 public:
  Random(std::uint64_t seed, const std::string& name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  void skip(std::uint64_t draws) { state_ += draws * step; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Box and Muller; two draws.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  /// Two normal numbers of one draw, in single precision: a quarter of the time.
  std::pair<float, float> normal_pair() {
    const std::uint64_t bits = next();
    const float u = static_cast<float>((bits >> 32) + 1) * 0x1.0p-32f;  // in (0, 1]
    const float angle =
        static_cast<float>(bits & 0xffffffff) * static_cast<float>(M_PI * 0x1.0p-31);
    const float radius = std::sqrt(-2 * std::log(u));
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15ull;
  std::uint64_t next() {
    std::uint64_t z = state_ += step;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

Fans fans_of(const Shape& shape) {
  if (shape.size() < 2) return {static_cast<double>(element_count(shape)), 1};
  double field = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) field *= static_cast<double>(shape[i]);
  return {shape[1] * field, shape[0] * field};
}

/// Elements from which on normal numbers are made in pairs.
constexpr std::int64_t large_table = std::int64_t{1} << 24;

/// Elements from `first` on.
void draw(const Distribution& from, bool in_pairs, Random random, std::int64_t first,
          std::span<float> to) {
  const auto [form, a, b] = from;
  const auto start = static_cast<std::uint64_t>(first);
  switch (form) {
    case Distribution::Form::constant:
      std::fill(to.begin(), to.end(), static_cast<float>(a));
      break;
    case Distribution::Form::normal:
      random.skip(in_pairs ? start / 2 : 2 * start);
      for (std::size_t i = 0; i < to.size() && !in_pairs; ++i)
        to[i] = static_cast<float>(a + b * random.normal());
      for (std::size_t i = 0; i < to.size() && in_pairs;) {
        const auto [even, odd] = random.normal_pair();
        const auto mean = static_cast<float>(a), std = static_cast<float>(b);
        if ((start + i) % 2 == 0) to[i++] = mean + std * even;
        if (i < to.size()) to[i++] = mean + std * odd;
      }
      break;
    case Distribution::Form::uniform:
      random.skip(start);
      for (float& x : to) x = static_cast<float>(a + b * random.uniform());
      break;
    case Distribution::Form::symmetric:
      random.skip(start);
      for (float& x : to) x = static_cast<float>(b * (2 * random.uniform() - 1));
      break;
  }
}

/// This rank's rows or columns of a sharded state get the numbers that they have in the whole.
template <class States>
void initialise_part(const Distribution& distribution, const Random& random,
                     const StateShard& shard, const std::string& name, States& states) {
  const TensorType& whole = shard.whole;
  assert(shard.kind != ShardKind::elements);  // that starts with numbers of its own
  const bool in_pairs = whole.elements() > large_table;
  const std::int64_t of_whole = whole.elements() / std::max<std::int64_t>(whole.shape[0], 1);
  const Block own = shard.kind != ShardKind::column_blocks
                        ? Block{of_whole, 0, of_whole}
                        : block_of(of_whole, shard.rank, shard.ranks);
  const std::int64_t columns = own.share;
  constexpr std::size_t range_bytes = std::size_t{1} << 19;
  parallel_row_ranges(file_threads(), filled_rows(shard),
                      sizeof(float) * static_cast<std::size_t>(columns), range_bytes,
                      [&](std::int64_t first, std::int64_t count) {
                        HostTensor range(TensorType{DType::float32, {count, columns}});
                        for (std::int64_t i = 0; i < count; ++i) {
                          const std::int64_t row = row_of_whole(shard, first + i);
                          draw(distribution, in_pairs, random, row * of_whole + own.first,
                               range.as<float>().subspan(static_cast<std::size_t>(i * columns),
                                                         static_cast<std::size_t>(own.filled)));
                        }
                        states.write_rows(name, first, count, range.converted(whole.dtype).data());
                      });
}

/// In ranges of rows, by several threads: a table is never there twice.
template <class States>
void initialise(const InitRule& rule, std::uint64_t seed, const State& state, States& states) {
  const TensorType& type = state.shard ? state.shard->whole : states.type(state.name);
  const Distribution distribution =
      std::visit([&](const auto& kind) { return kind.values(fans_of(type.shape)); }, rule.kind);
  const bool in_pairs = type.elements() > large_table;
  const Random random(seed, state.name);
  if (state.shard) return initialise_part(distribution, random, *state.shard, state.name, states);
  constexpr std::size_t range_bytes = std::size_t{1} << 19;  // stays in a cache
  if (type.bytes() <= range_bytes || !states.has_direct_rows(state.name)) {
    HostTensor tensor(TensorType{DType::float32, type.shape});
    draw(distribution, in_pairs, random, 0, tensor.as<float>());
    states.write(state.name, tensor.converted(type.dtype));
    return;
  }
  const std::int64_t rows = row_count(type), columns = type.elements() / rows;
  parallel_row_ranges(file_threads(), rows, sizeof(float) * static_cast<std::size_t>(columns),
                      range_bytes, [&](std::int64_t first, std::int64_t count) {
                        HostTensor range(TensorType{DType::float32, {count, columns}});
                        draw(distribution, in_pairs, random, first * columns, range.as<float>());
                        states.write_rows(state.name, first, count,
                                          range.converted(type.dtype).data());
                      });
}

std::string shown(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// The largest number that a value may have: it is drawn as a float32.
double largest_of(DType dtype) {
  constexpr double float16 = 65504, bfloat16 = 0x1.fep127;
  if (dtype == DType::float16) return float16;
  if (dtype == DType::bfloat16) return bfloat16;
  return std::numeric_limits<float>::max();
}

/// The number of a rule that does not fit a parameter's type.
std::optional<Diagnostic> out_of_range(const InitRule& rule, const State& state) {
  const double most = largest_of(state.start.dtype());
  for (const auto& [key, value, limit] :
       std::visit([&](const auto& kind) { return kind.bounds(most); }, rule.kind)) {
    if (std::abs(value) <= limit) continue;
    return at(
        rule.where, state.path, "initial values of this size do not fit the parameter's type",
        key + " of at most " + shown(limit) + " for " + std::string(name_of(state.start.dtype())),
        shown(value));
  }
  return std::nullopt;
}

/// Paths of parameters whose rows a rule sets and that no init rule covers.
std::vector<std::string> tables_at_zero(const ParametersConfig& config, const Graph& graph,
                                        const ParameterNames& names) {
  const auto covered = [&](const auto& rules, const State& state) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const auto& rule) { return names.covers(Selector(rule.at), state); });
  };
  std::vector<std::string> paths;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.starts_at_zero || !holds_own_values(state))
      continue;
    if (covered(config.shape, state) && !covered(config.init, state)) paths.push_back(state.path);
  }
  return paths;
}

/// Initial values where no program holds the states yet; has what is used here of a StateStore.
class Values {
 public:
  explicit Values(const Graph& graph) : graph_(graph) {}
  const TensorType& type(const std::string& name) const {
    return graph_.find_state(name)->start.type();
  }
  /// A copy: what is loaded may be the pages of its file.
  void write(const std::string& name, const HostTensor& value) { all[name] = value.clone(); }
  const HostTensor& read(const std::string& name) const { return all.at(name); }
  static bool has_direct_rows(const std::string&) { return false; }
  static void write_rows(const std::string&, std::int64_t, std::int64_t, const void*) {}

  std::map<std::string, HostTensor> all;

 private:
  const Graph& graph_;
};

/// Parts of adapters that start with values of a weight which rules have changed, except those that
/// rules set.
template <class States>
void start_parts(const AdaptedWeight& weight, const Graph& graph,
                 const std::set<std::string>& written, States& states) {
  const AdapterKind kind = weight.rule.kind();
  for (const AdapterPart& part : kind.parts) {
    const std::string name = weight.state_of(part.name);
    if (part.of_weight.empty() || !written.contains(weight.name) || written.contains(name))
      continue;
    const State *own = graph.find_state(weight.name), *added = graph.find_state(name);
    if (own == nullptr || added == nullptr) continue;
    if (own->shard || added->shard) {
      throw Error(ErrorKind::usage, at(weight.rule.where, weight.path,
                                       "parameters.lora: " + std::string(part.of_weight),
                                       "a weight that no ranks shard", "",
                                       "leave `shard` of this parameter out of the policy, or " +
                                           std::string(kind.name) + " out of the rule"));
    }
    states.write(name, part.start(weight, states.read(weight.name), {}));
  }
}

template <class States>
std::vector<std::string> initialise_all(const ParametersConfig& config, std::uint64_t seed,
                                        const Graph& graph, const LoadingParts& parts,
                                        States& states) {
  std::vector<std::string> notes;
  std::vector<Diagnostic> problems;
  std::set<std::string> written;
  for (const InitRule& rule : config.init) {
    const Selector selector(rule.at);
    int matched = 0;
    for (const State& state : graph.states) {
      const bool is_teacher = state.held_by == HeldBy::teacher;
      if (state.kind != StateKind::parameter || !holds_own_values(state) || is_teacher) continue;
      if (!parts.names.covers(selector, state)) continue;
      ++matched;
      if (std::optional<Diagnostic> problem = out_of_range(rule, state)) {
        problems.push_back(std::move(*problem));
        continue;
      }
      initialise(rule, seed, state, states);
      written.insert(state.name);
    }
    if (matched == 0) {
      problems.push_back(at(rule.where, "", "\"" + rule.at + "\" matches no parameter", "", "",
                            parts.names.no_match_fix(rule.at, graph)));
    }
    notes.push_back("initialised " + std::to_string(matched) + " parameters: " + rule.at);
  }
  for (const std::string& name : tables_at_zero(config, graph, parts.names)) {
    notes.push_back(name +
                    " starts at zeros: [parameters] shape gives it rows and no init rule "
                    "covers it (right for a wide part; deep embeddings usually start at "
                    "random, as with kind = \"normal\", std = 0.01)");
  }
  const auto write = [&](const std::string& name, const HostTensor& value) {
    states.write(name, value);
    written.insert(name);
  };
  for (const LoadRule& rule : config.load) {
    for (std::string& note : load_weights(rule, graph, parts, write, problems))
      notes.push_back(std::move(note));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  for (const AdaptedWeight& weight : parts.adapted) start_parts(weight, graph, written, states);
  return notes;
}

}  // namespace

std::vector<std::string> initialise_parameters(const ParametersConfig& config, std::uint64_t seed,
                                               const Graph& graph, StateStore& states,
                                               const LoadingParts& parts) {
  return initialise_all(config, seed, graph, parts, states);
}

HostTensor uniform_values(std::uint64_t seed, const std::string& name, const TensorType& type,
                          double bound) {
  HostTensor tensor(TensorType{DType::float32, type.shape});
  draw(symmetric_values(bound), false, Random(seed, name), 0, tensor.as<float>());
  return tensor.converted(type.dtype);
}

std::map<std::string, HostTensor> initial_values(const ParametersConfig& config, std::uint64_t seed,
                                                 const Graph& graph, const LoadingParts& parts) {
  Values values(graph);
  initialise_all(config, seed, graph, parts, values);
  return std::move(values.all);
}

}  // namespace tandem
