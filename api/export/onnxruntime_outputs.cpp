#include "api/export/onnxruntime_outputs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "api/work_folder.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"

extern char** environ;  // NOLINT

namespace tandem::api {
namespace {

constexpr int module_is_missing = 3;

// Arguments: model, file of inputs, file of outputs, number of inputs, names of inputs and outputs.
constexpr const char* onnxruntime_program = R"py(
import sys
try:
    import numpy, onnxruntime
except ImportError as error:
    print(error.name or error)
    sys.exit(3)
model, inputs, outputs, count = sys.argv[1:5]
names = sys.argv[5:]
fed, made = names[:int(count)], names[int(count):]
arrays = numpy.load(inputs)
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
types = {"tensor(float16)": numpy.float16, "tensor(double)": numpy.float64}
types = {node.name: types[node.type] for node in session.get_inputs() if node.type in types}
feeds = {name: arrays["i%d" % k] for k, name in enumerate(fed)}
values = session.run(made, {name: array.astype(types.get(name, array.dtype)) for name, array in feeds.items()})
numpy.savez(outputs, **{"o%d" % k: numpy.ascontiguousarray(v) for k, v in enumerate(values)})
)py";

/// Runs a program whose output goes to the file `words`, and returns its exit code; -1 where it
/// cannot be started, with `errno`, or was ended by a signal.
int run_quietly(std::vector<std::string> arguments, const std::string& words) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, words.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    errno = failed;
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  errno = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The last line, in which Python gives the error.
std::string last_line(const std::string& path) {
  if (!path_exists(path)) return "";
  constexpr std::uint64_t longest = std::uint64_t{1} << 20;
  if (file_size(path) > longest) return "";
  std::string text = read_file(path, longest);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

OnnxruntimeOutputs onnxruntime_outputs(const std::string& python, const std::string& model,
                                       const std::vector<NamedTensor>& inputs,
                                       const std::vector<std::string>& outputs) {
  OnnxruntimeOutputs result;
  try {
    const WorkFolder folder("the inputs of onnxruntime");
    const std::string from = folder.path() + "/inputs.npz", to = folder.path() + "/outputs.npz";
    const std::string words = folder.path() + "/words.txt";
    std::vector<std::string> arguments{python, "-c", onnxruntime_program,          model,
                                       from,   to,   std::to_string(inputs.size())};
    std::vector<NamedTensor> arrays;
    for (const NamedTensor& input : inputs) {
      arrays.push_back({"i" + std::to_string(arrays.size()), input.tensor});
      arguments.push_back(input.name);
    }
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    write_npz(from, arrays);
    const int code = run_quietly(std::move(arguments), words);
    if (code == -1) {
      result.why_not = errno != 0 ? "cannot start " + python + ": " + std::strerror(errno)
                                  : python + " was ended by a signal";
    } else if (code == module_is_missing) {
      result.why_not = python + " has no module " + last_line(words) +
                       " (--python, or TANDEM_PYTHON, names another Python)";
    } else if (code != 0) {
      result.why_not = "it fails: " + last_line(words);
    } else {
      for (NamedTensor& array : read_npz(to)) result.values.push_back(std::move(array.tensor));
      if (result.values.size() != outputs.size()) result.why_not = "it has made other outputs";
    }
  } catch (const Error& error) {
    result.why_not = error.what();
  }
  if (!result.why_not.empty()) result.values.clear();
  return result;
}

}  // namespace tandem::api
