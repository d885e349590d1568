#include "tools/live_page.h"

#include <csignal>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/command.h"

namespace tandem::tool {

void start_live_page(const std::string& run_dir, const api::TrainOptions& options) {
  std::vector<std::string> words{"tandem",     "policy",
                                 "page",       run_dir + "/policy.toml",
                                 "--config",   run_dir + "/train.resolved.toml",
                                 "--run",      run_dir,
                                 "--read-only"};
  for (const std::string& rule : options.place) words.insert(words.end(), {"--place", rule});
  for (const std::string& use : options.devices) words.insert(words.end(), {"--device", use});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t training = getpid();
  const pid_t child = fork();
  if (child < 0) return say("--page: the system starts no other process; the run goes on without");
  if (child > 0) return;
  // From here on only calls that are allowed between fork and exec.
  setpgid(0, 0);  // Ctrl-C is for the training
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != training) _exit(0);
  setpriority(PRIO_PROCESS, 0, 19);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

}  // namespace tandem::tool
