#include "api/commands/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "api/commands/report/html.h"

namespace tandem::api {
namespace {

constexpr int colours = 8;                // in page_style.cpp: .c0 to .c7
constexpr double extent = 1000;           // width and height of the drawing
constexpr std::size_t most_points = 600;  // per line: more than a wide screen can resolve

std::string colour_of(int number) { return fmt::format("c{}", number % colours); }

std::string point(double x, double y) {
  return fmt::format("{:.1f} {:.1f}", x * extent, (1 - y) * extent);
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  bool is_empty() const { return least > greatest; }
};

std::string grid_of(const Axis& x, const Axis& y) {
  std::string path;
  for (const Tick& tick : y.ticks())
    path += fmt::format("M0 {0:.1f}H{1:.0f}", (1 - tick.at) * extent, extent);
  for (const Tick& tick : x.ticks())
    path += fmt::format("M{:.1f} {:.0f}v-8", tick.at * extent, extent);
  return "<path class=\"grid\" d=\"" + path + "\"/>";
}

/// The frame of a chart: ticks, drawing, and the data that the script reads.
std::string frame(const Axis& x, const Axis& y, const std::string& x_name, const std::string& label,
                  const std::string& drawing, const std::string& data) {
  std::string text = "<div class=\"frame\"><div class=\"y-ticks\" aria-hidden=\"true\">";
  for (const Tick& tick : y.ticks())
    text +=
        fmt::format("<span style=\"top:{:.2f}%\">{}</span>", (1 - tick.at) * 100, html(tick.label));
  text += fmt::format(
      "</div><div class=\"plot\" role=\"img\" tabindex=\"0\" aria-label=\"{}\"><svg viewBox=\"0 0 "
      "{:.0f} {:.0f}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{}{}</svg></div><div "
      "class=\"x-ticks\" aria-hidden=\"true\">",
      html(label), extent, extent, grid_of(x, y), drawing);
  for (const Tick& tick : x.ticks())
    text += fmt::format("<span style=\"left:{:.2f}%\">{}</span>", tick.at * 100, html(tick.label));
  return text + "</div><div class=\"x-name\" aria-hidden=\"true\">" + html(x_name) +
         "</div></div><script type=\"application/json\">" + data + "</script>";
}

std::string head(const std::string& title, const std::string& unit) {
  const std::string shown = unit.empty() ? "" : " <span class=\"unit\">" + html(unit) + "</span>";
  return "<figure class=\"chart\"><figcaption><h3>" + html(title) + "</h3>" + shown +
         "</figcaption>";
}

std::string path_of(const ChartLine& line, const Axis& x, const Axis& y) {
  std::string path;
  bool is_open = false;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (!std::isfinite(line.y[i])) {
      is_open = false;
      continue;
    }
    path += (is_open ? "L" : "M") + point(x.at(line.x[i]), y.at(line.y[i]));
    is_open = true;
  }
  return path;
}

/// A dot is a line of length 0 with round ends, because a circle would be stretched with the
/// drawing.
std::string dots_of(const ChartLine& line, const Axis& x, const Axis& y) {
  std::string path;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (std::isfinite(line.y[i])) path += "M" + point(x.at(line.x[i]), y.at(line.y[i])) + "h0";
  }
  return path;
}

template <class List, class Text>
std::string script_list(const List& list, const Text& text) {
  std::string all = "[";
  for (const auto& item : list) {
    if (all.size() > 1) all += ",";
    all += text(item);
  }
  return all + "]";
}

double last_finite(const std::vector<double>& values) {
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    if (std::isfinite(*value)) return *value;
  }
  return std::nan("");
}

std::size_t not_finite(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::count_if(
      values.begin(), values.end(), [](double value) { return !std::isfinite(value); }));
}

std::string legend_item(const ChartLine& line, int colour) {
  Range range;
  for (const double value : line.y) range.take(value);
  std::string text = fmt::format(
      "<li data-run=\"{}\"><i class=\"key {}{}\" aria-hidden=\"true\"></i><span>{}</span> "
      "<b>{}</b>",
      line.run, colour_of(colour), line.is_dotted ? " dashed" : "", html(line.name),
      number_text(last_finite(line.y)));
  if (!range.is_empty() && range.least < range.greatest)
    text += fmt::format(" <small>{} to {}</small>", number_text(range.least),
                        number_text(range.greatest));
  if (const std::size_t bad = not_finite(line.y); bad > 0)
    text += fmt::format(" <small class=\"bad\">{} not finite</small>", bad);
  return text + "</li>";
}

}  // namespace

ChartLine thinned(const ChartLine& line, std::size_t most) {
  const std::size_t stretches = most / 2;
  if (line.x.size() <= most || stretches == 0) return line;
  ChartLine thin = line;
  thin.x.clear();
  thin.y.clear();
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = s * line.x.size() / stretches;
    const std::size_t end = (s + 1) * line.x.size() / stretches;
    std::size_t least = end, greatest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(line.y[i])) continue;
      if (least == end || line.y[i] < line.y[least]) least = i;
      if (greatest == end || line.y[i] > line.y[greatest]) greatest = i;
    }
    if (least == end) least = greatest = begin;  // only values that are not finite
    for (const std::size_t i : {std::min(least, greatest), std::max(least, greatest)}) {
      if (!thin.x.empty() && thin.x.back() == line.x[i]) continue;
      thin.x.push_back(line.x[i]);
      thin.y.push_back(line.y[i]);
    }
  }
  return thin;
}

std::string line_chart(const Chart& chart, int run_count) {
  Range x_range, y_range;
  for (const ChartLine& line : chart.lines) {
    for (const double value : line.y) y_range.take(value);
    for (const double step : line.x) x_range.take(step);
  }
  if (y_range.is_empty()) return "";
  const Axis x(x_range.least, x_range.greatest, AxisKind::steps);
  const Axis y(y_range.least, y_range.greatest, chart.y_axis);
  std::string drawing, label = chart.title + " by " + chart.x_name, legend;
  std::vector<std::string> data;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine line = thinned(chart.lines[i], most_points);
    const int colour = run_count > 1 ? line.run : static_cast<int>(i);
    const std::string of_run = fmt::format("data-run=\"{}\"", line.run);
    drawing += fmt::format("<path {} class=\"line {}{}\" d=\"{}\"/>", of_run, colour_of(colour),
                           line.is_dotted ? " dashed" : "", path_of(line, x, y));
    if (line.is_dotted || line.x.size() == 1)
      drawing += fmt::format("<path {} class=\"dots {}\" d=\"{}\"/>", of_run, colour_of(colour),
                             dots_of(line, x, y));
    label += fmt::format("; {}: {} at last", line.name, number_text(last_finite(chart.lines[i].y)));
    legend += legend_item(chart.lines[i], colour);
    data.push_back(fmt::format("{{\"name\":{},\"run\":{},\"x\":{},\"y\":{}}}",
                               script_text(line.name), line.run, script_list(line.x, script_number),
                               script_list(line.y, script_number)));
  }
  const std::string lines = fmt::format(
      "{{\"x\":[{},{}],\"lines\":{}}}", script_number(x.least()), script_number(x.greatest()),
      script_list(data, [](const std::string& text) { return text; }));
  return head(chart.title, chart.unit) + frame(x, y, chart.x_name, label, drawing, lines) +
         "<ul class=\"legend\">" + legend + "</ul></figure>";
}

std::string stacked_chart(const StackedChart& chart) {
  if (chart.x.empty()) return "";
  std::vector<double> tops(chart.x.size(), 0);
  for (const StackedChart::Layer& layer : chart.layers) {
    for (std::size_t i = 0; i < tops.size(); ++i) tops[i] += layer.y[i];
  }
  const double highest = *std::max_element(tops.begin(), tops.end());
  const Axis x(chart.x.front(), chart.x.back(), AxisKind::steps);
  const Axis y(0, highest, AxisKind::bytes);
  std::string drawing, legend;
  std::vector<std::string> data;
  std::vector<double> below(chart.x.size(), 0);
  for (std::size_t l = 0; l < chart.layers.size(); ++l) {
    const StackedChart::Layer& layer = chart.layers[l];
    // Memory in use changes at a point and stays constant until the next one.
    std::string upper, lower;
    double greatest = 0;
    for (std::size_t i = 0; i < chart.x.size(); ++i) {
      const double begin = x.at(chart.x[i]);
      const double end = i + 1 < chart.x.size() ? x.at(chart.x[i + 1]) : 1;
      const double top = below[i] + layer.y[i];
      upper += (i == 0 ? "M" : "L") + point(begin, y.at(top)) + "L" + point(end, y.at(top));
      lower.insert(0, "L" + point(end, y.at(below[i])) + "L" + point(begin, y.at(below[i])));
      below[i] = top;
      greatest = std::max(greatest, layer.y[i]);
    }
    const std::string colour = colour_of(static_cast<int>(l));
    drawing += fmt::format("<path class=\"area {}\" d=\"{}{}Z\"/>", colour, upper, lower);
    legend += fmt::format(
        "<li><i class=\"key block {}\" aria-hidden=\"true\"></i><span>{}</span> <b>{}</b></li>",
        colour, html(layer.name), bytes_text_of(greatest));
    data.push_back(fmt::format("{{\"name\":{},\"x\":{},\"y\":{},\"bytes\":true}}",
                               script_text(layer.name), script_list(chart.x, script_number),
                               script_list(layer.y, script_number)));
  }
  std::string marks;
  for (const StackedChart::Mark& mark : chart.marks) {
    const double at = std::clamp(x.at(mark.x), 0.0, 1.0);
    drawing += fmt::format("<path class=\"mark\" d=\"M{:.1f} 0V{:.0f}\"/>", at * extent, extent);
    marks +=
        fmt::format("{}{} from {} on", marks.empty() ? "" : ", ", mark.name, number_text(mark.x));
  }
  const std::string notes = script_list(chart.notes, script_text);
  const std::string lines =
      fmt::format("{{\"x\":[{},{}],\"notes\":{},\"lines\":{}}}", script_number(x.least()),
                  script_number(x.greatest()), notes,
                  script_list(data, [](const std::string& text) { return text; }));
  const std::string label =
      fmt::format("{}: at most {} at once", chart.title, bytes_text_of(highest));
  const std::string below_chart =
      marks.empty() ? "" : "<p class=\"quiet\">Lines: " + html(marks) + ".</p>";
  return head(chart.title, chart.unit) + frame(x, y, chart.x_name, label, drawing, lines) +
         "<ul class=\"legend\">" + legend + "</ul>" + below_chart + "</figure>";
}

std::string bar_chart(const std::string& title, const std::vector<Bar>& bars,
                      std::string_view unit) {
  if (bars.empty()) return "";
  double greatest = 0;
  for (const Bar& bar : bars) greatest = std::max(greatest, bar.value);
  std::string rows;
  for (const Bar& bar : bars) {
    const double part = greatest > 0 ? std::max(0.0, bar.value) / greatest : 0;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"bar\"><i style=\"width:{:.2f}%\"></i></td><td "
        "class=\"number\">{} {}</td><td class=\"quiet\">{}</td></tr>",
        html(bar.name), part * 100, number_text(bar.value, 3), html(unit), html(bar.note));
  }
  return "<figure class=\"bars\"><figcaption><h3>" + html(title) + "</h3></figcaption><table>" +
         rows + "</table></figure>";
}

}  // namespace tandem::api
