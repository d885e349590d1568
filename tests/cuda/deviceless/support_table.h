// cuDNN's answers to the questions of model_graphs.h as Markdown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/libraries.h"
#include "tests/cuda/deviceless/described_gpus.h"
#include "tests/cuda/deviceless/model_graphs.h"

namespace tandem::testing {

/// The real cuDNN over a driver without a GPU.
struct DevicelessCudnn {
  std::shared_ptr<cuda::Libraries> libraries;
  const cuda::Cudnn* table = nullptr;
  std::string problem;  // why it cannot be used; "" if it can

  std::string version() const;  // "9.19.0"
};
DevicelessCudnn open_deviceless_cudnn();

/// Makes the table; asks cuDNN only once about the same graph.
class SupportTable {
 public:
  explicit SupportTable(const cuda::Cudnn& cudnn);
  /// The table's line for a question.
  std::string line(const Question& question);
  /// How many graphs of the lines so far were accepted, and how many cuDNN is not asked about.
  std::string summary() const;
  /// The head of a table.
  static std::string head();

 private:
  struct Count {
    int asked = 0, accepted = 0, own = 0;
  };
  std::vector<std::unique_ptr<cuda::Plans>> gpus_;
  std::vector<Count> counts_;  // by column
};

/// The first line of the document, which names the version.
std::string title(const std::string& version);

}  // namespace tandem::testing
