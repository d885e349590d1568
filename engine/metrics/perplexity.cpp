// Perplexity, and its logarithm in bits per token and per byte.
#include <cmath>
#include <numbers>

#include "engine/config/keys/key_visitor.h"
#include "engine/metrics/token_losses.h"

namespace tandem::metrics {
namespace {

struct ByteOptions final : KindOptions {
  double bytes_per_token = 1;
  void visit(KeyVisitor& v) override {
    v.key("bytes_per_token", bytes_per_token, between(1e-3, 1e6),
          "the bytes of the held-out text divided by its tokens");
  }
};

double exponential(double mean) { return std::exp(mean); }
double in_bits(double mean) { return mean / std::numbers::ln2; }

std::unique_ptr<Metric> make_of_bytes(const MetricConfig& config, unsigned) {
  return of_token_losses(in_bits, config.options.as<ByteOptions>().bytes_per_token);
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
  return {.name = "bits_per_byte",
          .source = "PyTorch's cross_entropy divided by log 2 and by the bytes of a token",
          .help =
              "bits_per_token divided by bytes_per_token, so that models with other tokens "
              "compare",
          .options = ByteOptions{},
          .scores = class_logits,
          .make = make_of_bytes};
}

}  // namespace tandem::metrics
