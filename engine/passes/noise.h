// Values of a graph whose elements are functions of nothing but random numbers, and how they are
// distributed.
#pragma once

#include <optional>
#include <unordered_map>

#include "engine/graph/graph.h"

namespace tandem {

/// The distribution of a single element; all elements that one operator draws have the same one.
struct Noise {
  enum class Form {
    uniform,  // first + second u with u from 0 to below 1
    normal,   // first + second z with the standard normal z
    mask      // first where u < share, else second; 1 and 0 for bool
  };
  Form form = Form::uniform;
  NodeId source;  // the node that draws u or z
  double first = 0, second = 0;
  double share = 0;

  double mean() const;
  bool is_mask() const { return form == Form::mask; }
  /// Whether both are masks of one draw, so that their cases are the same.
  bool goes_with(const Noise& other) const {
    return is_mask() && other.is_mask() && source == other.source && share == other.share;
  }
};

class NoiseMap {
 public:
  explicit NoiseMap(const Graph& graph);

  const Graph& graph() const { return graph_; }
  /// Null where the value depends on more than random numbers, or has no known form.
  const Noise* find(ValueId value) const;
  /// Whether the value depends on nothing but random numbers and constants, in whatever form.
  bool is_derived(ValueId value) const { return value && derived_.contains(value.index); }
  /// A value that is the same number everywhere, known before the run.
  std::optional<double> number(ValueId value) const;

 private:
  std::optional<Noise> of(NodeId id) const;
  std::optional<Noise> compared(const Node& node, const Noise& noise, bool noise_first,
                                double number) const;

  const Graph& graph_;
  std::unordered_map<std::int32_t, Noise> noise_;
  std::unordered_map<std::int32_t, NodeId> derived_;
  mutable std::unordered_map<std::int32_t, std::optional<double>> numbers_;
};

}  // namespace tandem
