// Random numbers that a network draws only in training: dropout, stochastic depth and noise that
// exporters write as chains of operators, and what evaluation computes in their place.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

/// An operator that draws random numbers, other than Dropout, which has an inference form of its
/// own.
struct RandomUse {
  std::string path, op;  // "stages.1.RandomUniformLike"; "RandomUniformLike"
  std::string kind;      // "stochastic depth", "dropout", …; "" where the form is not known
  ValueId drawn;
  std::string drawn_name;  // the name of the drawn value
  DType dtype = DType::float32;
  bool is_on = true;     // also outside of training; `random_uses` sets it for unknown forms
  bool by_rule = false;  // a rule of the user decides `is_on`

  /// A value that is `instead` outside of training.
  struct Bypass {
    ValueId value, instead;
    std::string name, instead_name;
  };
  std::vector<Bypass> bypasses;
  /// Outside of training, replaces the drawn numbers where there are no bypasses.
  double mean = 0;
};

/// All uses that an output of the graph depends on, in the order of the graph.
///
/// A form is known where it becomes the identity (RReLU: LeakyRelu): x times a mask of zeros and
/// 1 / (share that is kept), whatever the mask's extents and wherever the factor stands; such a
/// mask without the factor; alpha dropout; x plus numbers of mean 0 and a fixed spread; x times
/// numbers of mean 1; PRelu with drawn slopes. A draw that anything else reads as well is unknown;
/// so is one whose masks choose between two values.
std::vector<RandomUse> random_uses(const Graph& graph);

/// The graph outside of training, without the uses that are not on. `uses`: those of this graph.
Graph without_randomness(const Graph& graph, const OperatorSet& operators,
                         const std::vector<RandomUse>& uses);

}  // namespace tandem
