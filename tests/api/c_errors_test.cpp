// Errors of the C library: NULL arguments, sizes of structs, and whose error it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tandem/tandem.h"
#include "tests/api/c_calls.h"
#include "tests/api/digits.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::sized;

TEST(CErrorsTest, VersionsAreThoseOfTheLibrary) {
  EXPECT_EQ(tandem_version(), api::version());
  EXPECT_EQ(tandem_abi_version(), TANDEM_ABI_VERSION);
}

TEST(CErrorsTest, NullIsRefusedByName) {
  const auto refused = [](TandemStatus status, const char* argument) {
    EXPECT_EQ(status, TANDEM_USAGE) << argument;
    EXPECT_EQ(tandem_error_message(), std::string(argument) + ": this argument is NULL");
  };
  double loss = 0;
  TandemValues values{};
  TandemTensors* tensors = nullptr;
  DLManagedTensor* managed = nullptr;
  auto tensor = sized<TandemTensor>();
  refused(tandem_session_step(nullptr, nullptr, 0, &loss), "session");
  refused(tandem_session_evaluate(nullptr, nullptr, 0, &values), "session");
  refused(tandem_session_predict(nullptr, nullptr, 0, &tensors), "session");
  refused(tandem_session_predict(nullptr, nullptr, 0, nullptr), "outputs");
  refused(tandem_session_parameters(nullptr, &tensors), "session");
  refused(tandem_session_set_parameter(nullptr, &tensor), "session");
  refused(tandem_session_set_learning_rate(nullptr, 1), "session");
  refused(tandem_session_save_state(nullptr, "x"), "session");
  refused(tandem_session_restore_state(nullptr, "x"), "session");
  refused(tandem_session_save(nullptr, "x"), "session");
  refused(tandem_tensors_at(nullptr, 0, &tensor), "tensors");
  refused(tandem_tensors_dlpack(nullptr, 0, &managed), "tensors");
  refused(tandem_trainer_run(nullptr, nullptr), "trainer");
  refused(tandem_export_run(nullptr, "x.onnx", nullptr, nullptr), "run");
  refused(tandem_evaluate_run(nullptr, nullptr, nullptr), "run");
  refused(tandem_predict_run("run", nullptr, nullptr, nullptr), "to");
  refused(tandem_model_open("x.onnx", nullptr, nullptr), "model");
  refused(tandem_model_info(nullptr, nullptr), "model");
  refused(tandem_model_input(nullptr, 0, nullptr), "model");
  refused(tandem_model_output(nullptr, 0, nullptr), "model");
  refused(tandem_model_parameter(nullptr, 0, nullptr), "model");
  refused(tandem_model_problem(nullptr, 0, nullptr), "model");
  refused(tandem_plan_info(nullptr, nullptr), "plan");
  refused(tandem_plan_make(nullptr, nullptr), "plan");
  TandemModel* model = nullptr;
  refused(tandem_model_open(nullptr, nullptr, &model), "path");
  TandemSession* session = nullptr;
  refused(tandem_session_create(nullptr, &session), "config");
  TandemTrainer* trainer = nullptr;
  refused(tandem_trainer_create(nullptr, &trainer), "config");
  TandemPlan* plan = nullptr;
  refused(tandem_plan_make(nullptr, &plan), "options");

  // These have no status.
  tandem_session_close(nullptr);
  tandem_session_close(&session);
  tandem_trainer_close(nullptr);
  tandem_trainer_close(&trainer);
  tandem_model_close(nullptr);
  tandem_model_close(&model);
  tandem_plan_close(nullptr);
  tandem_plan_close(&plan);
  tandem_tensors_close(nullptr);
  tandem_tensors_close(&tensors);
  tandem_trainer_stop(nullptr);
  EXPECT_STREQ(tandem_trainer_summary(nullptr), "");
  EXPECT_EQ(tandem_tensors_count(nullptr), 0u);
}

TEST(CErrorsTest, AnObjectThatIsNotMadeIsNull) {
  TandemModel* model = reinterpret_cast<TandemModel*>(&model);  // as if it was not initialised
  EXPECT_EQ(tandem_model_open("/nowhere.onnx", nullptr, &model), TANDEM_USAGE);
  EXPECT_EQ(model, nullptr);
}

TEST(CErrorsTest, DiagnosticsHaveTheirParts) {
  auto config = sized<TandemSessionConfig>();
  config.model = testing::digits_model.c_str();
  config.batch_size = 4;
  config.toml = "[optimizer]\nkind = \"adamm\"\nlrr = 1\n";
  TandemSession* session = nullptr;
  ASSERT_EQ(tandem_session_create(&config, &session), TANDEM_USAGE);
  const std::string message = tandem_error_message();
  ASSERT_GE(tandem_error_count(), 2u);
  bool is_found = false;
  for (std::size_t i = 0; i < tandem_error_count(); ++i) {
    auto diagnostic = sized<TandemDiagnostic>();
    ASSERT_EQ(tandem_error_at(i, &diagnostic), TANDEM_OK);
    EXPECT_THAT(message, HasSubstr(diagnostic.message));
    if (std::strcmp(diagnostic.path, "optimizer.kind") != 0) continue;
    is_found = true;
    EXPECT_THAT(diagnostic.got, HasSubstr("adamm"));
    EXPECT_THAT(diagnostic.expected, HasSubstr("adam"));
  }
  EXPECT_TRUE(is_found) << message;
  auto none = sized<TandemDiagnostic>();
  EXPECT_EQ(tandem_error_at(tandem_error_count(), &none), TANDEM_USAGE);
  EXPECT_EQ(tandem_error_at(0, nullptr), TANDEM_USAGE);
  EXPECT_EQ(tandem_error_message(), message);  // reading an error leaves it

  std::thread([] {  // another thread has its own
    EXPECT_STREQ(tandem_error_message(), "");
    EXPECT_EQ(tandem_error_count(), 0u);
    EXPECT_EQ(tandem_session_save(nullptr, "x"), TANDEM_USAGE);
  })
      .join();
  EXPECT_EQ(tandem_error_message(), message);
}

TEST(CErrorsTest, StructsMayBeThoseOfLaterVersions) {
  struct {
    TandemModelOptions options;
    std::uint64_t later;
  } larger{};
  larger.options.struct_size = sizeof larger;
  TandemModel* model = nullptr;
  ASSERT_OK(tandem_model_open(testing::digits_model.c_str(), &larger.options, &model));
  struct {
    TandemModelInfo info;
    std::uint64_t later;
  } written{{}, 5};
  written.info.struct_size = sizeof written;
  ASSERT_OK(tandem_model_info(model, &written.info));
  EXPECT_EQ(written.info.parameters, 8u);
  EXPECT_EQ(written.info.struct_size, sizeof written);
  EXPECT_EQ(written.later, 0u);
  tandem_model_close(&model);

  larger.later = 1;  // a member that this library does not know
  EXPECT_EQ(tandem_model_open(testing::digits_model.c_str(), &larger.options, &model),
            TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("options: this struct has members that need"));
  for (const std::size_t size :
       {std::size_t{0}, sizeof(TandemModelOptions) - 1, std::size_t{5000}}) {
    larger.options.struct_size = size;
    EXPECT_EQ(tandem_model_open(testing::digits_model.c_str(), &larger.options, &model),
              TANDEM_USAGE);
    EXPECT_THAT(
        tandem_error_message(),
        HasSubstr("options: struct_size is not the size of this struct: expected the "
                  "sizeof of its type, here " +
                  std::to_string(sizeof(TandemModelOptions)) + ", got " + std::to_string(size)));
  }
}

TEST(CErrorsTest, ElementsOfAnArrayHaveOneSize) {
  auto config = sized<TandemSessionConfig>();
  const std::vector<const char*> settings{testing::cross_entropy.c_str(), "optimizer.kind=sgd",
                                          "optimizer.lr=0.1"};
  config.model = testing::digits_model.c_str();
  config.batch_size = 4;
  config.settings = testing::texts_in(settings);
  TandemSession* session = nullptr;
  ASSERT_OK(tandem_session_create(&config, &session));
  testing::CFeeds fed(testing::training_digits().batch(0, 4));
  fed[1].struct_size = sizeof(TandemTensor) + 8;
  EXPECT_EQ(tandem_session_step(session, fed.data(), fed.size(), nullptr), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("the elements of this array differ"));

  // Elements of a later version, one behind the other.
  struct Later {
    TandemTensor tensor;
    std::uint64_t later;
  };
  std::vector<Later> later;
  for (std::size_t i = 0; i < fed.size(); ++i) {
    later.push_back({fed[i], 0});
    later.back().tensor.struct_size = sizeof(Later);
  }
  EXPECT_OK(tandem_session_step(session, &later[0].tensor, later.size(), nullptr));
  EXPECT_EQ(tandem_session_step(session, nullptr, 2, nullptr), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("feeds: this argument is NULL"));
  tandem_session_close(&session);
}

}  // namespace
}  // namespace tandem
