// Charts of a report: SVG that fills its frame, with texts next to it that keep their size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/commands/report/axis.h"

namespace tandem::api {

/// Points in order of x; values of y that are not finite make a gap.
struct ChartLine {
  std::string name;
  int run = 0;             // the run whose colour the line has, and with which it is switched off
  bool is_dotted = false;  // dots on a dashed line: few points, of evaluations
  std::vector<double> x, y;
};

struct Chart {
  std::string title;
  std::string unit;  // the unit of y, in words
  std::string x_name = "step";
  AxisKind y_axis = AxisKind::linear;
  std::vector<ChartLine> lines;
};

/// Least and greatest y of each of `most` / 2 stretches, so that no peak is lost.
ChartLine thinned(const ChartLine& line, std::size_t most);

/// "" where no line has a point. `run_count` 1: colours distinguish lines, otherwise runs.
std::string line_chart(const Chart& chart, int run_count);

/// Layers on top of each other, the first one at the bottom.
struct StackedChart {
  std::string title, unit, x_name;
  std::vector<double> x;
  std::vector<std::string> notes;  // one per point, shown with it; may be empty
  struct Layer {
    std::string name;
    std::vector<double> y;
  };
  std::vector<Layer> layers;  // at most 6
  struct Mark {
    double x = 0;
    std::string name;
  };
  std::vector<Mark> marks;  // where something begins
};
std::string stacked_chart(const StackedChart& chart);

/// A row of a bar chart; the greatest value fills the width.
struct Bar {
  std::string name, note;  // the note is shown after the value
  double value = 0;
};
/// `unit` is written after each value.
std::string bar_chart(const std::string& title, const std::vector<Bar>& bars,
                      std::string_view unit);

}  // namespace tandem::api
