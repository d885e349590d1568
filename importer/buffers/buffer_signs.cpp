#include "importer/buffers/buffer_signs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "importer/buffers/distance_tables.h"
#include "importer/buffers/frozen_norms.h"
#include "importer/buffers/known_values.h"

namespace tandem::importer {
namespace {

/// "mean" of "norm.mean"
std::string last_part(const std::string& name) {
  std::string part = name.substr(name.rfind('.') + 1);
  for (char& c : part) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return part;
}

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Any of the words between underscores.
template <std::size_t n>
bool has_word(std::string_view part, const std::array<std::string_view, n>& words) {
  while (!part.empty()) {
    const std::size_t end = std::min(part.find('_'), part.size());
    if (is_one_of(part.substr(0, end), words)) return true;
    part.remove_prefix(std::min(end + 1, part.size()));
  }
  return false;
}

/// Names that libraries have for buffers and for nothing else.
constexpr std::array<std::string_view, 22> known_names{"inv_freq",
                                                       "original_inv_freq",
                                                       "running_mean",
                                                       "running_var",
                                                       "num_batches_tracked",
                                                       "position_ids",
                                                       "masked_bias",
                                                       "relative_position_index",
                                                       "relative_coords_table",
                                                       "pixel_mean",
                                                       "pixel_std",
                                                       "image_mean",
                                                       "image_std",
                                                       "cos_cached",
                                                       "sin_cached",
                                                       "cos_cache",
                                                       "sin_cache",
                                                       "freqs_cis",
                                                       "anchor_grid",
                                                       "anchors",
                                                       "mel_filters",
                                                       "attention_mask"};
constexpr std::array<std::string_view, 1> mean_words{"mean"};
constexpr std::array<std::string_view, 2> spread_words{"std", "stddev"};
/// What buffers are called, and parameters at times.
constexpr std::array<std::string_view, 24> doubtful_words{
    "mean",   "std",     "var",   "mask",  "temperature", "tau",   "anchor",     "anchors",
    "stride", "strides", "grid",  "prior", "priors",      "sobel", "laplacian",  "gaussian",
    "window", "freq",    "freqs", "bins",  "buffer",      "queue", "thresholds", "threshold"};
/// What else they are called, in the places of weights too: a step moves them without gradients.
constexpr std::array<std::string_view, 8> moving_words{"queue", "center",   "centers",   "running",
                                                       "ema",   "codebook", "codebooks", "bank"};
constexpr std::array<std::string_view, 4> class_weights{"class_weight", "class_weights",
                                                        "pos_weight", "label_weights"};

/// Operators that pass an input on as it is, or scaled by a number.
bool passes_on(const std::string& op) {
  return op == "Cast" || op == "Identity" || op == "Transpose" || op == "Reshape" ||
         op == "Unsqueeze" || op == "Squeeze" || op == "Flatten" || op == "Resize";
}

constexpr const char* wave = "its products go through a cosine, as random frequencies do";

std::string in_words(const char* what, bool sure) {
  return sure ? std::string("it is ") + what : std::string("it may be ") + what;
}

}  // namespace

BufferSigns::BufferSigns(const OnnxFile::Content& file, const std::vector<bool>& needed)
    : file_(file), frozen_affines_(frozen_affines(file, needed)) {
  const onnx::GraphProto& graph = file.model->graph();
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<std::size_t>(n)]) continue;
    const onnx::NodeProto& node = graph.node(n);
    const std::string& op = node.op_type();
    const auto input = [&](int i) { return i < node.input_size() ? node.input(i) : ""; };
    if (op == "Conv" || op == "ConvTranspose") convolved_.insert(input(1));
    if (op == "Div") divisors_.insert(input(1));
    if (op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss")
      loss_weights_.insert(input(2));
  }
  follow_inputs(graph, needed);
  follow_waves(graph, needed);
}

// Initializers whose products with other values go, scaled and shifted perhaps, through a cosine;
// what shifts them, too.
void BufferSigns::follow_waves(const onnx::GraphProto& graph, const std::vector<bool>& needed) {
  std::unordered_map<std::string, std::unordered_set<std::string>> products;  // by value
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    if (!needed[static_cast<std::size_t>(n)] || node.output_size() == 0) continue;
    const std::string& op = node.op_type();
    const bool multiplies = op == "MatMul" || op == "Gemm" || op == "Mul" || op == "Einsum";
    const bool is_shifted = op == "Add" || op == "Concat" || op == "Div";
    std::unordered_set<std::string> of;
    bool is_product = multiplies || passes_on(op);
    for (const std::string& name : node.input()) {
      const auto from = products.find(name);
      if (from != products.end()) of.insert(from->second.begin(), from->second.end());
      is_product = is_product || (is_shifted && from != products.end());
      if (file_.initializers.count(name) > 0) of.insert(name);
    }
    if (op == "Cos") waves_.insert(of.begin(), of.end());
    if (is_product && !of.empty()) products.emplace(node.output(0), std::move(of));
  }
}

// Inputs and what they become by numbers that are subtracted from them and divide them.
void BufferSigns::follow_inputs(const onnx::GraphProto& graph, const std::vector<bool>& needed) {
  std::unordered_map<std::string, std::string> fed;  // value: the mean that it is less, or ""
  const auto is_initializer = [&](const std::string& name) {
    return file_.initializers.count(name) > 0;
  };
  std::unordered_set<std::string> constants;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (!is_initializer(input.name())) fed.emplace(input.name(), "");
  }
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    if (node.output_size() == 0) continue;
    const std::string& op = node.op_type();
    if (op == "Constant") constants.insert(node.output(0));
    if (!needed[static_cast<std::size_t>(n)] || node.input_size() == 0) continue;
    const auto from = fed.find(node.input(0));
    if (from == fed.end()) continue;
    const std::string mean = from->second;
    if (passes_on(op)) fed.emplace(node.output(0), mean);
    if (node.input_size() != 2) continue;
    const std::string& other = node.input(1);
    if (constants.count(other) > 0 && (op == "Div" || op == "Mul"))
      fed.emplace(node.output(0), mean);
    if (!is_initializer(other)) continue;
    if (op == "Sub") {
      means_.emplace(other, false);
      fed.emplace(node.output(0), other);
    } else if (op == "Div") {
      spreads_.emplace(other, !mean.empty());
      if (!mean.empty()) means_[mean] = true;
    } else if (op == "Mul" && !mean.empty()) {  // by 1 / deviation, or by a factor that trains
      spreads_.emplace(other, false);
    }
  }
}

// Modules have sines of weights; what is no module's is perhaps drawn once.
bool BufferSigns::is_wave(const std::string& name) const {
  const std::string part = last_part(name);
  return waves_.count(name) > 0 && part != "weight" && part != "bias";
}

std::optional<BufferSign> BufferSigns::by_name(const std::string& name,
                                               const HostTensor& value) const {
  const std::string part = last_part(name);
  const std::string before = name.substr(0, name.size() - part.size());
  if (is_one_of(part, known_names)) return BufferSign{true, "a buffer's name, '" + part + "'"};
  const bool is_mask = part == "mask" || part.ends_with("_mask");
  if (is_mask && (is_binary(value) || is_additive_mask(value)))
    return BufferSign{true, "a mask, by name and values"};
  // The vectors that spectral_norm keeps next to the weight.
  const auto has = [&](const std::string& other) {
    return file_.initializers.count(before + other) > 0;
  };
  if ((part == "weight_u" || part == "weight_v") && has("weight_orig"))
    return BufferSign{true, "the vector of a spectral norm"};
  const bool is_parametrized = name.ends_with(".0._u") || name.ends_with(".0._v");
  if (is_parametrized && file_.initializers.count(name.substr(0, name.size() - 4) + "original") > 0)
    return BufferSign{true, "the vector of a spectral norm"};
  if (is_one_of(part, class_weights)) return BufferSign{false, "it may be weights of classes"};
  if (has_word(part, doubtful_words) || has_word(part, moving_words))
    return BufferSign{false, "buffers are called '" + part + "'"};
  return std::nullopt;
}

std::optional<BufferSign> BufferSigns::by_place(const std::string& name,
                                                const HostTensor& value) const {
  const std::string part = last_part(name);
  if (loss_weights_.count(name) > 0)
    return BufferSign{true, "the weights of classes of a loss in the model"};
  // A learned shift starts at zeros and a learned scale at ones.
  const bool is_start = is_uniform_tensor(value) && (value.number(0) == 0 || value.number(0) == 1);
  if (is_start) return std::nullopt;
  if (const auto mean = means_.find(name); mean != means_.end()) {
    const bool sure = mean->second || has_word(part, mean_words);
    return BufferSign{sure, in_words("the mean of an input", sure)};
  }
  if (const auto spread = spreads_.find(name); spread != spreads_.end()) {
    const bool sure = spread->second || has_word(part, spread_words);
    return BufferSign{sure, in_words("the deviation of an input", sure)};
  }
  return std::nullopt;
}

std::optional<BufferSign> BufferSigns::find(const std::string& name, const HostTensor& value,
                                            bool is_weight) const {
  if (value.type().elements() == 0 || !is_float(value.dtype())) return std::nullopt;
  if (is_sine_table(value)) return BufferSign{true, "rows of sines and cosines"};
  if (convolved_.count(name) > 0) {
    if (is_derivative_filter(value))
      return BufferSign{true, "kernels of whole numbers that add up to 0, as Sobel's"};
    if (is_smoothing_filter(value))
      return BufferSign{false, "all its kernels are the same, and smooth"};
    const bool is_dfl = name.ends_with("dfl.conv.weight");
    if (is_count(value)) return BufferSign{is_dfl, "it counts 0, 1, 2, …"};
  }
  if (const auto affine = frozen_affines_.find(name); affine != frozen_affines_.end()) {
    return BufferSign{affine->second, affine->second
                                          ? "the affine part of a frozen batch normalization"
                                          : "it is next to running statistics that are constants"};
  }
  constexpr std::int64_t least_of_matrix = 9;
  if (is_weight) {
    const std::string part = last_part(name);
    if (has_word(part, moving_words)) return BufferSign{false, "buffers are called '" + part + "'"};
    if (is_wave(name)) return BufferSign{false, wave};
    const bool is_choice =
        value.shape().size() == 2 && is_binary(value) && value.type().elements() >= least_of_matrix;
    if (is_choice) return BufferSign{false, "a matrix of only zeros and ones, like the identity"};
    return std::nullopt;
  }
  if (is_rotary_frequencies(value)) return BufferSign{true, "the frequencies of rotary embeddings"};
  if (is_additive_mask(value)) return BufferSign{true, "a mask of 0 and large negative numbers"};
  if (is_triangle(value)) return BufferSign{true, "a causal mask of 0 and 1"};
  if (is_window(value)) return BufferSign{true, "a window of Hann's or Hamming's"};
  if (is_count(value)) return BufferSign{true, "it counts 0, 1, 2, …"};
  if (auto sign = by_place(name, value)) return sign;
  if (auto sign = by_name(name, value)) return sign;
  if (is_wave(name)) return BufferSign{false, wave};
  if (is_distance_table(value)) return BufferSign{false, "its numbers only depend on distances"};
  if (is_geometric(value)) return BufferSign{false, "it is a geometric series"};
  if (is_arithmetic(value)) return BufferSign{false, "its numbers are evenly spaced"};
  if (is_binary(value) && value.type().elements() >= 4)
    return BufferSign{false, "it has only zeros and ones, as masks do"};
  return std::nullopt;
}

}  // namespace tandem::importer
