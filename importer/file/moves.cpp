#include "importer/file/moves.h"

#include <string>
#include <unordered_set>

#include "importer/paths.h"

namespace tandem::importer {

bool is_move(const onnx::NodeProto& node) {
  static const std::unordered_set<std::string> moves{"Cast",    "Flatten",   "Identity", "Reshape",
                                                     "Squeeze", "Transpose", "Unsqueeze"};
  return domain_of(node.domain()).empty() && moves.count(node.op_type()) > 0;
}

}  // namespace tandem::importer
