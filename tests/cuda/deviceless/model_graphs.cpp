// Shapes of ResNet-50, BERT-base and GPT.
#include "tests/cuda/deviceless/model_graphs.h"

#include <functional>

#include "kernels/cuda/networks/attention_graph.h"
#include "kernels/cuda/networks/convolution_graph.h"

namespace tandem::testing {
namespace {

DType dtype_of(Numbers numbers) {
  switch (numbers) {
    case Numbers::float16:
      return DType::float16;
    case Numbers::bfloat16:
      return DType::bfloat16;
    default:
      return DType::float32;
  }
}

/// Fills graphs and rules of all types.
Question question(std::string section, std::string operation, int uses,
                  const std::function<cuda::NetworkGraph(Numbers)>& graph,
                  bool deterministic = true) {
  Question q{.section = std::move(section), .operation = std::move(operation), .uses = uses};
  for (const Numbers numbers : all_numbers) {
    const auto at = static_cast<std::size_t>(numbers);
    q.graphs[at] = graph(numbers);
    q.rules[at].tensor_cores = numbers == Numbers::tf32;
    q.rules[at].deterministic = deterministic;
  }
  return q;
}

struct Layer {
  int uses;
  std::int64_t in, out, kernel, stride, extent;  // extent: of the map that it reads
  bool has_residual;                             // a residual is added directly after it
};

// ResNet version 1.5: the stride is that of a block's 3 x 3 convolution.
constexpr Layer layers[] = {
    {1, 3, 64, 7, 2, 224, false},    {1, 64, 64, 1, 1, 56, false},
    {3, 64, 64, 3, 1, 56, false},    {4, 64, 256, 1, 1, 56, true},
    {2, 256, 64, 1, 1, 56, false},   {1, 256, 128, 1, 1, 56, false},
    {1, 128, 128, 3, 2, 56, false},  {3, 128, 128, 3, 1, 28, false},
    {4, 128, 512, 1, 1, 28, true},   {1, 256, 512, 1, 2, 56, false},
    {3, 512, 128, 1, 1, 28, false},  {1, 512, 256, 1, 1, 28, false},
    {1, 256, 256, 3, 2, 28, false},  {5, 256, 256, 3, 1, 14, false},
    {6, 256, 1024, 1, 1, 14, true},  {1, 512, 1024, 1, 2, 28, false},
    {5, 1024, 256, 1, 1, 14, false}, {1, 1024, 512, 1, 1, 14, false},
    {1, 512, 512, 3, 2, 14, false},  {2, 512, 512, 3, 1, 7, false},
    {3, 512, 2048, 1, 1, 7, true},   {1, 1024, 2048, 1, 2, 14, false},
    {2, 2048, 512, 1, 1, 7, false},
};

cuda::ConvolutionShape shape_of(const Layer& layer, std::int64_t batch, Numbers numbers) {
  cuda::ConvolutionShape c;
  const std::int64_t pad = layer.kernel / 2;
  const std::int64_t to = (layer.extent + 2 * pad - layer.kernel) / layer.stride + 1;
  c.dtype = dtype_of(numbers);
  c.x = {batch, layer.in, layer.extent, layer.extent};
  c.weight = {layer.out, layer.in, layer.kernel, layer.kernel};
  c.y = {batch, layer.out, to, to};
  c.steps = {{layer.stride, layer.stride}, {1, 1}, {pad, pad}, {pad, pad}};
  c.is_channels_last = numbers != Numbers::float32;  // as the kernels prefer
  return c;
}

std::string text_of(const Layer& layer) {
  const auto number = [](std::int64_t x) { return std::to_string(x); };
  return number(layer.kernel) + " × " + number(layer.kernel) +
         (layer.stride > 1 ? ", stride " + number(layer.stride) : "") + ", " + number(layer.in) +
         " to " + number(layer.out) + ", map " + number(layer.extent);
}

cuda::AttentionShape heads(Numbers numbers, std::int64_t batch, std::int64_t sequence,
                           std::int64_t row) {
  constexpr std::int64_t head = 64, count = 12;
  cuda::AttentionShape n =
      cuda::dense_attention(dtype_of(numbers), batch, count, sequence, sequence, head, head);
  const std::vector<std::int64_t> strides{sequence * row, head, row, 1};
  n.q = n.k = n.v = n.dq = n.dk = n.dv = strides;
  n.y = n.dy = {sequence * count * head, head, count * head, 1};
  return n;
}

/// Adds the forward pass and both gradients.
void add_attention(std::vector<Question>& to, const std::string& section, const std::string& text,
                   const std::function<cuda::AttentionShape(Numbers)>& shape) {
  const auto own = [](Numbers numbers) {
    return numbers == Numbers::float32 || numbers == Numbers::tf32;
  };
  to.push_back(question(section, text, 12, [&](Numbers numbers) {
    return own(numbers) ? cuda::NetworkGraph() : attention_graph(shape(numbers));
  }));
  for (const bool deterministic : {true, false}) {
    to.push_back(question(
        section, "gradient, " + std::string(deterministic ? "" : "not ") + "deterministic; " + text,
        12,
        [&](Numbers numbers) {
          if (own(numbers)) return cuda::NetworkGraph();
          cuda::AttentionShape n = shape(numbers);
          n.is_deterministic = deterministic;
          return attention_gradient_graph(n);
        },
        deterministic));
  }
}

}  // namespace

std::string name_of(Numbers numbers) {
  switch (numbers) {
    case Numbers::float16:
      return "float16";
    case Numbers::bfloat16:
      return "bfloat16";
    case Numbers::float32:
      return "float32";
    case Numbers::tf32:
      break;
  }
  return "float32 by TF32";
}

std::vector<Question> resnet50(std::int64_t batch) {
  const std::string model = "ResNet-50, batch " + std::to_string(batch);
  std::vector<Question> result;
  const auto add = [&](const char* section, const Layer& layer, const std::string& text,
                       auto edit) {
    result.push_back(question(model + ": " + section, text, layer.uses, [&](Numbers numbers) {
      cuda::ConvolutionShape c = shape_of(layer, batch, numbers);
      edit(c);
      return convolution_graph(c);
    }));
  };
  for (const Layer& layer : layers)
    add("forward", layer, text_of(layer), [](cuda::ConvolutionShape&) {});
  for (const Layer& layer : layers) {
    if (&layer == layers) continue;  // the image needs no gradient
    add("gradient of the input", layer, text_of(layer),
        [](cuda::ConvolutionShape& c) { c.pass = cuda::ConvolutionPass::input; });
  }
  for (const Layer& layer : layers)
    add("gradient of the weight", layer, text_of(layer),
        [](cuda::ConvolutionShape& c) { c.pass = cuda::ConvolutionPass::weight; });
  for (const Layer& layer : layers) {
    const bool residual = layer.has_residual;
    add("forward with its epilogue, where normalisation is folded into the weight", layer,
        text_of(layer) + (residual ? ", bias, residual, Relu" : ", bias, Relu"),
        [residual](cuda::ConvolutionShape& c) {
          c.has_bias = true;
          c.has_residual = residual;
          c.activation = Activation::relu;
        });
  }
  return result;
}

std::vector<Question> bert_base(std::int64_t batch, std::int64_t sequence) {
  std::vector<Question> result;
  const std::string section = "BERT-base, batch " + std::to_string(batch);
  for (const bool masked : {true, false}) {
    const std::string text =
        "sequence " + std::to_string(sequence) + (masked ? ", masked" : ", no mask");
    add_attention(result, section, text, [&](Numbers numbers) {
      cuda::AttentionShape n = heads(numbers, batch, sequence, 768);
      if (masked) {
        n.mask = {batch, 1, 1, sequence};
        n.mask_strides = {sequence, sequence, sequence, 1};
      }
      return n;
    });
  }
  return result;
}

std::vector<Question> gpt(std::int64_t batch, std::int64_t sequence) {
  std::vector<Question> result;
  add_attention(result, "GPT, 12 layers, 768 wide, batch " + std::to_string(batch),
                "sequence " + std::to_string(sequence) + ", causal", [&](Numbers numbers) {
                  cuda::AttentionShape n = heads(numbers, batch, sequence, 3 * 768);
                  n.is_causal = true;
                  return n;
                });
  return result;
}

std::vector<Question> all_questions() {
  std::vector<Question> all = resnet50(256);
  for (std::vector<Question> more : {bert_base(32, 128), bert_base(32, 512), gpt(8, 1024)}) {
    for (Question& q : more) all.push_back(std::move(q));
  }
  return all;
}

}  // namespace tandem::testing
