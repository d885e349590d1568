#include "engine/passes/random_masks.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/operators/operator.h"
#include "engine/passes/sum_terms.h"

namespace tandem {
namespace {

/// Equal up to rounding: exporters write shares and factors as float32, each rounded on its own.
bool is_near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::max(1.0, std::abs(b)); }

/// What one of the two cases of a mask makes of x.
struct Case {
  double factor = 0, shift = 0;  // the result is factor x + shift
  double share = 0;              // the part of the elements in this case
};

/// Dropout: the factor of what is kept makes up for what is left out.
bool is_dropout(const Case& dropped, const Case& kept, double scale) {
  return dropped.factor == 0 && dropped.shift == 0 && kept.shift == 0 &&
         is_near(kept.factor * scale * kept.share, 1);
}

/// Alpha dropout of Klambauer et al. (2017), as PyTorch has it: dropped elements become -alpha, and
/// a x + b brings back mean and deviation.
bool is_alpha_dropout(const Case& dropped, const Case& kept, double scale) {
  constexpr double alpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((alpha * alpha * dropped.share + 1) * kept.share);
  return dropped.factor == 0 && is_near(kept.factor * scale, a) &&
         is_near(kept.shift, alpha * a * dropped.share) &&
         is_near(dropped.shift, -alpha * a * kept.share);
}

/// A mask of zeros and ones, without a factor that makes up for the zeros: timm's DropPath with
/// scale_by_keep = False.
bool is_bare_mask(const Case& dropped, const Case& kept, double scale) {
  return dropped.factor == 0 && dropped.shift == 0 && kept.shift == 0 &&
         is_near(kept.factor * scale, 1);
}

}  // namespace

/// What the mask has made of x so far.
struct RandomMasks::Followed {
  ValueId x, value;
  Case below, above;
  std::vector<NodeId> read;
  void times(double factor) {
    for (Case* c : {&below, &above}) c->factor *= factor, c->shift *= factor;
  }
  void plus(double shift) { below.shift += shift, above.shift += shift; }
  void plus_x(double factor) { below.factor += factor, above.factor += factor; }
};

RandomMasks::RandomMasks(const NoiseMap& noise, const Readers& readers,
                         const std::set<std::int32_t>& outputs)
    : graph_(noise.graph()),
      noise_(noise),
      readers_(readers),
      outputs_(outputs),
      fed_(noise.graph().values.size(), false) {
  for (const NamedValue& input : graph_.inputs)
    fed_[static_cast<std::size_t>(input.value.index)] = true;
  for (const Node& node : graph_.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input && fed_[static_cast<std::size_t>(input.index)];
    });
    for (const ValueId output : node.outputs) {
      if (output) fed_[static_cast<std::size_t>(output.index)] = any;
    }
  }
}

NodeId RandomMasks::only_reader(ValueId value) const {
  const auto& readers = readers_[static_cast<std::size_t>(value.index)];
  return readers.size() == 1 && !outputs_.contains(value.index) ? readers[0] : NodeId{};
}

ScaledValue RandomMasks::scaled(ValueId value) const {
  ScaledValue result{value, 1};
  for (int depth = 0; depth < 8; ++depth) {
    const NodeId id = graph_.value(result.x).producer;
    if (!id) break;
    const Node& node = graph_.node(id);
    const std::string_view op = node.op->name;
    if (op == "Identity" || op == "StopGradient") {
      result.x = node.inputs[0];
      continue;
    }
    if (op != "Mul" && op != "Div") break;
    const auto right = noise_.number(node.inputs[1]), left = noise_.number(node.inputs[0]);
    if (right && *right != 0) {
      result = {node.inputs[0], op == "Mul" ? result.factor * *right : result.factor / *right};
    } else if (left && op == "Mul") {
      result = {node.inputs[1], result.factor * *left};
    } else {
      break;
    }
  }
  return result;
}

std::optional<MaskedPlace> RandomMasks::find(NodeId source, NodeId meeting,
                                             const Noise& mask) const {
  const Node& node = graph_.node(meeting);
  Followed at;
  if (node.op->name == "Mul") {
    at.x = node.inputs[noise_.find(node.inputs[0]) == &mask ? 1 : 0];
    at.below.factor = mask.first, at.above.factor = mask.second;
  } else {
    const auto then = noise_.number(node.inputs[1]), otherwise = noise_.number(node.inputs[2]);
    if (!then == !otherwise) return std::nullopt;
    at.x = node.inputs[then ? 2 : 1];
    const Case fixed{0, then ? *then : *otherwise}, kept{1, 0};
    const bool fixed_below = (mask.first != 0) == then.has_value();
    at.below = fixed_below ? fixed : kept;
    at.above = fixed_below ? kept : fixed;
  }
  if (noise_.is_derived(at.x)) return std::nullopt;
  at.below.share = mask.share, at.above.share = 1 - mask.share;
  at.read = {meeting};
  at.value = node.outputs[0];
  std::optional<MaskedPlace> bare;
  for (;;) {
    using Law = MaskedPlace::Law;
    if (auto place = held(Law::dropout, is_dropout, at)) return place;
    if (auto place = held(Law::alpha_dropout, is_alpha_dropout, at)) return place;
    if (auto place = held(Law::bare, is_bare_mask, at)) bare = std::move(place);
    const NodeId next = only_reader(at.value);
    if (!next || !follow(source, mask, next, at)) return bare;
    at.value = graph_.node(next).outputs[0];
  }
}

template <class Law>
std::optional<MaskedPlace> RandomMasks::held(MaskedPlace::Law name, const Law& law,
                                             const Followed& at) const {
  for (const ScaledValue& from : {ScaledValue{at.x, 1}, scaled(at.x)}) {
    const bool keeps_below = law(at.above, at.below, from.factor);
    if (!keeps_below && !law(at.below, at.above, from.factor)) continue;
    if (graph_.type(at.value) != graph_.type(from.x) || graph_.is_constant(from.x)) continue;
    const double share = (keeps_below ? at.below : at.above).share;
    return MaskedPlace{name, at.value, from.x, keeps_below, share, at.read};
  }
  return std::nullopt;
}

/// Follows the value through its reader; false where that combines it with more than numbers and x.
bool RandomMasks::follow(NodeId source, const Noise& mask, NodeId next, Followed& at) const {
  const Node& node = graph_.node(next);
  const std::string_view op = node.op->name;
  if (op == "Identity") return true;
  if (op == "Neg") {
    at.times(-1);
    return true;
  }
  if (node.inputs.size() != 2) return false;
  const bool is_first = node.inputs[0] == at.value;
  const ValueId other = node.inputs[is_first ? 1 : 0];
  if (other == at.value) return false;
  if (const Noise* more = noise_.find(other); more != nullptr && more->source == source) {
    if (!more->goes_with(mask) || (op != "Add" && op != "Mul")) return false;
    for (auto [c, number] :
         {std::pair{&at.below, more->first}, std::pair{&at.above, more->second}}) {
      if (op == "Add") c->shift += number;
      if (op == "Mul") c->factor *= number, c->shift *= number;
    }
    at.read.push_back(next);
    return true;
  }
  const ScaledValue more = scaled(other), x = scaled(at.x);
  const bool is_of_x = more.x == x.x;
  const auto number = noise_.number(other);
  if ((op == "Add" || op == "Sub") && (is_of_x || number)) {
    if (op == "Sub" && !is_first) at.times(-1);
    const double sign = op == "Sub" && is_first ? -1 : 1;
    if (is_of_x)
      at.plus_x(sign * more.factor / x.factor);
    else
      at.plus(sign * *number);
    return true;
  }
  if (!number) return false;
  if (op == "Mul")
    at.times(*number);
  else if (op == "Div" && is_first && *number != 0)
    at.times(1 / *number);
  else
    return false;
  return true;
}

bool RandomMasks::agree(const std::vector<MaskedPlace>& places) const {
  const auto is_bare = [](const MaskedPlace& place) { return place.law == MaskedPlace::Law::bare; };
  const SumTerms sums(noise_, readers_);
  return std::all_of(places.begin(), places.end(), [&](const MaskedPlace& place) {
    const MaskedPlace& first = places.front();
    if (place.keeps_below != first.keeps_below || is_bare(place) != is_bare(first)) return false;
    if (!is_bare(place)) return true;
    return place.share == first.share && fed_[static_cast<std::size_t>(place.instead.index)] &&
           !sums.goes_over(place.value, place.instead);
  });
}

}  // namespace tandem
