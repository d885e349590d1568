// Plain adapters of low rank (LoRA, Hu et al. 2021), which the other kinds change.
//
// y = x W + scale (dropout(x) A) B. A and B have the orientation of the weight, and their product
// its shape:
//   [in, out], as MatMul reads it:   a [in, r], b [r, out],          a b
//   [out, in], as Gemm with transB:  a [r, in], b [out, r],          b a
//   [out, in, k...], as Conv:        a [r, in, k...], b [out, r, 1...], b a
#include <algorithm>
#include <cmath>

#include "engine/formats/transposed_matrix.h"
#include "engine/graph/rewrite.h"
#include "engine/passes/adapters/adapter_kind.h"

namespace tandem {
namespace {

/// PEFT's kaiming_uniform with a = sqrt(5), which is uniform within 1 / sqrt(fan_in).
HostTensor start_of_a(const AdaptedWeight& weight, const HostTensor&, const DrawUniform& draw) {
  Shape shape = weight.type.shape;
  shape[weight.out_axis()] = weight.rule.rank;
  return draw(weight.a(), {weight.type.dtype, std::move(shape)},
              1 / std::sqrt(static_cast<double>(weight.fan_in())));
}

HostTensor start_of_b(const AdaptedWeight& weight, const HostTensor&, const DrawUniform&) {
  Shape shape(weight.type.shape.size(), 1);
  shape[1 - weight.out_axis()] = weight.rule.rank;
  shape[weight.out_axis()] = weight.outputs();
  return HostTensor(TensorType{weight.type.dtype, std::move(shape)});
}

// b of [r, out] and a of [in, r] are the transposes of PEFT's matrices.
HostTensor peft_matrix(const AdaptedWeight& weight, const HostTensor& part) {
  return weight.out_first ? part : transposed_matrix(part.converted(DType::float32));
}

/// The node, plus what the adapters make.
void add_part(GraphRewrite& to, NodeId product, AdapterValues& adapter) {
  GraphBuilder& g = to.builder();
  const Node& node = to.from().node(product);
  to.copy(product);
  const ValueId x = dropped(g, to.mapped(node.inputs[0]), adapter);
  const ValueId own = to.mapped(node.outputs[0]);
  g.rename(own, to.from().value(node.outputs[0]).name + "/base");
  to.replace(node.outputs[0], g.add(own, low_rank_product(g, node, x, adapter)));
}

void merge_product(const AdaptedWeight& weight, std::span<double> w,
                   const std::vector<HostTensor>& parts) {
  const HostTensor a = parts[0].converted(DType::float64), b = parts[1].converted(DType::float64);
  const std::span<const double> left = (weight.out_first ? b : a).as<double>();   // [rows, r]
  const std::span<const double> right = (weight.out_first ? a : b).as<double>();  // [r, columns]
  const auto rows = static_cast<std::size_t>(weight.type.shape[0]);
  const auto rank = static_cast<std::size_t>(weight.rule.rank);
  const std::size_t columns = rows == 0 ? 0 : w.size() / rows;
  const double scale = weight.rule.scale();
  std::vector<double> line(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    std::fill(line.begin(), line.end(), 0.0);
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = left[i * rank + k];
      for (std::size_t j = 0; j < columns; ++j) line[j] += factor * right[k * columns + j];
    }
    for (std::size_t j = 0; j < columns; ++j) w[i * columns + j] += scale * line[j];
  }
}

HostTensor scaled(const HostTensor& from, double scale) {
  HostTensor to = from.converted(DType::float64).clone();
  for (double& x : to.as<double>()) x *= scale;
  return to.converted(from.dtype());
}

/// Operators read matrices as [in, r] and [r, out], whatever the orientation of the weight.
void write_product(const AdaptedWeight& weight, const std::vector<HostTensor>& parts,
                   WeightAdapters& to) {
  const bool is_conv = weight.type.shape.size() > 2, turns = weight.out_first && !is_conv;
  const HostTensor a = turns ? transposed_matrix(parts[0]) : parts[0];
  const HostTensor b = turns ? transposed_matrix(parts[1]) : parts[1];
  const std::string_view op = is_conv ? "Conv" : "MatMul";
  to.operands = {{"lora_a", a, is_conv ? 0 : 1},
                 {"lora_b", to.are_inputs ? scaled(b, to.scale) : b, is_conv ? 1 : 0}};
  to.steps = {{op, {"x", "lora_a"}, "lora_inner", is_conv},
              {op, {"lora_inner", "lora_b"}, "lora_outer"}};
}

}  // namespace

ValueId dropped(GraphBuilder& g, ValueId x, const AdapterValues& adapter) {
  const double ratio = adapter.weight.rule.dropout;
  return adapter.training && ratio > 0 ? g.add_node("Dropout", {x}, {{"ratio", ratio}}) : x;
}

ValueId low_rank_product(GraphBuilder& g, const Node& node, ValueId x,
                         const AdapterValues& adapter) {
  const AdaptedWeight& weight = adapter.weight;
  const ValueId a = adapter.parts[0], b = adapter.parts[1];
  const ValueId scale = g.scalar(weight.rule.scale(), g.dtype(x));
  if (node.op->name == "Conv") {
    const ValueId inner = g.add_node("Conv", {x, a}, node.attributes);
    const std::size_t spatial = weight.type.shape.size() - 2;
    const Ints ones(spatial, 1), zeros(2 * spatial, 0);
    return g.add_node("Conv", {g.mul(inner, scale), b},
                      {{"strides", ones}, {"pads", zeros}, {"dilations", ones}});
  }
  const Ints swap{1, 0};
  if (weight.out_first) {
    const ValueId inner = g.matmul(x, g.transpose(a, swap));
    return g.matmul(g.mul(inner, scale), g.transpose(b, swap));
  }
  return g.matmul(g.mul(g.matmul(x, a), scale), b);
}

AdapterKind lora() {
  const AdapterPart a{
      .name = "lora_a", .start = start_of_a, .peft_name = "lora_A.weight", .peft = peft_matrix};
  const AdapterPart b{.name = "lora_b",
                      .start = start_of_b,
                      .starts_at_zero = true,
                      .peft_name = "lora_B.weight",
                      .peft = peft_matrix};
  return {
      .name = "lora",
      .scale = [](const AdapterRule& rule) { return rule.alpha / static_cast<double>(rule.rank); },
      .parts = {a, b},
      .add = add_part,
      .merge = merge_product,
      .write = write_product,
      .peft = {.type = "LORA",
               .alpha = "lora_alpha",
               .dropout = "lora_dropout",
               .constants = R"({"bias":"none","fan_in_fan_out":false,"init_lora_weights":true})"}};
}

}  // namespace tandem
