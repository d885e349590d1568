// Networks with attention or layer normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "api/init/adapters.h"
#include "api/init/networks/network.h"
#include "engine/config/keys/config_value.h"

namespace tandem::api::networks {
namespace {

bool is_transformer(const ModelFacts& model) {
  return model.count("LayerNormalization") + model.count("Attention") +
             model.count("MultiHeadAttention") + model.count("RMSNormalization") +
             model.count("SimplifiedLayerNormalization") >
         0;
}

/// What is said about the rate of adapters, with the line that makes them.
std::string rate_of_adapters(const ModelFacts& model) {
  const std::string selector = adapted_selector(model);
  if (selector.empty() || has_packed_weights(model)) return "";
  return fmt::format(
      ", and adapters alone 2e-4 with final = 2e-5, as B starts at 0 and the weights of the file "
      "stay (LoRA, arXiv:2106.09685): parameters.lora = [ {{ at = {}, rank = 8, alpha = 16 }} ]",
      toml_string(selector));
}

void optimize_transformer(const ModelFacts& model, const RunLength& length,
                          GuessedSection& optimizer) {
  const bool only_adapters = has_packed_weights(model);
  optimizer.keys = {
      {"kind", "\"adamw\"",
       "the usual optimizer of networks with attention or layer normalisation (Loshchilov and "
       "Hutter, arXiv:1711.05101)",
       ""},
      {"lr", only_adapters ? "2e-4" : "3e-4",
       only_adapters ? "a usual rate of adapters, as B starts at 0 (LoRA, arXiv:2106.09685)"
                     : "a rate that small and middle-sized ones train with; fine-tuning all of a "
                       "pretrained file "
                       "needs about 3e-5 (BERT, arXiv:1810.04805)" +
                           rate_of_adapters(model),
       ""},
      {"weight_decay", "0.01", "PyTorch's default of AdamW", ""},
      {"schedule",
       fmt::format("{{ kind = \"cosine\", warmup = \"{} steps\", final = {} }}", length.warmup(),
                   only_adapters ? "2e-5" : "3e-5"),
       std::string("warm-up over about a tenth of the run") +
           (length.is_counted ? "" : ", whose number of samples is not counted but estimated") +
           ", 1,000 steps at most, since early updates of Adam vary much (arXiv:1706.03762); then "
           "a "
           "cosine to a tenth of the rate (GPT-3, arXiv:2005.14165)",
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
