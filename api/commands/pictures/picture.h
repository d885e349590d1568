// Charts as SVG: points, lines and marks over linear or logarithmic axes.
#pragma once

#include <string>
#include <vector>

namespace tandem::api {

struct PicturePoint {
  double x = 0, y = 0;
  std::string label = {};   // shown at the pointer
  bool stands_out = false;  // drawn to stand out, for the best one
};

struct PictureSeries {
  std::vector<PicturePoint> points;  // those that are not finite are left out
  bool is_line = false;              // joined in their order; else dots
  bool is_faint = false;
};

/// A line from bottom to top.
struct PictureMark {
  double x = 0;
  std::string label;
};

struct Picture {
  std::string x_label, y_label;
  bool x_is_log = false, y_is_log = false;  // values that are not above 0 are left out where true
  std::vector<std::string> x_words = {};    // x is the number of one of these, from 0
  std::vector<PictureSeries> series = {};
  std::vector<PictureMark> marks = {};
};

/// One document with all charts, side by side.
std::string to_svg(const std::string& title, const std::vector<Picture>& charts);

}  // namespace tandem::api
