#include "api/commands/tune/trial_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "api/commands/pictures/picture.h"
#include "engine/graph/text.h"

namespace tandem::api {

std::string trials_picture(const Search& search, const std::vector<Trial>& trials) {
  const std::vector<SearchedKey> keys = SearchSpace(search.over).keys();
  const std::vector<const Trial*> order = ranked(trials, search.better);
  std::vector<Picture> charts;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    Picture& chart = charts.emplace_back();
    chart.x_label = keys[k].key;
    chart.y_label = search.metric;
    chart.x_is_log = keys[k].kind == SearchedKey::Kind::logarithmic;
    chart.x_words = keys[k].choices;
    PictureSeries& points = chart.series.emplace_back();
    // The best one is drawn last, on top.
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const Trial& trial = **at;
      if (trial.status == TrialStatus::failed || !std::isfinite(trial.value())) continue;
      const std::string& text = trial.settings[k].second;
      const auto word = std::find(keys[k].choices.begin(), keys[k].choices.end(), text);
      const double x = word != keys[k].choices.end()
                           ? static_cast<double>(word - keys[k].choices.begin())
                           : std::strtod(text.c_str(), nullptr);
      points.points.push_back({x, trial.value(),
                               fmt::format("trial {}: {} {:.6g}, {}", trial.number, search.metric,
                                           trial.value(), joined(overrides_of(trial.settings))),
                               &trial == order.front()});
    }
  }
  return to_svg(fmt::format("{} of {} trials", search.metric, trials.size()), charts);
}

}  // namespace tandem::api
