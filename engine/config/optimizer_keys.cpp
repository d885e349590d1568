// The keys of [optimizer]; those of its kinds follow from the list of optimizers.
#include <algorithm>
#include <cassert>
#include <iterator>

#include "engine/config/keys/key_visitor.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"

namespace tandem {
namespace {

/// The optimizer's table, whose keys a group inherits.
struct Inherited {
  const OptimizerOptions& options;
  std::optional<TableReader> table;
};

/// Reports `key` where the table also has `other`, which is another name for the same thing.
void refuse_beside(KeyVisitor& v, std::string_view key, std::string_view other) {
  v.when_read([=](const TableReader& table) {
    const ConfigValue* value = table.valid(key);
    if (value && table.valid(other))
      table.report(value->where, key, "not an option of a table that has " + std::string(other));
  });
}

/// That many numbers.
KeyForm list_form(std::vector<double*> members) {
  return {list_value,
          [=](const Found& found) {
            const std::vector<ConfigValue>& items = found.value.items;
            if (std::any_of(items.begin(), items.end(), [](const ConfigValue& item) {
                  return item.kind == ConfigValue::Kind::invalid;
                }))
              return;
            if (items.size() != members.size())
              return found.report(
                  "wrong length",
                  members.size() == 2 ? "two numbers" : std::to_string(members.size()) + " numbers",
                  std::to_string(items.size()));
            for (std::size_t i = 0; i < items.size(); ++i) *members[i] = items[i].number;
          },
          [=] {
            std::string text;
            for (const double* member : members)
              text += (text.empty() ? "[" : ", ") + toml_number(*member);
            return text + "]";
          }};
}

void visit_settings(KeyVisitor& v, OptimizerOptions& o, bool of_group) {
  const auto add = [&](std::string_view name, KeyForm form, const SettingInfo& info,
                       const std::string& help, std::string fallback = "", const auto&... notes) {
    const bool is_another_name = !fallback.empty();
    if (of_group) fallback = "(optimizer." + std::string(name) + ")";
    v.key(name, std::move(form), info.range, one_of(info.choices), by_default(fallback),
          written_if(!is_another_name), help, notes...);
  };
  const auto member = [&](const OptimizerSetting& setting) -> OptimizerValue& {
    return o.values.find(setting.info.key)->second;
  };
  const auto one = [&](const OptimizerSetting& setting) {
    return std::visit([](auto& value) { return form(value); }, member(setting));
  };
  add("lr", form(o.lr), {.range = at_least(0)}, "learning rate");
  const std::vector<OptimizerSetting>& all = o.kind->settings;
  for (auto setting = all.begin(); setting != all.end();) {
    const SettingInfo& info = setting->info;
    if (info.list.empty()) {
      add(info.key, one(*setting), info, std::string(info.help));
      if (!info.attribute.empty() && info.attribute != info.key) {
        add(info.attribute, one(*setting), info, "another name of " + std::string(info.key),
            "(" + std::string(info.key) + ")");
        refuse_beside(v, info.attribute, info.key);
      }
      ++setting;
      continue;
    }
    constexpr const char* ordinals[] = {"first", "second", "third", "fourth"};
    const auto first = setting;
    std::vector<double*> members;
    for (; setting != all.end() && setting->info.list == info.list; ++setting)
      members.push_back(&std::get<double>(member(*setting)));
    assert(members.size() <= std::size(ordinals));
    const auto [low, high, is_below] = info.range;
    const std::string list(info.list),
        allowed = is_below ? below_text(high) : range_text(number_value, low, high);
    add(list, list_form(members), info, std::string(info.help), "",
        parts("[]", number_value, allowed, info.range));
    for (auto item = first; item != setting; ++item) {
      add(item->info.key, one(*item), info,
          std::string("the ") + ordinals[item - first] + " of " + list, "(" + list + ")");
      refuse_beside(v, item->info.key, list);
    }
  }
}

/// `from`: of a group.
void visit_kinds(KeyVisitor& v, OptimizerOptions& o, const Inherited* from) {
  static const std::string names = names_in(all_optimizers());
  const auto visit_kind = [&, from](KeyVisitor& inside, std::size_t kind) {
    OptimizerOptions another(all_optimizers()[kind]);
    visit_settings(inside, o.kind == another.kind ? o : another, from != nullptr);
  };
  const auto chosen = static_cast<std::size_t>(o.kind - all_optimizers().data());
  v.of_kind(
      KindList{.names = names,
               .chosen = chosen,
               .visit = visit_kind,
               .is_inherited = from != nullptr,
               .inherited = from != nullptr && from->table ? from->table->find("kind") : nullptr});
}

void check_problem(const TableReader& table, const OptimizerOptions& o, const Inherited* from) {
  const SettingsProblem problem = o.kind->problem(o.values);
  const bool is_said = from != nullptr && from->options.kind == o.kind &&
                       o.kind->problem(from->options.values).key != nullptr;
  if (problem.key != nullptr && !is_said) table.report(table.where(), problem.key, problem.message);
}

/// A group has what it says, else what the optimizer's table says, else the default of its kind.
void visit_options(KeyVisitor& v, OptimizerOptions& o, const Inherited* from) {
  static const std::string help = [] {
    std::string of_rows;
    for (const OptimizerKind& kind : all_optimizers()) {
      if (find_update_kind(kind.choose({}).op)->whole_row)
        of_rows += (of_rows.empty() ? "" : ", ") + std::string(kind.name);
    }
    return "the rule (" + of_rows + ": for parameters of two dimensions or more)";
  }();
  const std::span<const OptimizerKind> all = all_optimizers();
  v.when_read([&](const TableReader&) {
    if (from != nullptr) o = OptimizerOptions(*from->options.kind);
  });
  v.key("kind",
        word(
            names_in(all), [&o, all] { return static_cast<std::size_t>(o.kind - all.data()); },
            [&o, all](std::size_t kind) { o = OptimizerOptions(all[kind]); }),
        by_default(from != nullptr ? "(optimizer.kind)" : "required"),
        from != nullptr ? "the rule" : help);
  v.when_read([&](const TableReader&) {
    std::vector<Diagnostic> said_before;
    if (from != nullptr) {
      read_keys(from->table->reporting_to(said_before),
                [&](KeyVisitor& inside) { visit_kinds(inside, o, nullptr); });
    }
  });
  visit_kinds(v, o, from);
  v.when_read([&](const TableReader& table) { check_problem(table, o, from); });
}

}  // namespace

void visit(KeyVisitor& v, OptimizerConfig& c) {
  Inherited table{c.base, std::nullopt};
  v.place(c.where);
  v.when_read([&](const TableReader& reader) { table.table.emplace(reader); });
  visit_options(v, c.base, nullptr);
  v.tables(
      "groups", c.groups, "a selector and the options that differ, kind included",
      [&](KeyVisitor& inside, OptimizerGroup& group) {
        inside.key("at", selector(group.at), required, "which parameters");
        visit_options(inside, group.options, &table);
        inside.table(
            "schedule",
            [&](KeyVisitor& v) {
              visit(v, group.schedule ? *group.schedule : group.schedule.emplace());
            },
            on_one_line, written_if(group.schedule.has_value()), or_only("parts", list_value),
            same_as("optimizer.schedule"), "of the group's own learning rate");
        inside.key("clip_norm", group.clip_norm, at_least(1e-30),
                   "the gradient of the group's parameters is scaled down to this norm; they then "
                   "do not count in optimizer.clip_norm");
        inside.key("clip_value", group.clip_value, at_least(0),
                   by_default("(optimizer.clip_value)"), "for the group's parameters; 0: none");
        inside.key("clip_adaptive", group.clip_adaptive, at_least(0),
                   by_default("(optimizer.clip_adaptive)"), "for the group's parameters; 0: none");
      },
      "other options for some parameters; the last group that covers one takes it");
  v.section("schedule", c.schedule, on_one_line, or_only("parts", list_value),
            "the learning rate over the run; groups without one of their own follow in proportion");
  v.key("clip_norm", c.clip_norm, at_least(1e-30),
        "the gradient of all parameters together is scaled down to this norm");
  v.key("clip_value", c.clip_value, at_least(1e-30),
        "each element of a gradient is moved to the nearest number from -clip_value to clip_value");
  v.key("clip_adaptive", c.clip_adaptive, at_least(1e-30),
        "the gradient of each output unit is scaled down to at most this multiple of the norm of "
        "its weights (Brock et al. 2021); the paper leaves the last layer out");
  v.key("clip_adaptive_eps", c.clip_adaptive_eps, at_least(0),
        "norms of weights count as this at least");
  v.key("layer_decay", c.layer_decay, between(1e-6, 1),
        "each block of the network has the learning rate of the next one times this, from the head "
        "to the input (BEiT, MAE); 1: the same rate for all");
  const auto optional_table = [&](std::string_view name, auto& member, std::string_view help) {
    v.table(
        name, [&](KeyVisitor& inside) { visit(inside, member ? *member : member.emplace()); },
        on_one_line, written_if(member.has_value()), help);
  };
  optional_table("ema", c.ema,
                 "an exponential moving average of the weights: states NAME/ema, used by choice");
  optional_table("swa", c.swa,
                 "the mean of the weights at several times (stochastic weight averaging): states "
                 "NAME/swa, used by choice");
  optional_table("lookahead", c.lookahead,
                 "slow weights, which the trained ones go back to (Zhang et al. 2019): states "
                 "NAME/slow");
}

}  // namespace tandem
