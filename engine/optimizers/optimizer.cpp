#include "engine/optimizers/optimizer.h"

#include <stdexcept>

namespace tandem {
namespace {

OptimizerValue value_of(double number, const SettingInfo&) { return number; }
OptimizerValue value_of(bool flag, const SettingInfo&) { return flag; }
OptimizerValue value_of(int choice, const SettingInfo& info) {
  return std::string(choice_at(info.choices, choice));
}

void assign(double& number, const OptimizerValue& value, const SettingInfo&) {
  number = std::get<double>(value);
}
void assign(bool& flag, const OptimizerValue& value, const SettingInfo&) {
  flag = std::get<bool>(value);
}
void assign(int& choice, const OptimizerValue& value, const SettingInfo& info) {
  choice = choice_index(info.choices, std::get<std::string>(value));
}

/// The settings of the i-th name of a kind, with these values over its defaults.
template <class Kind, std::size_t i>
typename Kind::Settings settings_with(const OptimizerValues& values) {
  typename Kind::Settings settings = Kind::names[i].defaults;
  each_setting(settings, [&](const SettingInfo& info, auto& member) {
    const auto found = values.find(info.key);
    if (found != values.end()) assign(member, found->second, info);
  });
  return settings;
}

template <class Settings>
double number_of(Settings settings, std::string_view key) {
  double number = 0;
  each_setting(settings, [&](const SettingInfo& info, auto& member) {
    if constexpr (std::same_as<std::remove_reference_t<decltype(member)>, double>)
      if (info.key == key) number = member;
  });
  return number;
}

template <class Kind>
UpdateChoice choice_of(const typename Kind::Settings& settings, bool lazy) {
  UpdateChoice choice;
  choice.op = Kind::op;
  choice.settings = attributes_of(settings);
  for (const OptimizerState& state : Kind::states)
    choice.starts.push_back(state.start == nullptr ? 0 : number_of(settings, state.start));
  choice.lazy = lazy;
  choice.takes_rows = !Kind::whole_tensor && Kind::takes_rows(settings);
  choice.rows_need = Kind::rows_need;
  return choice;
}

template <class Kind, std::size_t i>
UpdateChoice choose(const OptimizerValues& values) {
  const typename Kind::Settings settings = settings_with<Kind, i>(values);
  if constexpr (requires { typename Kind::Simpler; }) {
    if (Kind::is_simpler(settings))
      return choice_of<typename Kind::Simpler>(Kind::simpler(settings), Kind::names[i].lazy);
  }
  return choice_of<Kind>(settings, Kind::names[i].lazy);
}

template <class Kind, std::size_t i>
OptimizerKind optimizer_of() {
  OptimizerKind kind{
      .name = Kind::names[i].name, .source = Kind::names[i].source, .lr = Kind::names[i].lr};
  typename Kind::Settings settings = Kind::names[i].defaults;
  each_setting(settings, [&](const SettingInfo& info, auto& member) {
    if (!info.key.empty()) kind.settings.push_back({info, value_of(member, info)});
  });
  kind.problem = [](const OptimizerValues& values) {
    return Kind::problem(settings_with<Kind, i>(values));
  };
  kind.choose = choose<Kind, i>;
  if constexpr (KeepsBytes<Kind>) {
    kind.least_elements = Kind::least_elements;
    kind.choose_small = [](const OptimizerValues& values) {
      return choice_of<typename Kind::Formula>(settings_with<Kind, i>(values), Kind::names[i].lazy);
    };
  }
  return kind;
}

template <class... Kinds>
std::vector<OptimizerKind> optimizers_of(OptimizerList<Kinds...>) {
  std::vector<OptimizerKind> all;
  const auto add = [&]<class Kind, std::size_t... i>(std::type_identity<Kind>,
                                                     std::index_sequence<i...>) {
    (all.push_back(optimizer_of<Kind, i>()), ...);
  };
  (add(std::type_identity<Kinds>{}, std::make_index_sequence<std::size(Kinds::names)>{}), ...);
  return all;
}

}  // namespace

std::span<const OptimizerKind> all_optimizers() {
  static const std::vector<OptimizerKind> all = optimizers_of(Optimizers{});
  return all;
}

const OptimizerKind* find_optimizer(std::string_view name) {
  for (const OptimizerKind& kind : all_optimizers()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

UpdateChoice choose_update(const OptimizerOptions& options, std::int64_t elements) {
  const OptimizerKind& kind = *options.kind;
  return elements < kind.least_elements ? kind.choose_small(options.values)
                                        : kind.choose(options.values);
}

std::string kinds_of_rows() {
  std::string text;
  for (const OptimizerKind& kind : all_optimizers()) {
    const UpdateChoice update = kind.choose({});
    if (!update.lazy && !update.takes_rows) continue;
    text += (text.empty() ? "" : ", ") + std::string(kind.name);
    if (!update.rows_need.empty()) text += " " + update.rows_need;
  }
  return text;
}

OptimizerOptions::OptimizerOptions() : OptimizerOptions(all_optimizers().front()) {}

OptimizerOptions::OptimizerOptions(const OptimizerKind& of) : kind(&of), lr(of.lr) {
  for (const OptimizerSetting& setting : of.settings)
    values.emplace(setting.info.key, setting.fallback);
}

OptimizerOptions::OptimizerOptions(std::string_view name)
    : OptimizerOptions(
          find_optimizer(name) != nullptr
              ? *find_optimizer(name)
              : throw std::logic_error("no optimizer is called " + std::string(name))) {}

std::string_view OptimizerOptions::name() const { return kind->name; }

const OptimizerValue& OptimizerOptions::value_of(std::string_view key) const {
  const auto found = values.find(key);
  if (found == values.end())
    throw std::logic_error(std::string(kind->name) + " has no option " + std::string(key));
  return found->second;
}

}  // namespace tandem
