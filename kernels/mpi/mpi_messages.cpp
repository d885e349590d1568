#include "kernels/mpi/mpi_messages.h"

#include <string>
#include <thread>

#include "engine/graph/error.h"
#include "engine/ranks/prompt_thread.h"

namespace tandem {
void MpiMessages::check(int error, const char* what) const {
  if (error == 0) return;
  char text[512] = "";
  functions_.error_text(error, text, sizeof text);
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = std::string("MPI: ") + what + " has failed: " + text,
                         .fix = "look at what the other ranks have printed"});
}

RankMessages::Request MpiMessages::send(int to, int channel, const void* bytes, std::size_t count) {
  const std::lock_guard lock(mutex_);
  Request request = 0;
  if (!is_abandoned_) check(functions_.send(to, channel, bytes, count, &request), "sending");
  return request;
}

RankMessages::Request MpiMessages::receive(int from, int channel, void* bytes, std::size_t count) {
  const std::lock_guard lock(mutex_);
  Request request = 0;
  if (!is_abandoned_) check(functions_.receive(from, channel, bytes, count, &request), "receiving");
  return request;
}

bool MpiMessages::is_done(Request& request) {
  const std::lock_guard lock(mutex_);
  if (is_abandoned_) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "messages with other ranks have ended after a failure"});
  }
  int done = 0;
  check(functions_.is_done(&request, &done), "a message");
  return done != 0;
}

void MpiMessages::pause(std::chrono::microseconds time) {
  wake_promptly();
  std::this_thread::sleep_for(time);
}

void MpiMessages::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  functions_.end_in_order(0);
}

}  // namespace tandem
