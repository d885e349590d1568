// Perplexity, and the same as bits.
#include <cmath>
#include <numbers>

#include "engine/metrics/token_losses.h"

namespace tandem::metrics {
namespace {

double exponential(double mean) { return std::exp(mean); }
double in_bits(double mean) { return mean / std::numbers::ln2; }

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

}  // namespace tandem::metrics
