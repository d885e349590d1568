// What people have to know of a model before they train or use it: random numbers that stay on,
// buffers, normalization that the file has in two modes, weights that no step changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "importer/import_graph.h"

namespace tandem {

struct ModelNotice {
  // "random_on", "random_off", "buffers", "possible_buffers", "constant_weights", "unread_inputs",
  // "batch_norm_modes", "moving_statistics" (of frozen parameters), "quantized",
  // "packed_weights"
  std::string kind;
  std::string text;
  std::string fix;                 // the key to write, or what else helps
  std::vector<std::string> names;  // operators or parameters that it is about
  bool is_warning = false;
  /// For the notice `quantized`: how many numbers train, and how many are weights.
  std::int64_t trained = 0, all = 0;
};

/// `is_settled`: parameters that the user does not train anyway; they are no possible buffers.
std::vector<ModelNotice> model_notices(
    const ImportResult& model, const std::function<bool(const ParameterSummary&)>& is_settled = {});

/// "TEXT; FIX"
std::string in_one_line(const ModelNotice& notice);

}  // namespace tandem
