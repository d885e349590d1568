#include "engine/train/checkpoints/frozen_states.h"

#include <algorithm>
#include <vector>

#include "engine/config/keys/config_names.h"
#include "engine/formats/sha256.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t hashed_at_a_time = std::size_t{4} << 20;  // bytes

std::string hash_of_state(const StateStore& states, const std::string& name) {
  const TensorType& type = states.type(name);
  const std::int64_t rows = type.shape.empty() ? 1 : type.shape[0];
  Sha256 hash;
  if (rows == 0 || type.bytes() == 0) return hash.finish();
  const std::size_t row = type.bytes() / static_cast<std::size_t>(rows);
  const auto some =
      states.has_direct_rows(name)
          ? std::max<std::int64_t>(1, static_cast<std::int64_t>(hashed_at_a_time / row))
          : rows;
  std::vector<unsigned char> bytes;
  for (std::int64_t first = 0; first < rows; first += some) {
    const std::int64_t count = std::min(some, rows - first);
    bytes.resize(static_cast<std::size_t>(count) * row);
    states.read_rows(name, first, count, bytes.data());
    hash.update(bytes.data(), bytes.size());
  }
  return hash.finish();
}

/// The beginning of a hash, for people.
std::string short_hash(const std::string& hash) {
  constexpr std::size_t digits = 16;
  return hash.empty() ? "none" : "sha256 " + hash.substr(0, digits) + "...";
}

}  // namespace

std::map<std::string, std::string> frozen_hashes(const StateStore& states) {
  std::map<std::string, std::string> hashes;
  for (const std::string& name : states.names()) {
    if (states.held_by(name) == HeldBy::checkpoint || states.shard(name) != nullptr) continue;
    hashes[name] = hash_of_state(states, name);
  }
  return hashes;
}

std::map<std::string, std::string> without_unknown(std::map<std::string, std::string> hashes,
                                                   const StateStore& states,
                                                   const std::map<std::string, std::string>& now) {
  std::erase_if(hashes, [&](const auto& entry) {
    return states.has(entry.first) && states.shard(entry.first) != nullptr &&
           !now.contains(entry.first);
  });
  return hashes;
}

void refuse_other_frozen(const std::map<std::string, std::string>& before,
                         const std::map<std::string, std::string>& now, const RunConfig& config,
                         const std::string& checkpoint) {
  const auto hash_in = [](const std::map<std::string, std::string>& hashes,
                          const std::string& name) {
    const auto found = hashes.find(name);
    return found == hashes.end() ? std::string() : found->second;
  };
  std::map<std::string, std::string> all = now;
  all.insert(before.begin(), before.end());
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& entry) {
    return hash_in(before, entry.first) != hash_in(now, entry.first);
  });
  if (other == all.end()) return;
  const std::string& name = other->first;
  const bool is_teacher = config.distillation.has_teacher() && names_teacher(name);
  const std::string then = hash_in(before, name), is = hash_in(now, name);
  Diagnostic d;
  d.file = is_teacher ? config.distillation.teacher : config.model.file;
  d.path = name;
  if (then.empty() || is.empty())
    d.message = "what is frozen is not what was frozen when " + checkpoint + " was written";
  else
    d.message = std::string(is_teacher ? "the teacher" : "the base model") +
                " has other values than when " + checkpoint +
                " was written, which does not hold them itself";
  d.expected = short_hash(then);
  d.got = short_hash(is);
  d.fix =
      then.empty() || is.empty()
          ? "keep parameters.lora, parameters.train and distillation as they were, or start a "
            "new run"
          : std::string("put back the file") +
                (is_teacher ? " of the teacher" : ", and the files that parameters.load names") +
                ", or start a new run";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace tandem
