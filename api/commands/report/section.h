// Sections of a report: each is a function in sections/ and a line in all_sections.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/commands/runs/run_record.h"

namespace tandem::api {

using ReportJson = nlohmann::ordered_json;

/// A run with the files next to its metrics; null where a file is missing or is no JSON.
struct ReportRun {
  RunRecord record;
  std::string label;  // its name, or its path where other runs have the same name
  ReportJson plan, placement, operators, bench, summary;
};

struct ReportInput {
  std::vector<ReportRun> runs;

  bool is_one() const { return runs.size() == 1; }
  int count() const { return static_cast<int>(runs.size()); }
};

/// A section without content is left out.
struct ReportSection {
  std::string_view id, title;
  std::string (*content)(const ReportInput& input);
};

/// In the order of the page.
std::span<const ReportSection> report_sections();

// A member of any JSON value; 0, "" or an empty list where it is missing or of another type.
double number_in(const ReportJson& object, const char* key);
std::string text_in(const ReportJson& object, const char* key);
const ReportJson& list_in(const ReportJson& object, const char* key);

/// A table: cells are HTML, those of columns from `first_number` on are numbers.
std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows,
                       std::size_t first_number = 1000);
/// One copy between devices in a step.
struct CopyRow {
  std::string value, from, to, phase;
  double bytes = 0;
};
/// A table of the first ones, folded up.
std::string largest_copies(const std::vector<CopyRow>& copies);
/// A confusion matrix or its mistakes, or a bar for each class. "" where there are no classes.
std::string table_section(const tandem::MetricTable& table);
/// Where there are several runs: the run's name as a heading.
std::string run_heading(const ReportInput& input, const ReportRun& run);

// The sections.
std::string overview_section(const ReportInput& input);
std::string curves_section(const ReportInput& input);
std::string rates_section(const ReportInput& input);
std::string throughput_section(const ReportInput& input);
std::string memory_section(const ReportInput& input);
std::string time_section(const ReportInput& input);
std::string placement_section(const ReportInput& input);
std::string classes_section(const ReportInput& input);
std::string configuration_section(const ReportInput& input);

}  // namespace tandem::api
