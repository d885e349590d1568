#include "api/commands/pictures/picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/commands/report/html.h"

namespace tandem::api {
namespace {

constexpr double chart_width = 460, chart_height = 320, title_height = 40;
constexpr double left = 72, right = 16, top = 16, bottom = 52;
constexpr std::size_t charts_a_row = 2;

/// An axis of a picture, from `low` to `high`.
class Axis {
 public:
  Axis(bool is_log, double from, double to) : is_log_(is_log), from_(from), to_(to) {}

  bool takes(double x) const { return std::isfinite(x) && (!is_log_ || x > 0); }
  void cover(double x) {
    if (!takes(x)) return;
    low_ = is_empty_ ? value_of(x) : std::min(low_, value_of(x));
    high_ = is_empty_ ? value_of(x) : std::max(high_, value_of(x));
    is_empty_ = false;
  }
  /// Adds room at both ends, more where all values are equal.
  void finish() {
    const double room = high_ > low_ ? 0.04 * (high_ - low_) : 0.5;
    low_ -= room;
    high_ += room;
  }
  double place(double x) const {
    return from_ + (value_of(x) - low_) / (high_ - low_) * (to_ - from_);
  }
  std::vector<double> ticks() const { return is_log_ ? decades() : round_numbers(); }

 private:
  double value_of(double x) const { return is_log_ ? std::log10(x) : x; }
  std::vector<double> decades() const {
    std::vector<double> ticks;
    const double step = std::max(1.0, std::ceil((high_ - low_) / 6));
    for (double power = std::ceil(low_); power <= high_; power += step)
      ticks.push_back(std::pow(10.0, power));
    if (ticks.size() < 2) {  // within one decade: ticks at its round numbers
      ticks.clear();
      for (const double times : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
        const double x = times * std::pow(10.0, std::floor(low_));
        if (std::log10(x) >= low_ && std::log10(x) <= high_) ticks.push_back(x);
      }
    }
    return ticks;
  }
  std::vector<double> round_numbers() const {
    const double rough = (high_ - low_) / 5;
    const double unit = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * unit;
    for (const double times : {5.0, 2.0, 1.0}) {
      if (times * unit >= rough) step = times * unit;
    }
    std::vector<double> ticks;
    for (double x = std::ceil(low_ / step) * step; x <= high_ && ticks.size() < 20; x += step)
      ticks.push_back(std::abs(x) < step * 1e-9 ? 0 : x);
    return ticks;
  }

  bool is_log_, is_empty_ = true;
  double from_, to_, low_ = 0, high_ = 0;  // range of values, or of their logarithms
};

class PictureDrawing {
 public:
  explicit PictureDrawing(const Picture& chart)
      : chart_(chart),
        x_(chart.x_is_log, left, chart_width - right),
        y_(chart.y_is_log, chart_height - bottom, top) {
    for (const PictureSeries& series : chart.series) {
      for (const PicturePoint& point : series.points) {
        if (!x_.takes(point.x) || !y_.takes(point.y)) continue;
        x_.cover(point.x);
        y_.cover(point.y);
      }
    }
    for (const PictureMark& mark : chart.marks) x_.cover(mark.x);
    for (std::size_t i = 0; i < chart.x_words.size(); ++i) x_.cover(static_cast<double>(i));
    x_.finish();
    y_.finish();
  }

  std::string text() {
    axes();
    for (const PictureMark& mark : chart_.marks) {
      if (x_.takes(mark.x)) draw(mark);
    }
    for (const PictureSeries& series : chart_.series) draw(series);
    return svg_;
  }

 private:
  void line(double x1, double y1, double x2, double y2, const char* look) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                        y1, x2, y2, look);
  }
  void words(double x, double y, const char* look, const std::string& text) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, look, html(text));
  }

  void axes() {
    constexpr const char* grid = "stroke=\"#e4e4e4\"";
    for (const double tick : y_.ticks()) {
      line(left, y_.place(tick), chart_width - right, y_.place(tick), grid);
      words(left - 6, y_.place(tick) + 4, "text-anchor=\"end\"", fmt::format("{:g}", tick));
    }
    const auto x_tick = [&](double x, const std::string& name) {
      line(x_.place(x), top, x_.place(x), chart_height - bottom, grid);
      words(x_.place(x), chart_height - bottom + 16, "text-anchor=\"middle\"", name);
    };
    if (chart_.x_words.empty()) {
      for (const double tick : x_.ticks()) x_tick(tick, fmt::format("{:g}", tick));
    }
    for (std::size_t i = 0; i < chart_.x_words.size(); ++i)
      x_tick(static_cast<double>(i), chart_.x_words[i]);
    constexpr const char* frame = "stroke=\"#444\"";
    line(left, chart_height - bottom, chart_width - right, chart_height - bottom, frame);
    line(left, top, left, chart_height - bottom, frame);
    words((left + chart_width - right) / 2, chart_height - 12,
          "text-anchor=\"middle\" font-weight=\"bold\"", chart_.x_label);
    const double middle = (top + chart_height - bottom) / 2;
    words(14, middle,
          fmt::format("text-anchor=\"middle\" font-weight=\"bold\" transform=\"rotate(-90 14 "
                      "{:.1f})\"",
                      middle)
              .c_str(),
          chart_.y_label);
  }

  void draw(const PictureMark& mark) {
    line(x_.place(mark.x), top, x_.place(mark.x), chart_height - bottom,
         "stroke=\"#c0392b\" stroke-dasharray=\"4 3\"");
    words(x_.place(mark.x) + 4, top + 12, "fill=\"#c0392b\"", mark.label);
  }

  void draw(const PictureSeries& series) {
    const char* const colour = series.is_faint ? "#b8c9dc" : "#1f5fa8";
    std::string path, dots;
    for (const PicturePoint& point : series.points) {
      if (!x_.takes(point.x) || !y_.takes(point.y)) continue;
      const double x = x_.place(point.x), y = y_.place(point.y);
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.8\">"
          "<title>{}</title></circle>\n",
          x, y, point.stands_out ? 6 : 4, point.stands_out ? "#c0392b" : colour, html(point.label));
    }
    if (!series.is_line)
      svg_ += dots;
    else if (!path.empty())
      svg_ += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
          "stroke-width=\"{}\"/>\n",
          path, colour, series.is_faint ? 1 : 2);
  }

  const Picture& chart_;
  Axis x_, y_;
  std::string svg_;
};

}  // namespace

std::string to_svg(const std::string& title, const std::vector<Picture>& charts) {
  const std::size_t columns = std::clamp<std::size_t>(charts.size(), 1, charts_a_row);
  const std::size_t rows = std::max<std::size_t>(1, (charts.size() + columns - 1) / columns);
  const double width = chart_width * static_cast<double>(columns);
  const double height = title_height + chart_height * static_cast<double>(rows);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"16\" y=\"26\" font-size=\"16\">{2}</text>\n",
      width, height, html(title));
  for (std::size_t i = 0; i < charts.size(); ++i) {
    svg += fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n",
                       chart_width * static_cast<double>(i % columns),
                       title_height + chart_height * static_cast<double>(i / columns));
    svg += PictureDrawing(charts[i]).text() + "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace tandem::api
