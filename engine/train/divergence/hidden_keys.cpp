#include "engine/train/divergence/hidden_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/graph/text.h"
#include "engine/operators/operator.h"
#include "engine/train/tables/fed_integers.h"

namespace tandem {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A finite number that models add to a score in place of -infinity: -1e4 and below.
bool hides_by(double added) { return added <= -1e4; }

/// The number of a constant of one element; nothing of other values.
std::optional<double> constant_number(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.kind != ValueKind::constant || value.constant == nullptr) return std::nullopt;
  if (value.type.elements() < 1) return std::nullopt;
  const double first = value.constant->number(0);
  for (std::int64_t i = 1; i < std::min<std::int64_t>(value.type.elements(), 1 << 16); ++i) {
    if (value.constant->number(i) != first) return std::nullopt;
  }
  return first;
}

/// Whether a number replaces a value that is nan: Where(IsNaN(p), 0, p).
bool replaces_nan(const Graph& graph, ValueId p) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.op->name == std::string_view("IsNaN") && node.inputs[0] == p;
  });
}

bool are_all_one(const char* elements, std::size_t bytes, std::size_t of_one) {
  return bytes <= of_one || std::memcmp(elements, elements + of_one, bytes - of_one) == 0;
}

/// Samples whose fields have the same elements.
struct AlikeSamples {
  std::int64_t first = 0, count = 0;
};

/// Samples with the same values, counted once each: the first `most` different ones, and later ones
/// only where all of their elements are equal (rows of padding).
std::vector<AlikeSamples> alike_samples(const DataSource& source, const std::vector<int>& fields,
                                        std::int64_t most) {
  constexpr std::int64_t piece = 256, most_bytes = std::int64_t{1} << 30;
  std::size_t bytes = 0;  // bytes of a sample
  for (const int f : fields) bytes += source.fields()[static_cast<std::size_t>(f)].sample.bytes();
  const std::int64_t samples = std::min(
      source.samples(), most_bytes / static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
  std::unordered_map<std::string, std::size_t> known;
  std::vector<AlikeSamples> kinds;
  std::vector<std::int64_t> some;
  std::vector<std::string> rows;
  std::vector<bool> are_uniform;
  for (std::int64_t first = 0; first < samples; first += piece) {
    some.clear();
    for (std::int64_t i = first; i < std::min(first + piece, samples); ++i) some.push_back(i);
    rows.assign(some.size(), std::string());
    are_uniform.assign(some.size(), false);
    for (const int f : fields) {
      TensorType type = source.fields()[static_cast<std::size_t>(f)].sample;
      const std::size_t own = type.bytes();
      type.shape.insert(type.shape.begin(), std::ssize(some));
      HostTensor values(type);
      source.fill(f, some, nullptr, values.data());
      for (std::size_t i = 0; i < some.size(); ++i) {
        const char* const row = static_cast<const char*>(values.data()) + i * own;
        rows[i].append(row, own);
        if (are_all_one(row, own, size_of(type.dtype))) are_uniform[i] = true;
      }
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto found = known.find(rows[i]);
      if (found != known.end()) {
        ++kinds[found->second].count;
        continue;
      }
      if (std::ssize(kinds) >= most * (are_uniform[i] ? 2 : 1)) continue;
      known.emplace(std::move(rows[i]), kinds.size());
      kinds.push_back({some[i], 1});
    }
  }
  return kinds;
}

}  // namespace

HiddenKeys::HiddenKeys(const Graph& forward, const Evaluator& evaluate)
    : graph_(forward), evaluate_(evaluate) {
  if (evaluate_) find_masks();
  found_.resize(masks_.size());
}

void HiddenKeys::find_masks() {
  for (const Node& node : graph_.nodes) {
    if (node.phase != Phase::forward) continue;
    const std::string_view op = node.op->name;
    if (op == "Attention" && node.inputs.size() > 3 && node.inputs[3])
      add_mask(node, node.inputs[3], Form::added, 0, true);
    if (op != "Softmax" && op != "LogSoftmax") continue;
    const Shape& shape = graph_.type(node.inputs[0]).shape;
    if (shape.size() < 2 || node.attributes.integer("axis") + 1 != std::ssize(shape)) continue;
    find_masks(node, node.inputs[0], replaces_nan(graph_, node.outputs[0]), 0);
  }
}

void HiddenKeys::find_masks(const Node& softmax, ValueId scores, bool gives_zeros, int depth) {
  constexpr int most_depth = 6;
  const Value& value = graph_.value(scores);
  if (!value.producer || depth > most_depth) return;
  const Node& node = graph_.node(value.producer);
  const std::string_view op = node.op->name;
  if (op == "Add") {
    for (const ValueId input : node.inputs) {
      if (!add_mask(softmax, input, Form::added, 0, gives_zeros))
        find_masks(softmax, input, gives_zeros, depth + 1);
    }
  } else if (op == "Where") {
    const std::optional<double> yes = constant_number(graph_, node.inputs[1]);
    const std::optional<double> no = constant_number(graph_, node.inputs[2]);
    if (yes && hides_by(*yes))
      add_mask(softmax, node.inputs[0], Form::hides_where_true, *yes, gives_zeros);
    if (no && hides_by(*no))
      add_mask(softmax, node.inputs[0], Form::hides_where_false, *no, gives_zeros);
    for (const std::size_t i : {1, 2}) find_masks(softmax, node.inputs[i], gives_zeros, depth + 1);
  } else if (op == "Reshape" || op == "Identity" || op == "Cast") {
    find_masks(softmax, node.inputs[0], gives_zeros, depth + 1);
  }
}

bool HiddenKeys::is_of_data(ValueId id, std::vector<std::string>& inputs) const {
  constexpr std::size_t most_values = 200;
  std::vector<ValueId> open{id};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Value& value = graph_.value(open[i]);
    if (value.kind == ValueKind::input) {
      for (const NamedValue& input : graph_.inputs) {
        if (input.value == open[i]) inputs.push_back(input.name);
      }
    } else if (value.kind == ValueKind::computed) {
      const Node& node = graph_.node(value.producer);
      if (node.body || open.size() > most_values) return false;
      for (const ValueId operand : node.inputs) {
        if (operand && std::find(open.begin(), open.end(), operand) == open.end())
          open.push_back(operand);
      }
    } else if (value.kind != ValueKind::constant) {
      return false;
    }
  }
  return !inputs.empty();
}

bool HiddenKeys::add_mask(const Node& node, ValueId value, Form form, double hidden,
                          bool gives_zeros) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 24;
  const TensorType& type = graph_.type(value);
  if (type.rank() < 2 || type.elements() < 1 || type.elements() > most_elements) return false;
  for (Mask& known : masks_) {
    if (!(known.value == value) || known.form != form) continue;
    known.paths.push_back(node.path);
    known.gives_zeros = known.gives_zeros && gives_zeros;
    return true;
  }
  Mask mask{value, form, hidden, gives_zeros, {node.path}, {}};
  if (!is_of_data(value, mask.inputs)) return false;
  masks_.push_back(std::move(mask));
  return true;
}

HiddenKeys::Result HiddenKeys::result_of(const Mask& mask, const HostTensor& values,
                                         std::int64_t sample, std::int64_t samples) const {
  const std::int64_t keys = values.shape().back();
  const std::int64_t queries = values.type().elements() / keys / samples;  // in a sample
  bool hides_all = true, any_nan = false;
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t row = (sample * queries + query) * keys;
    bool is_hidden = true, is_infinite = true;
    for (std::int64_t key = 0; key < keys && is_hidden; ++key) {
      double added = values.number(row + key);
      if (mask.form != Form::added)
        added = (added != 0) == (mask.form == Form::hides_where_true) ? mask.hidden : 0;
      is_hidden = hides_by(added);
      is_infinite = is_infinite && added == -infinity;
    }
    any_nan = any_nan || (is_hidden && is_infinite && !mask.gives_zeros);
    hides_all = hides_all && is_hidden;
  }
  if (any_nan) return Result::nan;
  if (!hides_all) return Result::ordinary;
  const double first = values.number(sample * queries * keys);
  const bool is_infinite = mask.form == Form::added ? first == -infinity : mask.hidden == -infinity;
  return is_infinite ? Result::zero : Result::mean;
}

void HiddenKeys::add(const DataSource& source) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 23;  // elements of all masks together
  constexpr std::int64_t most_kinds = 1 << 16;
  if (masks_.empty()) return;
  FedIntegers fed(graph_, source, evaluate_);
  std::vector<std::size_t> computed;
  std::int64_t elements = 1;  // mask elements for a sample
  for (std::size_t m = 0; m < masks_.size(); ++m) {
    if (!fed.add(masks_[m].value) || fed.samples() < 1) continue;
    const Shape& shape = graph_.type(masks_[m].value).shape;
    if (shape[0] % fed.samples() != 0) continue;  // an entry mixes samples
    computed.push_back(m);
    elements += element_count(shape) / fed.samples();
  }
  if (computed.empty()) return;
  const std::vector<int> fields = fed.fields();
  const std::vector<AlikeSamples> kinds = alike_samples(
      source, fields, std::clamp<std::int64_t>(most_elements / elements, 1, most_kinds));
  const std::int64_t batch = fed.samples();
  std::vector<std::int64_t> samples;
  for (std::int64_t at = 0; at < std::ssize(kinds); at += batch) {
    samples.clear();
    for (std::int64_t i = 0; i < batch; ++i)
      samples.push_back(
          kinds[static_cast<std::size_t>(std::min(at + i, std::ssize(kinds) - 1))].first);
    fed.read(samples);
    for (std::int64_t i = 0; i < std::min(batch, std::ssize(kinds) - at); ++i) {
      const AlikeSamples& kind = kinds[static_cast<std::size_t>(at + i)];
      for (const std::size_t m : computed) {
        const Result result = result_of(masks_[m], fed.value(masks_[m].value), i, batch);
        if (result == Result::ordinary) continue;
        Found& found = found_[m];
        found.samples += kind.count;
        found.result = std::max(found.result, result);
        if (found.first.empty()) found.first = source.describe(fields[0], kind.first);
      }
    }
  }
  for (const AlikeSamples& kind : kinds) looked_at_ += kind.count;
}

std::vector<std::string> HiddenKeys::warnings() const {
  std::vector<std::string> all;
  for (std::size_t m = 0; m < masks_.size(); ++m) {
    const Mask& mask = masks_[m];
    const Found& found = found_[m];
    if (found.samples == 0) continue;
    const std::string readers =
        mask.paths[0] +
        (mask.paths.size() > 1 ? " and " + std::to_string(mask.paths.size() - 1) + " more" : "");
    const char* const result =
        found.result == Result::nan    ? "its softmax is nan, as torch.softmax's"
        : found.result == Result::zero ? "its result is 0, whatever the values"
                                       : "its result is a mean of hidden ones";
    all.push_back(fmt::format(
        "{}: data.fields.{}: no key is visible to {} in {} of {} samples, of which this is the "
        "first: {}; let each sample have a key that its mask shows, or leave such samples out",
        found.first, joined(mask.inputs), readers, found.samples, looked_at_, result));
  }
  return all;
}

}  // namespace tandem
