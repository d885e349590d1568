// The page of docs/ about losses.
#include <fmt/format.h>

#include "engine/losses/loss.h"

namespace tandem {
namespace {

std::string row(std::string_view key, std::string_view fallback, std::string_view help) {
  return fmt::format("| `{}` | {} | {} |\n", key, table_cell(fallback), table_cell(help));
}

std::string option_help(const KeyInfo& option) {
  std::string text(option.help);
  std::string_view rest = option.allowed;
  for (bool first = true; !rest.empty(); first = false) {
    const std::size_t end = rest.find('|');
    text += fmt::format("{}\"{}\"", first ? ": " : " or ", rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  if (option.low > -1e300) text += fmt::format("; at least {}", option.low);
  if (option.high < 1e300)
    text += fmt::format("{} at most {}", option.low > -1e300 ? "," : ";", option.high);
  return text;
}

constexpr std::string_view head = R"(# Losses

Written by `make docs` from the list that also reads the configuration; do not edit. A term of `[loss]` has a `kind` of
these, the keys below it, and those of every term: `name`, `weight`, `reduction`, `sample_weights` ([train_toml.md](train_toml.md)).

- **One loss an element.** Where a formula is of one element, a sample has as many losses as the value has elements for it. Integer
  labels leave the class axis out: the last one, or axis 1; where both fit, the last, which a note at the start says.
- **reduction.** `mean` is over all losses of the step, `sum` adds them, `batchmean` divides the sum by the number of samples, whatever their weights. Micro-batches,
  the shorter batch at the end of an epoch and evaluation give the mean over all their samples, not a mean of means.
- **Weights.** A loss counts as often as its weights say: with class weight c and sample weight s, the mean is Σ c s loss / Σ c s. So a sample of
  weight 2 is one that is there twice, and one of weight 0 is not there, as long as its loss is finite (0 times infinity is no number) and its label valid. `sample_weights` names a data field with a number from 0 on for each sample,
  or for each position of it (`[batch, tokens]`). `pos_weight` scales a part of a loss and does not count in the mean.
)";

}  // namespace

std::string losses_markdown() {
  std::string text(head);
  for (const LossKind& kind : all_losses()) {
    text += fmt::format("\n## {}\n\n{}\n\nAs {}.{}\n\n| key | default | meaning |\n|---|---|---|\n",
                        kind.name, kind.help, kind.source,
                        kind.sample_weights ? "" : " It takes no `sample_weights`.");
    for (const LossValue& value : kind.values) text += row(value.key, "required", value.help);
    if (kind.labels.form != LabelForm::none)
      text += row(kind.labels.key, "required", kind.labels.help);
    for (const LossField& field : kind.fields) text += row(field.key, "", field.help);
    for (const KeyInfo& option : kind.options.keys()) {
      std::string fallback(option.fallback);
      if (!fallback.empty() && !fallback.starts_with('(')) fallback = "`" + fallback + "`";
      if (fallback.starts_with('(')) fallback = fallback.substr(1, fallback.size() - 2);
      text += row(option.path, fallback, option_help(option));
    }
  }
  return text;
}

}  // namespace tandem
