// The keys of optimizer.schedule; those of its kinds follow from the list of schedules.
#include "engine/training/config/key_visitor.h"

namespace tandem {
namespace {

/// Schedules know no times.
void refuse_time(const TableReader& table, std::string_view key, const Where& where,
                 const Duration& duration) {
  if (duration.unit == Duration::Unit::seconds)
    table.report(where, key, "a schedule counts steps or epochs");
}

/// A list of durations.
KeyForm durations_form(std::vector<Duration>& members) {
  return {list_value,
          [&](const Found& found) {
            members.clear();
            for (const ConfigValue& item : found.value.items) {
              if (item.kind != ConfigValue::Kind::string) continue;
              members.push_back(parse_duration(item.text).value_or(Duration{}));
              refuse_time(found.table, found.key, item.where, members.back());
            }
          },
          [&] {
            std::vector<std::string> texts;
            for (const Duration& member : members) texts.push_back(to_string(member));
            return members.empty() ? std::string() : toml_list_of_strings(std::move(texts));
          }};
}

/// What the structs of engine/schedules declare about their members, as keys.
class ScheduleKeys {
 public:
  explicit ScheduleKeys(KeyVisitor& v) : v_(v) {}

  void rate(std::string_view name, double& lr, std::string_view help) {
    v_.key(name, lr, at_least(0), help);
  }
  void number(std::string_view name, double& number, NumberRange range, std::string_view help) {
    v_.key(name, number, range, help);
  }
  void count(std::string_view name, std::int64_t& count, NumberRange range, std::string_view help) {
    v_.key(name, count, range, help);
  }
  void flag(std::string_view name, bool& flag, std::string_view help) { v_.key(name, flag, help); }
  /// A choice between two words; the second one means true.
  void choice(std::string_view name, bool& second, std::string_view words, std::string_view help) {
    v_.key(name,
           word(
               words, [&second] { return second ? 1 : 0; },
               [&second](std::size_t number) { second = number == 1; }),
           help);
  }
  void metric(std::string_view name, std::string& metric, std::string_view help) {
    v_.key(name, metric, help);
  }
  void duration(std::string_view name, std::optional<Duration>& duration, std::string_view fallback,
                std::string_view help) {
    v_.key(name, duration, by_default(fallback), help);
    v_.when_read([&](const TableReader& table) {
      const ConfigValue* const found = table.find(name);
      if (duration && found) refuse_time(table, name, found->where, *duration);
    });
  }
  void required_duration(std::string_view name, std::optional<Duration>& member,
                         std::string_view help) {
    duration(name, member, "required", help);
  }
  void required_durations(std::string_view name, std::vector<Duration>& durations,
                          std::string_view help, std::string_view item_help) {
    v_.key(name, durations_form(durations), required, parts("[]", duration_value, item_help), help);
  }

 private:
  KeyVisitor& v_;
};

/// f(key, duration) for what a shape's kind has.
struct EachDuration {
  const std::string& prefix;
  const std::function<void(const std::string&, const Duration&)>& f;

  template <class... Any>
  void rate(Any&&...) {}
  template <class... Any>
  void number(Any&&...) {}
  template <class... Any>
  void count(Any&&...) {}
  template <class... Any>
  void flag(Any&&...) {}
  template <class... Any>
  void choice(Any&&...) {}
  template <class... Any>
  void metric(Any&&...) {}
  void required_duration(std::string_view name, const std::optional<Duration>& duration,
                         std::string_view) {
    if (duration) f(prefix + std::string(name), *duration);
  }
  void duration(std::string_view name, const std::optional<Duration>& duration, std::string_view,
                std::string_view help) {
    required_duration(name, duration, help);
  }
  void required_durations(std::string_view name, const std::vector<Duration>& durations,
                          std::string_view, std::string_view) {
    for (const Duration& one : durations) f(prefix + std::string(name), one);
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
static void visit(KeyVisitor& v, Kind& kind) {
  ScheduleKeys keys(v);
  kind.visit(keys);
}

namespace {

template <class Kind>
void visit_schedule_shape(KeyVisitor& v, ShapeOf<Kind>& c) {
  ScheduleKeys keys(v);
  keys.duration("warmup", c.warmup, "", "linear rise from 0");
  v.of_kind(c.kind);
  v.when_read([&](const TableReader&) {
    auto* root = std::get_if<InverseSquareRootSchedule>(&c.kind);
    if (root != nullptr && !root->timescale) root->timescale = c.warmup;
  });
}

void visit_part(KeyVisitor& v, SchedulePart& c) {
  v.place(c.where);
  v.key("kind", c.kind, required, "the shape after the warm-up");
  ScheduleKeys keys(v);
  keys.duration("length", c.length, "(the rest of the run)",
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
