// Networks with attention or layer normalisation.
#include <fmt/format.h>

#include "api/init/networks/network.h"

namespace tandem::api::networks {
namespace {

bool is_transformer(const ModelFacts& model) {
  return model.count("LayerNormalization") + model.count("Attention") +
             model.count("MultiHeadAttention") + model.count("RMSNormalization") +
             model.count("SimplifiedLayerNormalization") >
         0;
}

void optimize_transformer(const ModelFacts&, const RunLength& length, GuessedSection& optimizer) {
  optimizer.keys = {
      {"kind", "\"adamw\"",
       "the usual optimizer of networks with attention or layer normalisation (Loshchilov and "
       "Hutter, arXiv:1711.05101)",
       ""},
      {"lr", "3e-4",
       "a rate that small and middle-sized ones train with; fine-tuning a pretrained file needs "
       "about 3e-5 (BERT, arXiv:1810.04805)",
       ""},
      {"weight_decay", "0.01", "PyTorch's default of AdamW", ""},
      {"schedule",
       fmt::format("{{ kind = \"cosine\", warmup = \"{} steps\", final = 3e-5 }}", length.warmup()),
       "warm-up over about a tenth of the run as its length is guessed here, 1,000 steps at most, "
       "since early updates of Adam vary much "
       "(arXiv:1706.03762); then a cosine to a tenth of the rate (GPT-3, arXiv:2005.14165)",
       ""},
      {"clip_norm", "1.0", "the gradient's norm is bounded, as in GPT-3", ""},
  };
}

}  // namespace

Network transformer() {
  return {.name = "a network with attention or layer normalisation",
          .is = is_transformer,
          .optimize = optimize_transformer,
          .most_batch = 64};
}

}  // namespace tandem::api::networks
