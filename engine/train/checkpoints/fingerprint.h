// What the meaning of a checkpoint depends on besides its own files: the model's structure and the
// data, recorded with it and compared wherever it is used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/files.h"
#include "engine/train/checkpoints/data_fingerprint.h"

namespace tandem {

/// A model file as it is written, whatever an importer makes of it.
struct ModelStructure {
  std::vector<RecordedPart> parts;  // inputs, initializers, operators, outputs, as values flow
  /// Values inside of the graph that the configuration names: by name what makes them.
  std::map<std::string, std::string> values;
  /// Hash over ids and facts of all parts.
  std::string sha256;
  /// Number of parts; a checkpoint of a very large model stores only the number.
  std::size_t count = 0;
};
/// Fills in `sha256` and `count`.
ModelStructure structure_of(std::vector<RecordedPart> parts,
                            std::map<std::string, std::string> values = {});

/// The first difference, if any; values are compared where both know them.
std::optional<Difference> first_difference(const ModelStructure& before, const ModelStructure& now);

/// What --accept-changes has taken.
struct AcceptedChange {
  std::uint64_t step = 0;  // step of the checkpoint that was resumed
  std::string text;
};

struct Fingerprint {
  std::string program;  // version of Tandem that wrote it
  ModelStructure model;
  DataFingerprint data;
  std::vector<AcceptedChange> accepted;
};

using FingerprintPtr = std::shared_ptr<const Fingerprint>;

/// Name of the file within a checkpoint.
extern const char* const fingerprint_file;
WrittenFile write_fingerprint(const std::string& path, const Fingerprint& fingerprint);
/// Throws Error{data} where it is not one, Error{usage} where it is of another format.
FingerprintPtr read_fingerprint(const std::string& path);
/// That of the checkpoint at `path`; throws Error{data} where it has none.
const Fingerprint& fingerprint_in(const FingerprintPtr& fingerprint, const std::string& path);

/// Where a change is found and what to do about it.
struct ChangedPart {
  const char* part;   // "model", "data"
  std::string file;   // the model file, the configuration
  std::string since;  // "step 60 of the run was saved"
  std::string fix;    // without --accept-changes, which is added
};
/// Throws Error{usage} for a difference, or returns the line that says what was accepted; "" where
/// there is none.
std::string accept_or_refuse(const std::optional<Difference>& difference, const ChangedPart& part,
                             bool accepts);

}  // namespace tandem
