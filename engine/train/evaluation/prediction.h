// Runs a model in inference form over samples for values of its graph, micro-batch by micro-batch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/sample_stream.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

/// Programs for whole micro-batches and for the last partial one; they share State and arenas.
class Prediction {
 public:
  /// `outputs` name outputs of the graph that `the model` gives; index i of their axis 0 is
  /// sample i. Throws Error{usage} where one is not there, or has no such axis.
  Prediction(const RunConfig& config, const RunParts& parts, std::vector<std::string> outputs,
             StateStore& states, std::shared_ptr<Arenas> arenas);

  /// The fed inputs that the outputs depend on.
  std::vector<std::string> inputs() const;
  /// Type of an output, for a whole micro-batch.
  const TensorType& type(std::size_t output) const;

  /// Makes the program for that many samples, with its states where they are the first. Throws
  /// Error{usage} where the source lacks an input, or has it in another type.
  void prepare(const DataSource& source, std::int64_t samples);
  /// One value per output, valid until the next call. Throws Error{data} with what kernels found.
  const std::vector<HostTensor>& run(const SampleRange& samples);

 private:
  struct MicroBatch {
    BoundProgram bound;
    std::vector<int> fields;   // fields of the source that are fed
    std::vector<int> outputs;  // outputs of the program
    std::uint64_t ticket = 0;
  };
  Graph pass_graph(std::int64_t samples) const;
  void fill(MicroBatch& micro_batch, const SampleRange& samples) const;

  const RunConfig& config_;
  const RunParts& parts_;
  std::vector<std::string> names_;
  StateStore& states_;
  std::shared_ptr<Arenas> arenas_;
  Graph whole_;
  std::map<std::int64_t, MicroBatch> micro_batches_;  // by samples
  std::vector<HostTensor> values_;
};

}  // namespace tandem
