// Shows the time of operators and modules in a step, where the run or a bench has measured it.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/commands/report/chart.h"
#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

struct TimedOperator {
  std::string path, op, phase, device, kernel;
  double ms = 0;
};

std::vector<TimedOperator> timed_operators(const ReportJson& source) {
  std::vector<TimedOperator> all;
  for (const ReportJson& row : list_in(source, "operators")) {
    all.push_back({text_in(row, "path"), text_in(row, "op"), text_in(row, "phase"),
                   text_in(row, "device"), text_in(row, "kernel"), number_in(row, "ms")});
  }
  std::erase_if(all, [](const TimedOperator& one) { return one.ms <= 0; });
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return all;
}

/// The first `parts` components of a path, without the operator's own name.
std::string module_of(const std::string& path, int parts) {
  const std::size_t end = path.rfind('.');
  const std::string scope = end == std::string::npos ? path : path.substr(0, end);
  std::size_t at = 0;
  for (int i = 0; i < parts && at != std::string::npos; ++i)
    at = scope.find('.', i == 0 ? 0 : at + 1);
  return scope.substr(0, at);
}

/// The smallest depth at which there are several modules.
int module_depth(const std::vector<TimedOperator>& operators) {
  for (int parts = 1; parts < 6; ++parts) {
    std::set<std::string> modules;
    for (const TimedOperator& one : operators) {
      if (one.phase != "update") modules.insert(module_of(one.path, parts));
    }
    if (modules.size() >= 4) return parts;
  }
  return 6;
}

template <class NameOf>
std::string bars_by(const std::string& title, const std::vector<TimedOperator>& operators,
                    double all_ms, const NameOf& name_of) {
  constexpr std::size_t most = 14;
  std::map<std::string, double> sums;
  for (const TimedOperator& one : operators) sums[name_of(one)] += one.ms;
  std::vector<Bar> bars;
  for (const auto& [name, ms] : sums)
    bars.push_back({name, fmt::format("{:.0f} %", 100 * ms / all_ms), ms});
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.value > b.value; });
  if (bars.size() > most) {
    double rest = 0;
    for (std::size_t i = most; i < bars.size(); ++i) rest += bars[i].value;
    const std::string note = fmt::format("{:.0f} %", 100 * rest / all_ms);
    const std::string name = fmt::format("{} others", bars.size() - most);
    bars.resize(most);
    bars.push_back({name, note, rest});
  }
  return bar_chart(title, bars, "ms");
}

std::string longest_table(const std::vector<TimedOperator>& operators) {
  constexpr std::size_t most = 30;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < operators.size() && i < most; ++i) {
    const TimedOperator& one = operators[i];
    rows.push_back({"<span class=\"break\">" + html(one.path) + "</span>", html(one.op),
                    html(one.phase), html(one.device), html(one.kernel), number_text(one.ms, 3)});
  }
  return "<details><summary>The longest operators</summary>" +
         html_table({"Path", "Operator", "Phase", "Device", "Kernel", "ms"}, rows, 5) +
         "</details>";
}

std::string times_of(const ReportRun& run) {
  const bool has_own = !list_in(run.operators, "operators").empty();
  const ReportJson& source = has_own ? run.operators : run.bench;
  const std::vector<TimedOperator> operators = timed_operators(source);
  if (operators.empty()) return "";
  double all_ms = 0;
  for (const TimedOperator& one : operators) all_ms += one.ms;
  const int depth = module_depth(operators);
  const auto module = [&](const TimedOperator& one) {
    return one.phase == "update" ? std::string("updates") : module_of(one.path, depth);
  };
  const std::string from =
      has_own ? fmt::format("measured in step {}", number_text(number_in(source, "step")))
              : "measured by tandem bench";
  return fmt::format("<p class=\"quiet\">{} ms in all operators of a step, {}.</p>",
                     number_text(all_ms, 3), from) +
         "<div class=\"charts\">" +
         bars_by("By operator", operators, all_ms,
                 [](const TimedOperator& one) { return one.op; }) +
         bars_by("By module", operators, all_ms, module) + "</div>" + longest_table(operators);
}

}  // namespace

std::string time_section(const ReportInput& input) {
  constexpr int most_runs = 4;
  std::string text;
  int shown = 0;
  for (const ReportRun& run : input.runs) {
    const std::string times = shown < most_runs ? times_of(run) : "";
    if (times.empty()) continue;
    ++shown;
    text += run_heading(input, run) + times;
  }
  if (!text.empty()) return text;
  return "<p>No times were measured here. <code>tandem train … --log-operators</code> writes those "
         "of each logged step into the run; for an existing run</p><pre><code>tandem bench "
         "RUN/train.resolved.toml --json &gt; RUN/bench.json</code></pre><p>measures them, and "
         "this page shows them once it is made again.</p>";
}

}  // namespace tandem::api
