// How operators of files become operators of the engine: what the lists all.inl and those of other
// domains (microsoft/list.inl) say about each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "importer/node_context.h"

namespace tandem::importer {

/// Reads `node` in whatever version its operator set means, makes nodes, sets the outputs.
using Lower = void (*)(NodeContext& node);

/// Some of an operator's inputs, one after the other; none unless said.
struct InputRange {
  std::size_t first = 1, last = 0;
  bool has(std::size_t input) const { return input >= first && input <= last; }
};

struct Lowering {
  const char* op = "";  // its name, as `lowering_name` gives it
  Lower lower = nullptr;
  InputRange settings{};           // known before the run: an initializer there is no parameter
  InputRange weights{};            // an initializer there is a weight, whatever else reads it
  InputRange more_weights{};       // more inputs like `weights`
  std::size_t weight_rank = 0;     // least number of axes of a tensor that is a weight there
  InputRange statistics{};         // running statistics: saved, not trained
  bool extends_onnx = false;       // onnxruntime writes it into versions of ai.onnx that lack it
  bool though_deprecated = false;  // ONNX has withdrawn versions of it that files still have
};

/// The lowerings of ai.onnx: the list, then the engine's scalar functions that it does not name.
const std::vector<Lowering>& all_lowerings();
/// The lowerings of another domain ("com.microsoft"), which precedes each name; none for a domain
/// that import does not know.
const std::vector<Lowering>& lowerings_of(std::string_view domain);

/// "Conv", "com.microsoft::FusedConv".
std::string lowering_name(const onnx::NodeProto& node);
const Lowering* find_lowering(const std::string& name);  // null if there is none
/// The operator that `extends_onnx`, by ONNX's name; null if there is none.
const Lowering* find_extension(const std::string& op);

bool is_setting(const std::string& op, std::size_t input);
/// Whether a tensor of `rank` axes is a weight where it is this input.
bool is_weight(const std::string& op, std::size_t input, std::size_t rank);

}  // namespace tandem::importer
