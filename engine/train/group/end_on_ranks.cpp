#include "engine/train/group/end_on_ranks.h"

#include <algorithm>

#include <fmt/format.h>

namespace tandem {
namespace {

// Whether the error only says that another rank has ended with an error, which that rank reports
// itself. Communicators have the failure as what they got, exchanges of the rendezvous within their
// message.
bool repeats(const Error& error, const std::string& failure) {
  const bool is_of_another =
      failure.starts_with("rank ") && failure.find("has ended with an error") != std::string::npos;
  const std::vector<Diagnostic>& all = error.diagnostics();
  return is_of_another && !all.empty() &&
         std::all_of(all.begin(), all.end(), [&](const Diagnostic& d) {
           return d.got == failure || d.message.find(failure) != std::string::npos;
         });
}

}  // namespace

void end_on_ranks(Rendezvous& ranks, const Error& error) {
  const int rank = ranks.rank();
  const std::optional<std::string> failure = ranks.failure();
  if (rank == 0) {
    if (!failure) ranks.fail(error.what());
    if (failure && repeats(error, *failure))
      throw ErrorElsewhere(error.kind(), error.diagnostics());
    throw error;
  }
  if (failure) {  // another rank failed: rank 0 reports it, or rank 1 where rank 0 no longer can
    const bool is_told = rank > 1 || !failure->starts_with("rank 0") ||
                         failure->find("ended with an error") != std::string::npos;
    if (is_told) throw ErrorElsewhere(error.kind(), error.diagnostics());
  } else if (error.kind() == ErrorKind::diverged) {  // what all ranks have found alike
    try {
      ranks.exchange("the end", "");
    } catch (const Error&) {  // rank 0 has ended
    }
    throw ErrorElsewhere(error.kind(), error.diagnostics());
  } else {
    ranks.fail(error.what());
  }
  std::vector<Diagnostic> problems = error.diagnostics();
  for (Diagnostic& d : problems) {  // those of exchanges name the rank themselves
    if (!d.message.starts_with("rank ")) d.message = fmt::format("rank {}: {}", rank, d.message);
  }
  throw Error(error.kind(), std::move(problems));
}

}  // namespace tandem
