// The commands that a run was started and resumed with, as started.json of its directory records
// them: what the next resume continues with, and where the run and its project were then.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

/// Keys that a command line has set.
struct GivenKeys {
  std::vector<std::string> overrides;  // "optimizer.lr=0.01"
  std::string folder;                  // the current one, to which their paths are relative
};

struct StartRecord {
  std::string run_dir;              // absolute, at that time
  std::string config;               // absolute: the train.toml, or the ONNX file of a guessed run
  std::string text;                 // the train.toml; "" for a guessed run
  int ranks = 1;                    // how many processes trained together
  std::vector<GivenKeys> commands;  // in their order; those without keys are left out
  std::vector<std::string> place, devices;  // as TrainOptions has them
};

extern const char* const start_record_file;  // started.json

/// The file's text.
std::string to_json(const StartRecord& record);
/// Reads the record of a run directory; nothing where it has none. Throws Error{data} where the
/// file is damaged, Error{usage} where it is of another format.
std::optional<StartRecord> read_start_record(const std::string& run_dir);

}  // namespace tandem
