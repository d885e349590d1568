#include "importer/operators/all.h"

#include <string_view>
#include <unordered_map>

namespace tandem::importer {

const std::vector<Lowering>& all_lowerings() {
  static const std::vector<Lowering> list = [] {
    std::vector<Lowering> all;
    add_elementwise(all);
    add_constants(all);
    add_moves(all);
    add_slicing(all);
    add_indexing(all);
    add_resize(all);
    add_grid_sample(all);
    add_einsum(all);
    add_sequences(all);
    add_reductions(all);
    add_products(all);
    add_pooling(all);
    add_normalization(all);
    add_instance_normalization(all);
    add_softmax_and_losses(all);
    add_random(all);
    add_attention(all);
    add_recurrent(all);
    return all;
  }();
  return list;
}

Lower find_lowering(const std::string& op) {
  static const std::unordered_map<std::string_view, Lower> by_name = [] {
    std::unordered_map<std::string_view, Lower> map;
    for (const Lowering& lowering : all_lowerings()) map.emplace(lowering.op, lowering.lower);
    return map;
  }();
  const auto at = by_name.find(op);
  return at == by_name.end() ? nullptr : at->second;
}

bool is_setting(const std::string& op, std::size_t input) {
  struct Settings {
    std::size_t first, last;
  };
  static const std::unordered_map<std::string_view, Settings> settings{
      {"Clip", {1, 2}},
      {"ConstantOfShape", {0, 0}},
      {"CumSum", {1, 1}},
      {"Dropout", {1, 2}},
      {"Expand", {1, 1}},
      {"If", {0, 0}},
      {"OneHot", {1, 1}},
      {"Pad", {1, 3}},
      {"Range", {0, 2}},
      {"ReduceL1", {1, 1}},
      {"ReduceL2", {1, 1}},
      {"ReduceLogSum", {1, 1}},
      {"ReduceLogSumExp", {1, 1}},
      {"ReduceMax", {1, 1}},
      {"ReduceMean", {1, 1}},
      {"ReduceMin", {1, 1}},
      {"ReduceProd", {1, 1}},
      {"ReduceSum", {1, 1}},
      {"ReduceSumSquare", {1, 1}},
      {"Reshape", {1, 1}},
      {"Resize", {1, 3}},
      {"SequenceAt", {1, 1}},
      {"Slice", {1, 4}},
      {"Split", {1, 1}},
      {"SplitToSequence", {1, 1}},
      {"Squeeze", {1, 1}},
      {"Tile", {1, 1}},
      {"TopK", {1, 1}},
      {"Trilu", {1, 1}},
      {"Unsqueeze", {1, 1}},
      {"Upsample", {1, 1}},
  };
  const auto at = settings.find(op);
  return at != settings.end() && input >= at->second.first && input <= at->second.last;
}

}  // namespace tandem::importer
