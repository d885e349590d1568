// How a model says itself that it is trained: the step of ONNX's training_info, from its gradients
// on. What comes before them is forward graph.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// An input of TrainingAlgorithm::graph that the forward graph has.
struct AlgorithmInput {
  enum class From : std::uint8_t { output, input, state };
  From from = From::output;
  std::string name;  // the output, input or state
  ValueId value;     // the input
};

/// dx[i] is the derivative of y, summed over its elements, by xs[i]: an input of the graph; -1
/// where it is not needed.
struct AlgorithmGradient {
  std::string path;
  ValueId y;
  std::vector<ValueId> xs, dx;
};

/// The step of one parameter by an update of the engine. Nodes of the graph compute the same.
struct AlgorithmUpdate {
  std::string op;  // "AdamUpdate"
  Attributes settings;
  ValueId lr, step, gradient;          // float32 and int64 scalars; the gradient of the parameter
  std::vector<ValueId> before, after;  // the parameter and its states
};

/// What a state holds after the step.
struct AlgorithmWrite {
  std::string state;
  ValueId value;
};

struct TrainingAlgorithm {
  Graph graph;  // states: those that the forward graph does not have
  std::vector<AlgorithmInput> inputs;
  std::vector<AlgorithmGradient> gradients;
  std::vector<AlgorithmUpdate> updates;
  std::vector<AlgorithmWrite> writes;
  std::string loss;                  // an output of the forward graph; "": nothing is derived
  std::vector<std::string> outputs;  // the model's own outputs of the forward graph
  /// Computes from nothing what states hold before the first step: outputs have their names.
  Graph initialization;

  /// "3 gradients of 'loss', 4 updates, 9 states": for people.
  std::string summary() const;
};

}  // namespace tandem
