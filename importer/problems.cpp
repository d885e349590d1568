#include "importer/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tandem {
namespace importer {
namespace {

constexpr const char* missing = "unsupported_operator";
constexpr std::size_t most_lines = 10;

bool is_missing(const Report& report) { return report.problem.kind == missing; }

}  // namespace

std::vector<Report> put_together(const std::vector<Report>& reports) {
  std::vector<Report> together;
  for (const Report& report : reports) {
    const Problem& problem = report.problem;
    const auto same = std::find_if(together.begin(), together.end(), [&](const Report& r) {
      return r.problem.kind == problem.kind && r.problem.op == problem.op && !problem.op.empty() &&
             r.problem.reason == problem.reason;
    });
    if (same == together.end()) {
      together.push_back(report);
    } else {
      ++same->problem.count;
    }
  }
  std::stable_sort(together.begin(), together.end(), [](const Report& a, const Report& b) {
    if (is_missing(a) != is_missing(b)) return is_missing(a);
    return is_missing(a) && a.problem.count > b.problem.count;
  });
  return together;
}

std::vector<Diagnostic> in_few_lines(const std::vector<Report>& problems,
                                     const ModelSummary& summary, const std::string& file) {
  std::vector<Diagnostic> lines;
  const std::string distance = missing_operators(summary);
  if (!distance.empty()) {
    Diagnostic& d = lines.emplace_back();
    d.file = file;
    d.message = "the model does not train yet: " + distance;
  }
  for (const Report& report : problems) {
    if (lines.size() + 1 == most_lines && &report != &problems.back()) {
      Diagnostic& d = lines.emplace_back();
      d.file = file;
      d.message = fmt::format("and {} more problems", &problems.back() - &report + 1);
      d.fix = "`tandem inspect` lists all of them";
      break;
    }
    Diagnostic& d = lines.emplace_back(report.diagnostic);
    const std::string& op = report.problem.op;
    const std::size_t colon = op.rfind(':');
    if (is_missing(report) && d.message.find(op.substr(colon + 1)) == std::string::npos)
      d.message = op + ": " + d.message;
    if (report.problem.count > 1) d.message += fmt::format(", {} nodes", report.problem.count);
  }
  return lines;
}

}  // namespace importer

std::string missing_operators(const ModelSummary& summary) {
  // An operator may be missing for several reasons, each of them in the same nodes.
  std::map<std::string, std::int64_t> nodes;
  for (const Problem& problem : summary.problems) {
    if (problem.kind != importer::missing) continue;
    std::int64_t& count = nodes[problem.op];
    count = std::max(count, problem.count);
  }
  if (nodes.empty()) return "";
  std::int64_t count = 0;
  for (const auto& [op, its] : nodes) count += its;
  return fmt::format(
      "{} missing ({} of {} nodes)",
      nodes.size() == 1 ? "1 operator is" : fmt::format("{} operators are", nodes.size()), count,
      summary.nodes);
}

}  // namespace tandem
