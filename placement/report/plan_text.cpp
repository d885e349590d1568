// The text of a plan.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "placement/quantities.h"
#include "placement/report/check.h"
#include "placement/report/plan.h"
#include "placement/report/plan_sums.h"
#include "placement/report/rule_data.h"

namespace tandem {
namespace {

constexpr std::size_t most_copies = 40;

std::string placed_text(const api::Plan& plan) {
  std::vector<std::pair<std::string, ItemCounts>> counts;
  for (const api::Plan::Device& device : plan.devices)
    counts.emplace_back(device.name, counts_of(device.placed));
  return "placed      " + devices_text(counts) + "\n";
}

std::string shown_bytes(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string memory_block(const api::Plan& plan) {
  std::string text = fmt::format(
      "memory      {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}  {}\n", "parameters",
      "gradients", "state", "activations", "workspace", "peak", "limit", "peak at");
  for (const api::Plan::Device& device : plan.devices) {
    text += fmt::format("  {:<9} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}  {}\n",
                        device.name, shown_bytes(device.parameters), shown_bytes(device.gradients),
                        shown_bytes(device.optimizer_states), shown_bytes(device.activations),
                        shown_bytes(device.workspace), shown_bytes(device.peak),
                        device.is_limited ? shown_bytes(device.limit) : "-",
                        device.peak_at.empty() ? "start" : device.peak_at);
  }
  return text;
}

std::string size_of_copy(const api::Plan::Copy& copy) {
  if (!copy.rows) return shown_bytes(copy.bytes);
  std::string text = copy.ahead ? "ahead " : "";
  text += "at most " + shown_bytes(copy.bytes);
  if (copy.expected_bytes) text += ", about " + shown_bytes(*copy.expected_bytes);
  return text;
}

std::string exposed_text(double seconds) {
  return is_hidden(seconds) ? "hidden" : fmt::format("exposed {:.3f} ms", seconds * 1e3);
}

std::string times_text(std::int64_t times) {
  return times > 1 ? fmt::format(" ({} times)", times) : "";
}

/// Those that are no scalars; where there are too many, the largest.
std::vector<const api::Plan::Copy*> shown_copies(const api::Plan& plan, std::size_t& left_out) {
  std::vector<const api::Plan::Copy*> shown;
  for (const api::Plan::Copy& copy : plan.copies) {
    if (!copy.is_scalar) shown.push_back(&copy);
  }
  left_out = shown.size() > most_copies ? shown.size() - most_copies : 0;
  if (left_out == 0) return shown;
  const auto size = [](const api::Plan::Copy* copy) {
    return copy->bytes * static_cast<std::uint64_t>(copy->times);
  };
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const auto* a, const auto* b) { return size(a) > size(b); });
  shown.resize(most_copies);
  return shown;
}

std::string copies_block(const api::Plan& plan) {
  const api::Plan::Traffic& traffic = plan.traffic;
  std::string text = fmt::format("copies      {} a step, {} bytes ({})", traffic.copies,
                                 traffic.bytes, shown_bytes(traffic.bytes));
  if (traffic.is_upper_bound) text += " at most";
  if (traffic.expected_bytes) text += ", about " + shown_bytes(*traffic.expected_bytes);
  if (traffic.scalar_copies > 0) text += fmt::format("; {} of scalars", traffic.scalar_copies);
  text += "\n";
  std::size_t left_out = 0;
  for (const api::Plan::Copy* copy : shown_copies(plan, left_out)) {
    text += fmt::format("  {:>11} {:<14} {:<8} {:<18} {} -> {}{}\n", size_of_copy(*copy),
                        copy->from + " > " + copy->to, phase_name(copy->phase),
                        exposed_text(copy->exposed_seconds), copy->producer,
                        joined(copy->consumers), times_text(copy->times));
  }
  if (left_out > 0) text += fmt::format("  ... and {} smaller ones\n", left_out);
  return text;
}

std::string ranks_block(const api::Plan& plan) {
  if (plan.ranks == 1) return "";
  const ExchangeSums sums = exchange_sums(plan);
  std::string text = fmt::format(
      "ranks       {}, this is the plan of one: {} exchanges a step, {}, {:.3f} ms on the network, "
      "exposed {:.3f} ms\n",
      plan.ranks, sums.exchanges, shown_bytes(sums.bytes), sums.seconds * 1e3,
      sums.exposed_seconds * 1e3);
  for (const api::Plan::Exchange& exchange : plan.exchanges) {
    text += fmt::format("  {:>11} {:<14} {:<8} {:<18} {} ({}) {}{}{}\n",
                        shown_bytes(exchange.bytes), exchange.device, phase_name(exchange.phase),
                        exposed_text(exchange.exposed_seconds), exchange.op, exchange.algorithm,
                        exchange.path,
                        exchange.operands > 1 ? fmt::format(" of {}", exchange.operands) : "",
                        times_text(exchange.times));
  }
  return text;
}

std::string notes_block(const api::Plan& plan) {
  std::string text;
  const api::Plan::Device& host = plan.devices[0];
  if (!host.is_limited && host.peak > host.limit) {
    text += fmt::format("note        the host has {}: the rest of {} would swap\n",
                        shown_bytes(host.limit), shown_bytes(host.peak));
  }
  for (const std::string& note : plan.notes) text += "note        " + note + "\n";
  for (const api::Plan::Hint& hint : plan.hints) {
    if (hint.kind == api::Plan::Hint::Kind::memory) continue;  // the verdict says it
    const std::string rule =
        hint.at.empty() ? "" : short_text(Where{hint.file, hint.line, 0}) + ": ";
    text += "hint        " + rule + hint.message + "\n";
    if (!hint.fix.empty()) text += "            " + hint.fix + "\n";
  }
  return text;
}

std::string verdict(const api::Plan& plan) {
  if (!plan.fits) {
    std::string text = "fits: no\n";
    for (const Diagnostic& misfit : plan.misfits) text += "  " + to_string(misfit) + "\n";
    return text + remedies_text(plan.remedies);
  }
  std::string spare;
  for (std::size_t d = 1; d < plan.devices.size(); ++d) {
    const api::Plan::Device& device = plan.devices[d];
    spare += fmt::format("{}{} {}", spare.empty() ? "" : ", ", device.name,
                         shown_bytes(device.limit - device.peak));
  }
  return "fits: yes" + (spare.empty() ? "" : " (spare: " + spare + ")") + "\n";
}

}  // namespace

std::string remedies_text(const std::vector<api::Plan::Remedy>& remedies) {
  if (remedies.empty()) return "";
  std::size_t width = 0;
  for (const api::Plan::Remedy& remedy : remedies) width = std::max(width, remedy.text.size());
  std::string text = "remedies    add one of these after the policy's rules:\n";
  for (const api::Plan::Remedy& remedy : remedies) {
    text += fmt::format("  {:<{}}  frees {}, {}; {:.3f} ms a step\n", remedy.text, width,
                        shown_bytes(remedy.freed),
                        remedy.suffices ? "fits" : "not enough by itself", remedy.seconds * 1e3);
  }
  return text;
}

std::string plan_text(const api::Plan& plan) {
  const std::string time = fmt::format(
      "time        {:.3f} ms a step by the cost model: computing {:.3f} ms, waiting for copies "
      "{:.3f} ms\n",
      plan.seconds * 1e3, plan.computing_seconds * 1e3, plan.exposed_seconds * 1e3);
  return placed_text(plan) + memory_block(plan) + copies_block(plan) + ranks_block(plan) + time +
         notes_block(plan) + verdict(plan);
}

}  // namespace tandem
