// The keys of optimizer.schedule; those of its kinds follow from the list of schedules.
#include "engine/config/keys/key_visitor.h"

namespace tandem {
namespace {

/// f(key, duration) for what a shape's kind has.
struct EachDuration {
  const std::string& prefix;
  const std::function<void(const std::string&, const Duration&)>& f;

  template <class Member, class... Notes>
  void key(std::string_view name, const Member& member, const Notes&...) {
    const std::string path = prefix + std::string(name);
    if constexpr (std::is_same_v<Member, std::optional<Duration>>) {
      if (member) f(path, *member);
    } else if constexpr (std::is_same_v<Member, std::vector<Duration>>) {
      for (const Duration& duration : member) f(path, duration);
    }
  }
};

template <class Kind>
void each_duration_of(ShapeOf<Kind> shape, const std::string& prefix,
                      const std::function<void(const std::string&, const Duration&)>& f) {
  if (shape.warmup) f(prefix + "warmup", *shape.warmup);
  EachDuration each{prefix, f};
  std::visit([&](auto& kind) { kind.visit(each); }, shape.kind);
}

}  // namespace

template <class Kind>
requires requires(const Kind& kind, const SchedulePlace& place) { kind.factor(place); }
static void visit(KeyVisitor& v, Kind& kind) { kind.visit(v); }

namespace {

template <class Kind>
void visit_schedule_shape(KeyVisitor& v, ShapeOf<Kind>& c) {
  v.key("warmup", c.warmup, in_steps, "linear rise from 0");
  v.of_kind(c.kind);
  v.when_read([&](const TableReader&) {
    auto* root = std::get_if<InverseSquareRootSchedule>(&c.kind);
    if (root != nullptr && !root->timescale) root->timescale = c.warmup;
  });
}

void visit_part(KeyVisitor& v, SchedulePart& c) {
  v.place(c.where);
  v.key("kind", c.kind, required, "the shape after the warm-up");
  v.key("length", c.length, in_steps, by_default("(the rest of the run)"),
        "how long it holds, its warm-up included; the last one needs none");
  visit_schedule_shape(v, c);
}

void check_parts(const TableReader& table, const ScheduleConfig& c) {
  const ConfigValue* const list = table.valid("parts");
  if (list == nullptr || c.parts.empty()) {
    if (table.find("kind")) return;
    if (list != nullptr)
      table.report(list->where, "parts", "there is no part", "one at least");
    else if (!table.find("parts"))
      table.report(table.where(), "kind", "this key is missing", type_text(string_value));
    return;
  }
  for (const char* key : {"kind", "warmup"}) {
    if (const ConfigValue* beside = table.find(key))
      table.report(beside->where, key, "a schedule of several parts has this in each of them");
  }
  for (std::size_t i = 0; i < c.parts.size(); ++i) {
    const SchedulePart& part = c.parts[i];
    const std::string path = "parts." + std::to_string(i);
    if (!part.length && i + 1 < c.parts.size())
      table.report(part.where, path + ".length", "this key is missing: another part follows",
                   type_text(duration_value));
  }
}

}  // namespace

void visit(KeyVisitor& v, ScheduleConfig& c) {
  v.key("kind", c.kind, by_default("(required, where there are no parts)"),
        written_if(c.parts.empty()), "the shape after the warm-up");
  visit_schedule_shape(v, c);
  v.tables("parts", c.parts, "one shape", visit_part,
           "several shapes, one after the other; `schedule = [ … ]` is short for it");
  v.when_read([&](const TableReader& table) { check_parts(table, c); });
}

void each_duration(const ScheduleConfig& config,
                   const std::function<void(const std::string& key, const Duration&)>& f) {
  if (config.parts.empty()) each_duration_of<ScheduleKind>(config, "", f);
  for (std::size_t i = 0; i < config.parts.size(); ++i) {
    const std::string prefix = "parts." + std::to_string(i) + ".";
    if (config.parts[i].length) f(prefix + "length", *config.parts[i].length);
    each_duration_of<SchedulePartKind>(config.parts[i], prefix, f);
  }
}

}  // namespace tandem
