// Sessions of the C library.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/c/config_text.h"
#include "api/c/guarded.h"
#include "api/c/policy_source.h"
#include "api/c/structs.h"
#include "api/c/tensors.h"
#include "api/c/texts.h"
#include "api/c/values.h"
#include "tandem/c.h"
#include "tandem/session.h"

struct TandemSession {
  tandem::api::Session session;
  tandem::c_library::NamedValues evaluation = {};  // the last one
};

using namespace tandem::c_library;

TandemStatus tandem_session_create(const TandemSessionConfig* config, TandemSession** session) {
  return guarded([&] {
    TandemSession*& result = made(session, "session");
    const TandemSessionConfig given = read_struct(config, "config");
    std::vector<std::string> settings;
    if (given.toml != nullptr) settings = session_settings_of(given.toml);
    for (std::string& setting : texts_of(given.settings, "config.settings"))
      settings.push_back(std::move(setting));
    const auto policy = given_policy(given.policy, given.policy_text, "config");
    result = new TandemSession{tandem::api::Session(&required(given.model, "config.model"),
                                                    given.batch_size, settings,
                                                    policy ? &*policy : nullptr)};
  });
}

TandemStatus tandem_session_step(TandemSession* session, const TandemTensor* feeds, size_t count,
                                 double* loss) {
  return guarded([&] {
    const double result =
        required(session, "session").session.step(borrowed_tensors(feeds, count, "feeds"));
    if (loss != nullptr) *loss = result;
  });
}

TandemStatus tandem_session_evaluate(TandemSession* session, const TandemTensor* feeds,
                                     size_t count, TandemValues* values) {
  return guarded([&] {
    TandemSession& my = required(session, "session");
    TandemValues& to = required(values, "values");
    const std::map<std::string, double> result =
        my.session.evaluate(borrowed_tensors(feeds, count, "feeds"));
    my.evaluation = NamedValues({result.begin(), result.end()});
    to = my.evaluation.values();
  });
}

TandemStatus tandem_session_predict(TandemSession* session, const TandemTensor* feeds, size_t count,
                                    TandemTensors** outputs) {
  return guarded([&] {
    TandemTensors*& result = made(outputs, "outputs");
    tandem::api::Session& my = required(session, "session").session;
    result = given_tensors(my.predict(borrowed_tensors(feeds, count, "feeds")));
  });
}

TandemStatus tandem_session_parameters(const TandemSession* session, TandemTensors** parameters) {
  return guarded([&] {
    TandemTensors*& result = made(parameters, "parameters");
    result = given_tensors(required(session, "session").session.parameters());
  });
}

TandemStatus tandem_session_set_parameter(TandemSession* session, const TandemTensor* value) {
  return guarded([&] {
    tandem::api::Session& my = required(session, "session").session;
    for (const auto& [name, tensor] : borrowed_tensors(value, 1, "value")) {
      // The session keeps the elements, which are the caller's.
      my.set_parameter(
          name, tandem::api::Tensor::copy_of_bytes(tensor.dtype(), tensor.shape(), tensor.bytes()));
    }
  });
}

TandemStatus tandem_session_set_learning_rate(TandemSession* session, double rate) {
  return guarded([&] { required(session, "session").session.set_learning_rate(rate); });
}

TandemStatus tandem_session_save_state(const TandemSession* session, const char* path) {
  return guarded([&] { required(session, "session").session.save_state(&required(path, "path")); });
}

TandemStatus tandem_session_restore_state(TandemSession* session, const char* path) {
  return guarded(
      [&] { required(session, "session").session.restore_state(&required(path, "path")); });
}

TandemStatus tandem_session_save(const TandemSession* session, const char* path) {
  return guarded([&] { required(session, "session").session.save(&required(path, "path")); });
}

void tandem_session_close(TandemSession** session) {
  if (session == nullptr) return;
  delete *session;
  *session = nullptr;
}
