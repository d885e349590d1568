// The keys of optimizer.ema, .swa and .lookahead.
#include "engine/config/average_config.h"
#include "engine/config/keys/key_visitor.h"

namespace tandem {
namespace {

constexpr std::string_view which_help = "which parameters; for others the trained weights are used";

void refuse_time(KeyVisitor& v, std::string_view key, const std::optional<Duration>& duration) {
  v.when_read([&, key](const TableReader& table) {
    const ConfigValue* const found = table.valid(key);
    if (found && duration && duration->unit == Duration::Unit::seconds)
      table.report(found->where, key, "averages count steps or epochs");
  });
}

}  // namespace

void visit(KeyVisitor& v, EmaConfig& c) {
  v.place(c.where);
  v.key("at", selector(c.at), which_help);
  v.key("decay", c.decay, from_below(0, 1), "what is kept of the average, each step");
  v.key("start", c.start, by_default("(the first step)"),
        "until then the average is the trained weights");
  v.key("warmup", c.warmup, "the decay is at most (1 + t) / (10 + t), t steps after the start");
  refuse_time(v, "start", c.start);
}

void visit(KeyVisitor& v, SwaConfig& c) {
  v.place(c.where);
  v.key("at", selector(c.at), which_help);
  v.key("start", c.start, by_default("required"),
        "the first weights that count; until then the average is the trained weights");
  v.key("every", c.every, "how often weights are taken into the mean");
  refuse_time(v, "start", c.start);
  v.when_read([&](const TableReader& table) {
    const ConfigValue* const found = table.valid("every");
    if (found && c.every.unit == Duration::Unit::seconds)
      table.report(found->where, "every", "averages count steps or epochs");
  });
}

void visit(KeyVisitor& v, LookaheadConfig& c) {
  v.place(c.where);
  v.key("at", selector(c.at), "which parameters");
  v.key("k", c.k, between(1, 1'000'000'000), "steps from one look back to the next");
  v.key("alpha", c.alpha, between(0, 1),
        "how far the slow weights go towards the trained ones, which then take their place");
}

}  // namespace tandem
