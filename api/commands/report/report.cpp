// tandem report: writes the logs of runs as one page that needs no other file.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/page_frame.h"
#include "api/commands/report/section.h"
#include "api/output_file.h"
#include "api/program/runs.h"
#include "engine/formats/count_text.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

constexpr std::string_view report_mark = "<meta name=\"generator\" content=\"tandem report\">";

ReportJson json_file(const std::string& path) {
  constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
  if (!path_exists(path) || file_size(path) > most_bytes) return nullptr;
  const std::string text = read_file(path, most_bytes);
  ReportJson json = ReportJson::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : ReportJson(nullptr);
}

ReportRun report_run(const std::string& path) {
  ReportRun run;
  run.record = read_run(path);
  run.label = run.record.name;
  run.plan = json_file(run.record.path + "/plan.json");
  run.placement = json_file(run.record.path + "/placement.json");
  run.operators = json_file(run.record.path + "/operators.json");
  run.bench = json_file(run.record.path + "/bench.json");
  run.summary = json_file(run.record.path + "/summary.json");
  return run;
}

/// The base64 encoding of the bytes that 64 hexadecimal digits stand for.
std::string base64_of_hex(const std::string& digits) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  unsigned bits = 0, count = 0;
  for (const char digit : digits) {
    bits = bits << 4 | static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    text += letters[bits >> count & 63];
    bits &= (1u << count) - 1;
  }
  if (count > 0) text += letters[bits << (6 - count) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

/// Forbids loading anything and running any script except the page's own.
std::string content_policy() {
  const std::string hash = base64_of_hex(sha256(page_script.data(), page_script.size()));
  return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + hash +
         "'; base-uri 'none'; form-action 'none'";
}

std::string page_of(const ReportInput& input) {
  const std::string title =
      input.is_one() ? input.runs[0].label : fmt::format("{} runs", input.runs.size());
  std::string sections, links;
  for (const ReportSection& section : report_sections()) {
    const std::string content = section.content(input);
    if (content.empty()) continue;
    links += fmt::format("<a href=\"#{0}\">{1}</a>", section.id, section.title);
    sections += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 "
        "id=\"{0}-title\">{1}</h2>{2}</section>\n",
        section.id, section.title, content);
  }
  return fmt::format(
      "<!DOCTYPE html>\n"
      "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "{}\n"
      "<title>{}</title>\n"
      "<style>{}</style></head>\n"
      "<body><header><h1>{}</h1><nav aria-label=\"Sections\">{}</nav></header>\n"
      "<main>{}</main>\n"
      "<footer>Made by tandem {} from metrics.jsonl and the other files in its folder.</footer>\n"
      "<script>{}</script></body></html>\n",
      content_policy(), report_mark, html(title), page_style(), html(title), links, sections,
      html(version()), page_script);
}

/// Labels runs of equal names by their paths.
void make_labels_differ(std::vector<ReportRun>& runs) {
  std::map<std::string, int> counts;
  for (const ReportRun& run : runs) ++counts[run.label];
  for (ReportRun& run : runs) {
    if (counts[run.label] > 1) run.label = run.record.path;
  }
}

}  // namespace

Report write_report(const std::vector<std::string>& runs, const std::string& to) {
  ReportInput input;
  std::vector<Diagnostic> problems;
  for (const std::string& path : runs) {
    try {
      input.runs.push_back(report_run(path));
    } catch (const Error& error) {
      problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (input.runs.empty() && problems.empty())
    problems.push_back(
        {.message = "report: of which runs?", .expected = "at least one run directory"});
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  make_labels_differ(input.runs);
  const std::string page = page_of(input);
  write_output(to, page, "--to", report_mark);
  Report report;
  report.text = fmt::format("{}  ({}, {})\n", to, count_text(runs.size(), "run"),
                            bytes_text_of(static_cast<double>(page.size())));
  ReportJson json{{"to", to}, {"bytes", page.size()}, {"runs", ReportJson::array()}};
  for (const ReportRun& run : input.runs) json["runs"].push_back(run.record.path);
  report.json = json.dump(2, ' ', false, ReportJson::error_handler_t::replace);
  return report;
}

}  // namespace tandem::api
