#include "tests/cuda/gpu_check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::gpu_check {
namespace {

constexpr std::size_t kept = 10;

// JSON has no NaN and no infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

}  // namespace

Report::Report(std::string stage, bool json, Sink sink)
    : stage_(std::move(stage)), json_(json), sink_(std::move(sink)) {}

void Report::to_standard_output(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void Report::write(Json line, const std::string& text) {
  if (!json_) return sink_(text);
  Json all{{"stage", stage_}};
  all.update(line);
  sink_(all.dump());
}

void Report::measured(const std::string& check, double error, double limit) {
  ++checks_;
  const bool good = error <= limit;  // also false for NaN
  double part = limit > 0 ? error / limit : error > 0 ? HUGE_VAL : 0;
  if (std::isnan(part)) part = HUGE_VAL;
  worst_.push_back({part, error, limit, check});
  std::stable_sort(worst_.begin(), worst_.end(),
                   [](const Worst& a, const Worst& b) { return a.part > b.part; });
  if (worst_.size() > kept) worst_.pop_back();
  if (!good) {
    if (failures_++ == 0) first_failure_ = fmt::format("{}: {:.3g} > {:.3g}", check, error, limit);
  }
  write({{"check", check}, {"ok", good}, {"error", number(error)}, {"limit", limit}},
        fmt::format("{}  {}: {:.3g} (at most {:.3g})", good ? "ok    " : "FAILED", check, error,
                    limit));
}

bool Report::is_before(const std::string& check) {
  const bool before = !after_.empty();
  if (before && check == after_) {
    after_.clear();
    went_on_ = true;
  }
  return before;
}

void Report::passed(const std::string& check) {
  ++checks_;
  write({{"check", check}, {"ok", true}}, "ok      " + check);
}

void Report::failed(const std::string& check, const std::string& why) {
  ++checks_;
  if (failures_++ == 0) first_failure_ = check + ": " + why;
  write({{"check", check}, {"ok", false}, {"why", why}}, "FAILED  " + check + ": " + why);
}

void Report::skipped(const std::string& check, const std::string& why) {
  if (skips_++ == 0) first_skip_ = check + ": " + why;
  write({{"check", check}, {"skipped", why}}, "skipped " + check + ": " + why);
}

void Report::value(const std::string& name, double value, const std::string& unit) {
  ++values_;
  write({{"value", name}, {"number", number(value)}, {"unit", unit}},
        fmt::format("        {}: {:.4g} {}", name, value, unit));
}

void Report::note(const std::string& name, Json content) {
  ++values_;
  const std::string text = content.is_string() ? content.get<std::string>() : content.dump();
  write({{"note", name}, {"content", std::move(content)}}, "        " + name + ": " + text);
}

int Report::finish() {
  const bool said_nothing = checks_ == 0 && skips_ == 0 && values_ == 0 && !went_on_;
  const bool bad = failures_ > 0 || said_nothing || !after_.empty();
  const bool nothing_done = checks_ == 0 && values_ == 0;
  const std::string verdict = bad ? "failed" : nothing_done ? "skipped" : "passed";
  Json worst = Json::array();
  std::string text;
  for (const Worst& w : worst_) {
    worst.push_back({{"check", w.check}, {"error", number(w.error)}, {"limit", w.limit}});
    text += fmt::format("\n  worst {}: {:.3g} of {:.3g}", w.check, w.error, w.limit);
  }
  const std::string why = !after_.empty()                           ? "there is no check " + after_
                          : said_nothing                            ? "nothing was checked"
                          : failures_ > 0                           ? first_failure_
                          : went_on_ && skips_ == 0 && nothing_done ? "nothing follows"
                          : nothing_done                            ? first_skip_
                                                                    : "";
  Json line{{"verdict", verdict}, {"checks", checks_}, {"failed", failures_}, {"skipped", skips_}};
  if (!why.empty()) line["why"] = why;
  if (!stopped_at_.empty()) line["stopped_at"] = stopped_at_;
  if (!worst.empty()) line["worst"] = worst;
  write(std::move(line),
        fmt::format("{}: {}, {} checks, {} failed, {} skipped{}{}", stage_, verdict, checks_,
                    failures_, skips_, why.empty() ? "" : ": " + why, text));
  if (!stopped_at_.empty()) return Exit::stopped;
  return bad ? Exit::failed : nothing_done ? Exit::skipped : Exit::passed;
}

}  // namespace tandem::gpu_check
