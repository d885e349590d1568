// Perplexity, and its logarithm in bits per token and per byte.
#include <cmath>
#include <numbers>

#include "engine/metrics/token_losses.h"

namespace tandem::metrics {
namespace {

double exponential(double mean) { return std::exp(mean); }
double in_bits(double mean) { return mean / std::numbers::ln2; }

std::unique_ptr<Metric> make_of_bytes(const MetricConfig& config, unsigned) {
  const OptionValue& bytes = config.options.find("bytes_per_token")->second;
  return of_token_losses(in_bits, std::get<double>(bytes));
}

}  // namespace

MetricKind perplexity() {
  return {.name = "perplexity",
          .source = "exp of PyTorch's cross_entropy",
          .help =
              "exp of the mean of -log softmax(logits)[label] over all labels that count, "
              "without the loss's weights and smoothing",
          .scores = class_logits,
          .make = make_of_tokens<exponential>};
}

MetricKind bits_per_token() {
  return {.name = "bits_per_token",
          .source = "PyTorch's cross_entropy divided by log 2",
          .help = "the logarithm of perplexity to base 2; of a model of bytes, bits per byte",
          .scores = class_logits,
          .make = make_of_tokens<in_bits>};
}

MetricKind bits_per_byte() {
  constexpr double least = 1e-3, most = 1e6;
  return {.name = "bits_per_byte",
          .source = "PyTorch's cross_entropy divided by log 2 and by the bytes of a token",
          .help =
              "bits_per_token divided by bytes_per_token, so that models with other tokens "
              "compare",
          .options = {{.key = "bytes_per_token",
                       .fallback = "1.0",
                       .help = "the bytes of the held-out text divided by its tokens",
                       .low = least,
                       .high = most}},
          .scores = class_logits,
          .make = make_of_bytes};
}

}  // namespace tandem::metrics
