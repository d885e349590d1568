// How each ONNX operator becomes operators of the engine: one function per family member.
#pragma once

#include <string>
#include <vector>

#include "importer/node_context.h"

namespace tandem::importer {

/// Reads `node` in whatever version its operator set means, makes nodes, sets the outputs.
using Lower = void (*)(NodeContext& node);

struct Lowering {
  const char* op;  // ONNX's name, domain ai.onnx
  Lower lower;
};

/// All of them, in the order of the families.
const std::vector<Lowering>& all_lowerings();
Lower find_lowering(const std::string& op);  // null if there is none

/// True where an operator takes this input as a setting: it must be known before the run, so that
/// an initializer in that place is no parameter.
bool is_setting(const std::string& op, std::size_t input);

// The families; each file appends its own.
void add_elementwise(std::vector<Lowering>& list);
void add_constants(std::vector<Lowering>& list);
void add_moves(std::vector<Lowering>& list);
void add_slicing(std::vector<Lowering>& list);
void add_indexing(std::vector<Lowering>& list);
void add_resize(std::vector<Lowering>& list);
void add_grid_sample(std::vector<Lowering>& list);
void add_einsum(std::vector<Lowering>& list);
void add_sequences(std::vector<Lowering>& list);
void add_reductions(std::vector<Lowering>& list);
void add_products(std::vector<Lowering>& list);
void add_pooling(std::vector<Lowering>& list);
void add_normalization(std::vector<Lowering>& list);
void add_instance_normalization(std::vector<Lowering>& list);
void add_softmax_and_losses(std::vector<Lowering>& list);
void add_random(std::vector<Lowering>& list);
void add_attention(std::vector<Lowering>& list);
void add_recurrent(std::vector<Lowering>& list);

}  // namespace tandem::importer
