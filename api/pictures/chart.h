// Charts as SVG: points, lines and marks over linear or logarithmic axes.
#pragma once

#include <string>
#include <vector>

namespace tandem::api {

struct ChartPoint {
  double x = 0, y = 0;
  std::string label = {};   // shown where the pointer is
  bool stands_out = false;  // as the best one does
};

struct ChartSeries {
  std::vector<ChartPoint> points;  // those that are not finite are left out
  bool is_line = false;            // joined, in their order; else dots
  bool is_faint = false;
};

/// A line from bottom to top.
struct ChartMark {
  double x = 0;
  std::string label;
};

struct Chart {
  std::string x_label, y_label;
  bool x_is_log = false, y_is_log = false;  // values that are not above 0 are left out then
  std::vector<std::string> x_words = {};    // x is the number of one of these, from 0
  std::vector<ChartSeries> series = {};
  std::vector<ChartMark> marks = {};
};

/// One document with all charts, side by side.
std::string to_svg(const std::string& title, const std::vector<Chart>& charts);

}  // namespace tandem::api
