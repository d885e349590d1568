#include "engine/train/loading/weights_match.h"

#include <algorithm>

#include "engine/formats/weights/name_rules.h"
#include "engine/graph/parameter_names.h"
#include "engine/operators/packed/packing.h"

namespace tandem {
namespace {

using Kind = WeightsDifference::Kind;

/// As the importer has it: "fc1:weight" of "fc1.weight".
std::string path_of_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot) + ":" + name.substr(dot + 1);
}

const Shape& whole_shape(const State& state) {
  return state.shard ? state.shard->whole.shape : state.start.shape();
}

bool is_floating(DType dtype) { return is_float(dtype) || is_float8(dtype); }

class Matcher {
 public:
  Matcher(const WeightsFile& file, const LoadRule& rule, const Graph& graph,
          const LoadingParts& parts)
      : file_(file), rule_(rule), graph_(graph), parts_(parts), selector_(rule.at) {
    if (!rule.transpose.empty()) transpose_.emplace(rule.transpose);
  }

  WeightsMatch run() {
    name_tensors();
    for (const State& state : graph_.states) {
      const bool is_model = state.kind == StateKind::parameter || state.kind == StateKind::buffer;
      if (!is_model || !holds_own_values(state) || state.held_by == HeldBy::teacher) continue;
      known_.insert(state.name);
      if (parts_.names.covers(selector_, state)) take(state);
    }
    if (narrow_ > 0)
      match_.notes.push_back(
          std::to_string(narrow_) + (narrow_ == 1 ? " tensor is" : " tensors are") +
          " of 8-bit floats, and used as stored: scales that may be next to them are not applied");
    find_unexpected();
    explain();
    return std::move(match_);
  }

 private:
  /// Finds the new names of the file's tensors, and reports two that become one.
  void name_tensors() {
    const NameRules rules(rule_.strip, rule_.rename, rule_.add);
    for (const std::string& name : file_.names()) {
      const auto [at, is_new] = in_file_.emplace(rules.applied(name), name);
      if (is_new) continue;
      match_.differences.push_back({.kind = Kind::same_name,
                                    .in_file = name,
                                    .file_shape = file_.type(name).shape,
                                    .parameter = at->first,
                                    .hint = "\"" + at->second + "\" is given this name, too"});
    }
  }

  /// The file's name for a state, also by a name that is tied to it; null where it has none.
  const std::string* name_in_file(const State& state) const {
    if (const auto found = in_file_.find(state.name); found != in_file_.end())
      return &found->second;
    for (const auto& [other, name] : parts_.aliases) {
      if (name != state.name) continue;
      if (const auto found = in_file_.find(other); found != in_file_.end()) return &found->second;
    }
    return nullptr;
  }

  void take(const State& state) {
    ++match_.covered;
    const std::string* name = name_in_file(state);
    const bool may_differ = parts_.added.contains(state.name);
    if (name != nullptr && is_packed(state) && is_floating(file_.type(*name).dtype)) {
      match_.differences.push_back(
          {Kind::other_shape, *name, file_.type(*name).shape, state.name, whole_shape(state),
           "it is packed here: export the loaded model without parameters.storage, and pack that"});
      return;
    }
    if (name == nullptr) {
      if (rule_.missing_is_error && !may_differ)
        match_.differences.push_back(
            {.kind = Kind::missing, .parameter = state.name, .shape = whole_shape(state)});
      return;
    }
    const Shape shape = file_.type(*name).shape, &expected = whole_shape(state);
    const Shape turned(shape.rbegin(), shape.rend());
    const bool transposed =
        transpose_ && shape.size() == 2 && parts_.names.covers(*transpose_, state);
    if ((transposed ? turned : shape) == expected) {
      narrow_ += is_float8(file_.type(*name).dtype) ? 1 : 0;
      match_.pairs.push_back({*name, &state, transposed});
      return;
    }
    if (!rule_.other_shape_is_error || may_differ) {
      match_.notes.push_back(state.name + " keeps its values: the file has another shape, " +
                             to_string(shape));
      return;
    }
    std::string hint;
    if (shape.size() == 2 && (transposed ? shape : turned) == expected)
      hint = transposed ? "it fits without transpose" : "its transpose fits: see transpose";
    match_.differences.push_back(
        {Kind::other_shape, *name, shape, state.name, expected, std::move(hint)});
  }

  void find_unexpected() {
    std::set<std::string> used;  // also under another name
    for (const WeightsMatch::Pair& pair : match_.pairs) used.insert(file_.first_name(pair.in_file));
    int integers = 0;
    for (const auto& [name, in_file] : in_file_) {
      if (known_.contains(name) || parts_.aliases.contains(name) ||
          parts_.other_names.contains(name) || file_.first_name(in_file) != in_file ||
          used.contains(in_file) || !selector_.covers_parameter(path_of_name(name), name)) {
        continue;
      }
      const TensorType type = file_.type(in_file);
      if (!is_floating(type.dtype)) {
        ++integers;  // counters and positions of modules, which exported graphs do not have
        continue;
      }
      if (rule_.unexpected_is_error)
        match_.differences.push_back(
            {.kind = Kind::unexpected, .in_file = in_file, .file_shape = type.shape});
    }
    if (integers > 0)
      match_.notes.push_back("left out: " + std::to_string(integers) +
                             " tensors of integers that the model does not have");
  }

  /// Near names, and a prefix that is too much or too little.
  void explain() {
    std::stable_sort(
        match_.differences.begin(), match_.differences.end(),
        [](const WeightsDifference& a, const WeightsDifference& b) { return a.kind < b.kind; });
    std::vector<std::string> missing, unexpected;
    for (const WeightsDifference& d : match_.differences) {
      if (d.kind == Kind::missing) missing.push_back(d.parameter);
      if (d.kind == Kind::unexpected) unexpected.push_back(d.in_file);
    }
    constexpr std::size_t most = 20;  // as many as are shown
    std::size_t shown = 0;
    for (WeightsDifference& d : match_.differences) {
      if (shown == most) break;
      if (d.kind != Kind::missing && d.kind != Kind::unexpected) continue;
      ++shown;
      const bool is_missing = d.kind == Kind::missing;
      const std::string near =
          nearest_name(is_missing ? d.parameter : d.in_file, is_missing ? unexpected : missing);
      if (!near.empty()) d.hint = (is_missing ? "the file has " : "the model has ") + near;
    }
    match_.fix = prefix_fix(missing, unexpected);
  }

  /// A prefix is likely if at least half of the names on one side are on the other side with it.
  static std::string prefix_fix(const std::vector<std::string>& missing,
                                const std::vector<std::string>& unexpected) {
    const auto common = [](const std::vector<std::string>& short_names,
                           const std::vector<std::string>& long_names) -> std::string {
      if (short_names.empty()) return "";
      const std::set<std::string> all(long_names.begin(), long_names.end());
      for (const std::string& name : long_names) {
        if (!name.ends_with("." + short_names[0])) continue;
        const std::string prefix = name.substr(0, name.size() - short_names[0].size());
        const auto count = std::count_if(short_names.begin(), short_names.end(),
                                         [&](const auto& s) { return all.contains(prefix + s); });
        if (2 * static_cast<std::size_t>(count) >= short_names.size()) return prefix;
      }
      return "";
    };
    if (const std::string prefix = common(missing, unexpected); !prefix.empty())
      return "strip = \"" + prefix + "\" takes the prefix off the file's names";
    if (const std::string prefix = common(unexpected, missing); !prefix.empty())
      return "add = \"" + prefix + "\" puts the prefix before the file's names";
    return "";
  }

  const WeightsFile& file_;
  const LoadRule& rule_;
  const Graph& graph_;
  const LoadingParts& parts_;
  const Selector selector_;
  std::optional<Selector> transpose_;
  std::map<std::string, std::string> in_file_;  // by new name
  std::set<std::string> known_;                 // names of the graph's states
  WeightsMatch match_;
  int narrow_ = 0;  // tensors of 8-bit floats
};

}  // namespace

bool holds_own_values(const State& state) {
  return !state.derived.is<Mirror>() && !state.derived.is<CachedRows>();
}

WeightsMatch match_weights(const WeightsFile& file, const LoadRule& rule, const Graph& graph,
                           const LoadingParts& parts) {
  return Matcher(file, rule, graph, parts).run();
}

}  // namespace tandem
