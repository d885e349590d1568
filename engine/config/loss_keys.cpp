// The keys of [loss], which follow from the list of losses.
#include <algorithm>
#include <set>

#include "engine/config/keys/key_visitor.h"
#include "engine/losses/loss.h"

namespace tandem {
namespace {

/// What a term of its kind reads.
void visit_values(KeyVisitor& v, LossTerm& term) {
  const LossKind& kind = *term.kind;
  term.values.resize(kind.values.size());
  for (std::size_t i = 0; i < kind.values.size(); ++i)
    v.key(kind.values[i].key, term.values[i], required, kind.values[i].help);
  if (kind.labels.form != LabelForm::none)
    v.key(kind.labels.key, term.labels, required, kind.labels.help);
  term.other_fields.resize(kind.fields.size());
  for (std::size_t i = 0; i < kind.fields.size(); ++i)
    v.key(kind.fields[i].key, text_or_none(term.other_fields[i]), kind.fields[i].help);
}

void visit_loss_options(KeyVisitor& v, LossTerm& term) {
  if (term.kind->sample_weights) {
    v.key("sample_weights", text_or_none(term.sample_weights),
          "data field with a weight for each sample, or for each position of it; a mean divides by "
          "the sum of the weights");
  }
  term.options.visit(v);
}

void visit_term(KeyVisitor& v, LossTerm& term) {
  using Visit = void (*)(KeyVisitor&, LossTerm&);
  const auto of_kind = [&term](Visit first, Visit second = nullptr) {
    return [&term, first, second](KeyVisitor& inside, std::size_t kind) {
      LossTerm another{.kind = &all_losses()[kind], .options = all_losses()[kind].options};
      LossTerm& visited = term.kind == another.kind ? term : another;
      first(inside, visited);
      if (second != nullptr) second(inside, visited);
    };
  };
  const std::string names = names_in(all_losses());
  const auto chosen = [&term] { return static_cast<std::size_t>(term.kind - &all_losses()[0]); };
  const auto choose = [&term](std::size_t kind) {
    term.kind = &all_losses()[kind];
    term.options = term.kind->options;
  };
  v.place(term.where);
  v.key("name", term.name, by_default("(the kind)"), "its name in metrics and selectors");
  v.key("kind", word(names, chosen, choose), required, "the formula, in docs/losses.md");
  v.when_read([&](const TableReader& table) {
    if (term.kind != nullptr && !table.valid("name")) term.name = term.kind->name;
  });
  KindList kinds{.names = names, .visit = of_kind(visit_values)};
  if (term.kind != nullptr) kinds.chosen = chosen();
  kinds.tell = of_kind(visit_values, visit_loss_options);
  v.of_kind(kinds);
  v.key("weight", term.weight, "factor of this term");
  v.key("reduction", term.reduction,
        "over the batch (batchmean is the sum divided by the number of samples)");
  kinds.visit = of_kind(visit_loss_options);
  v.of_kind(kinds);
}

}  // namespace

void visit(KeyVisitor& v, LossConfig& c) {
  std::set<std::string> names;
  v.place(c.where);
  v.key("output", text_or_none(c.output),
        "which output of the graph is the loss, where terms are left out and it has several "
        "outputs");
  v.tables(
      "terms", c.terms, "one term",
      [&](KeyVisitor& inside, LossTerm& term) {
        visit_term(inside, term);
        inside.when_read([&](const TableReader& table) {
          if (term.kind != nullptr && !names.insert(term.name).second)
            table.report(table.where(), "name", "two terms have the same name", "", term.name);
        });
      },
      "the loss is the weighted sum of these");
  v.when_read([&](const TableReader& table) {
    if (c.output.empty() || c.terms.empty()) return;
    table.report(table.where(), "output", "the graph has a loss of its own, or terms make one",
                 "output or terms, not both");
  });
}

}  // namespace tandem
