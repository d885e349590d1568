#include "api/model/cuda_status.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

const char* const absent = "not in this build";

std::string use_of(const CudaCard& card) { return "cuda:" + std::to_string(card.ordinal); }

std::string capability(const CudaCard& card) {
  return fmt::format("{}.{}", card.major, card.minor);
}

std::string line(const std::string& name, const std::string& text) {
  return fmt::format("{:<9} {}\n", name, text);
}

std::string card_text(const CudaCard& card) {
  std::string of = card.name.empty() ? "a card" : card.name;
  if (card.memory_bytes > 0) {
    of +=
        fmt::format(", compute capability {}, {}", capability(card), bytes_text(card.memory_bytes));
  }
  if (!card.problem.empty()) return of + "; cannot be used: " + card.problem;
  return of + ", " + bytes_text(card.free_bytes) + " free";
}

std::string library_text(const CudaLibraryReport& library) {
  std::string of = library.version;
  if (!library.path.empty()) of += (of.empty() ? "" : " ") + ("in " + library.path);
  if (library.problem.empty()) return of;
  return of + (of.empty() ? "" : "; ") + "cannot be used: " + library.problem;
}

}  // namespace

std::string cuda_text(const CudaReport& report) {
  if (report.toolkit.empty()) return line("cuda", absent);
  const auto with_fix = [](const std::string& fix) {
    return fix.empty() ? "" : line("", "fix: " + fix);
  };
  std::string built = "built with " + report.toolkit;
  if (!report.driver.empty()) built += ", the driver is for " + report.driver;
  if (!report.problem.empty()) built += "; no card can be used: " + report.problem;
  std::string text = line("cuda", built) + with_fix(report.fix);
  for (const CudaCard& card : report.cards) text += line(use_of(card), card_text(card));
  for (const CudaLibraryReport& library : report.libraries) {
    text += line(library.name, library_text(library)) + with_fix(library.fix);
    for (const std::string& file : library.passed_over) text += line("", "passed over: " + file);
  }
  return text;
}

Json cuda_json(const CudaReport& report) {
  if (report.toolkit.empty()) return absent;
  Json cards = Json::array(), libraries = Json::array();
  for (const CudaCard& card : report.cards) {
    cards.push_back({{"name", use_of(card)},
                     {"card", card.name},
                     {"compute_capability", capability(card)},
                     {"memory_bytes", card.memory_bytes},
                     {"free_bytes", card.free_bytes},
                     {"problem", card.problem}});
  }
  for (const CudaLibraryReport& library : report.libraries) {
    libraries.push_back({{"name", library.name},
                         {"needed", library.needed},
                         {"version", library.version},
                         {"path", library.path},
                         {"problem", library.problem},
                         {"fix", library.fix},
                         {"passed_over", library.passed_over}});
  }
  return {{"toolkit", report.toolkit}, {"driver", report.driver}, {"problem", report.problem},
          {"fix", report.fix},         {"cards", cards},          {"libraries", libraries}};
}

std::optional<Diagnostic> missing_card(const CudaReport& report, const std::string& use) {
  Diagnostic d;
  d.fix = report.fix;
  if (report.cards.empty()) {
    d.message = report.problem;
    return d;
  }
  const auto card = std::find_if(report.cards.begin(), report.cards.end(),
                                 [&](const CudaCard& card) { return use_of(card) == use; });
  if (card == report.cards.end()) {
    d.message = "this machine has no " + use;
    for (const CudaCard& other : report.cards)
      d.expected += (d.expected.empty() ? "" : ", ") + use_of(other);
    return d;
  }
  if (card->problem.empty()) return std::nullopt;
  d.message = fmt::format("{} ({}) cannot be used: {}", use,
                          card->name.empty() ? "a card" : card->name, card->problem);
  return d;
}

}  // namespace tandem::api
