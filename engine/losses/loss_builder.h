// What a loss builds its graph with: the term's values and labels, made to fit each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/keys/key_visitor.h"
#include "engine/graph/error.h"
#include "engine/losses/loss.h"

namespace tandem {

Ints all_axes(std::size_t rank);

/// Scores [N, C, d..] and integer labels [N, d..]: where the classes were on the last axis, all
/// axes before it are N.
struct ClassLabels {
  ValueId scores, labels;
  std::int64_t classes = 0;
  Shape positions;  // the labels' shape as given
};

/// Where the samples of this rank are in their batch. In an evaluation the samples that one program
/// computes are the batch.
struct WholeBatch {
  std::int64_t first = 0;   // the number of this rank's first sample
  bool is_complete = true;  // false: a micro-batch, which lacks samples of its step
  /// A value [own samples, ..] as [samples of all ranks, ..]; empty: the own samples are all.
  std::function<ValueId(ValueId)> gather;
};

/// What a term names, as values of the graph.
struct TermValues {
  std::vector<ValueId> values;  // as the kind lists them
  ValueId labels;               // unset where the kind has none
  std::vector<ValueId> fields;  // as the kind lists them; unset where the term does not name one
};

class LossBuilder {
 public:
  LossBuilder(GraphBuilder& graph, const LossTerm& t, TermValues named, const WholeBatch& of_term,
              std::vector<Diagnostic>& problems, std::vector<std::string>& notes)
      : g(graph),
        term(t),
        values(std::move(named.values)),
        labels(named.labels),
        fields(std::move(named.fields)),
        batch(of_term),
        problems_(problems),
        notes_(notes) {}

  GraphBuilder& g;
  const LossTerm& term;
  const std::vector<ValueId> values;
  const ValueId labels;
  const std::vector<ValueId> fields;
  const WholeBatch& batch;

  /// The term's options, which are those of its kind.
  template <class Options>
  const Options& options() const {
    return term.options.as<Options>();
  }

  /// A value [own samples, ..] for the samples of all ranks.
  ValueId of_all_samples(ValueId x) { return batch.gather ? batch.gather(x) : x; }

  /// Reports a mistake of the term; the caller gives up by returning nothing.
  void fail(const std::string& message, std::string expected = "", std::string got = "",
            std::string fix = "");

  /// Says what was chosen where a term leaves a choice.
  void note(const std::string& text);

  /// Whether all values have one shape, of this rank or more; reported where not.
  bool same_shapes(std::size_t least_rank);
  /// The labels in the type and shape of x, where those agree but for axes of length 1.
  std::optional<ValueId> labels_like(ValueId x);
  /// The labels as class numbers of these scores, the class axis being the last or axis 1: where
  /// both fit, the last is taken, which is noted.
  std::optional<ClassLabels> class_labels(ValueId scores);
  /// A list of numbers as a constant of this type; its axis is `axis` of `rank`.
  ValueId along_axis(const std::vector<double>& numbers, std::size_t axis, std::size_t rank,
                     DType dtype);

  // Arithmetic with numbers.
  ValueId times(ValueId x, double factor) { return g.mul(x, g.scalar(factor, g.dtype(x))); }
  ValueId plus(ValueId x, double number) { return g.add(x, g.scalar(number, g.dtype(x))); }
  ValueId one_minus(ValueId x) { return g.sub(g.scalar(1, g.dtype(x)), x); }
  ValueId op(std::string_view name, ValueId x) { return g.add_node(name, {x}); }
  ValueId clip(ValueId x, double low, double high);
  ValueId power(ValueId x, double exponent);  // x itself for 1

 private:
  std::vector<Diagnostic>& problems_;
  std::vector<std::string>& notes_;
};

/// The binary cross entropy of logits x and labels z (binary_cross_entropy.cpp).
ValueId logit_cross_entropy(LossBuilder& b, ValueId x, ValueId z);

}  // namespace tandem
