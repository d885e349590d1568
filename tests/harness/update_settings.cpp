#include "tests/harness/update_settings.h"

#include <algorithm>
#include <type_traits>

#include "engine/optimizers/settings.h"

namespace tandem::testing {
namespace {

double changed(double x, const NumberRange& range) {
  // The number is an exponent, for which distant values lose digits.
  if (range.low < 0) return x - 0.02 * (range.high - range.low);
  if (range.high < 1e300) return range.high * (x > 0.95 ? 0.95 : x > 0.5 ? 0.8 : 0.7);
  return x < 1e-3 ? (x == 0 ? 0.05 : 1e-3) : x * (x * 0.75 < range.low ? 1.25 : 0.75);
}

/// The defaults with number `only` changed, or all numbers where it is -1.
template <class Settings>
Settings with_changed_numbers(int only) {
  Settings settings;
  int at = 0;
  each_setting(settings, [&](const SettingInfo& info, auto& x) {
    if constexpr (std::same_as<std::remove_reference_t<decltype(x)>, double>) {
      if (!info.attribute.empty() && (only < 0 || only == at)) x = changed(x, info.range);
    }
    ++at;
  });
  return settings;
}

/// Settings with each other value that setting `which` can have.
template <class Settings>
std::vector<Settings> with_other_choices(const Settings& settings, int which) {
  std::vector<Settings> all;
  for (int value = 0;; ++value) {
    Settings other = settings;
    int at = 0;
    bool more = false, differs = false;
    each_setting(other, [&](const SettingInfo& info, auto& x) {
      using Member = std::remove_reference_t<decltype(x)>;
      if (at++ != which || info.attribute.empty()) return;
      if constexpr (std::same_as<Member, bool>) {
        more = value < 2;
        differs = x != (value == 1);
        x = value == 1;
      } else if constexpr (std::same_as<Member, int>) {
        more = value <= std::count(info.choices.begin(), info.choices.end(), '|');
        differs = x != value;
        x = value;
      }
    });
    if (!more) return all;
    if (differs) all.push_back(other);
  }
}

template <class Kind>
void add(std::vector<UpdateSettings>& all) {
  using Settings = typename Kind::Settings;
  std::vector<Settings> tried;
  const auto fits = [](const Settings& s) { return Kind::problem(s).key == nullptr; };
  const auto attempt = [&](const Settings& s) {
    if (!fits(s)) return false;
    tried.push_back(s);
    return true;
  };
  int count = 0;
  Settings defaults;
  each_setting(defaults, [&](const SettingInfo&, auto&) { ++count; });
  attempt(defaults);
  const Settings all_changed = with_changed_numbers<Settings>(-1);
  attempt(all_changed);
  for (int which = 0; which < count; ++which) {
    for (const Settings& s : with_other_choices(defaults, which)) attempt(s);
    for (const Settings& s : with_other_choices(all_changed, which)) {
      if (attempt(s)) continue;
      for (int only = 0; only < count; ++only) {
        const auto others = with_other_choices(with_changed_numbers<Settings>(only), which);
        if (std::any_of(others.begin(), others.end(), attempt)) break;
      }
    }
  }
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const std::string op = Kind::op;
    all.push_back({i == 0 ? op : op + "_" + std::to_string(i), op, attributes_of(tried[i])});
  }
}

template <class... Kinds>
std::vector<UpdateSettings> all_of(OptimizerList<Kinds...>) {
  std::vector<UpdateSettings> all;
  const auto add_kind = [&]<class Kind>(std::type_identity<Kind>) {
    if constexpr (HasRule<Kind>) add<Kind>(all);
  };
  (add_kind(std::type_identity<Kinds>{}), ...);
  return all;
}

}  // namespace

std::vector<UpdateSettings> settings_to_try() { return all_of(Optimizers{}); }

}  // namespace tandem::testing
