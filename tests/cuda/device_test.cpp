// The CUDA device: its description, memory and its limits, blocking copies, and GPUs that cannot be
// used.
#include <gmock/gmock.h>

#include <thread>

#include "kernels/cuda/libraries/report.h"
#include "tests/cuda/support/fake_device.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t device_elements = 100, device_bytes = device_elements * sizeof(float);

std::unique_ptr<Device> device_of(std::shared_ptr<FakeRuntime> runtime, CudaOptions options = {}) {
  return cuda::make_device(options, std::move(runtime), std::make_shared<GivenLibraries>());
}

TEST(CudaDevice, SaysWhatItIs) {
  FakeDevice fake;
  EXPECT_EQ(fake.device->name(), "cuda:0");
  EXPECT_EQ(fake.device->facts().kind, "cuda");
  EXPECT_THAT(fake.device->facts().features, ElementsAre("float16", "bfloat16", "tf32", "sm_90"));
  EXPECT_EQ(fake.device->memory_bytes(), std::size_t{1} << 20);
  EXPECT_EQ(fake.device->monitor() != nullptr, true);
}

TEST(CudaDevice, OldGpusLackTypes) {
  FakeRuntimeOptions options;
  options.properties.name = "Old GPU";
  options.properties.major = 8;
  options.properties.minor = 6;
  const auto runtime = std::make_shared<FakeRuntime>(options);
  if (const std::string problem = report_gpus(*runtime).devices.at(0).problem; !problem.empty())
    GTEST_SKIP() << problem;
  EXPECT_THAT(device_of(runtime)->facts().features, Contains("sm_86"));
}

TEST(CudaDevice, WithoutALimitItTakesMostOfWhatIsFree) {
  FakeRuntimeOptions options;
  options.memory_bytes = 1 << 20;
  const auto runtime = std::make_shared<FakeRuntime>(options);
  void* others = nullptr;
  runtime->allocate(others, 1 << 18);
  // A sixteenth is left for libraries.
  EXPECT_EQ(device_of(runtime)->memory_bytes(), std::size_t{3} * (1 << 18) / 16 * 15);
  runtime->release(others);
}

TEST(CudaDevice, CountsMemory) {
  FakeDevice fake;
  auto first = fake.device->allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first->address()) % 64, 0u);
  EXPECT_EQ(first->bytes(), 1000u);
  const auto second = fake.device->allocate(256), empty = fake.device->allocate(0);
  EXPECT_NE(empty->address(), nullptr);
  EXPECT_EQ(fake.device->counters().bytes_in_use, 1024u + 256u);
  first.reset();
  EXPECT_EQ(fake.device->counters().bytes_in_use, 256u);
  EXPECT_EQ(fake.device->counters().peak_bytes, 1024u + 256u);
  EXPECT_EQ(fake.device->reserve(1 << 20), nullptr);
}

TEST(CudaDevice, MoreThanTheLimitNamesBothNumbers) {
  FakeDevice fake;
  const auto most = fake.device->allocate(1 << 20);
  try {
    fake.device->allocate(300);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cuda:0"), HasSubstr("at most 1048576 bytes"),
                                    HasSubstr("300 bytes wanted, 1048576 in use")));
  }
  EXPECT_EQ(fake.device->counters().bytes_in_use, std::size_t{1} << 20);
}

TEST(CudaDevice, MoreThanTheGpuHasNamesBothNumbers) {
  FakeRuntimeOptions options;
  options.memory_bytes = 1 << 16;
  const auto runtime = std::make_shared<FakeRuntime>(options);
  const auto device = device_of(runtime, {.memory_bytes = std::size_t{1} << 30});
  try {
    device->allocate(1 << 17);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("at most 65536 bytes"), HasSubstr("131072 bytes wanted")));
  }
  const auto smaller = device->allocate(1 << 15);  // the device still works
}

TEST(CudaDevice, MemoryStreamsAndEventsOutliveTheDevice) {
  FakeDevice fake;
  auto memory = fake.device->allocate(device_bytes);
  const auto kernel = affine_kernel(fake.runtime, 0, 7, device_elements);
  AffineCall call(*kernel, "fill", nullptr, memory->address(), device_bytes);
  fake.device.reset();
  fake.compute->run(call.call());
  fake.settle(*fake.compute);
  EXPECT_EQ(
      reinterpret_cast<float*>(fake.runtime->host_view(memory->address()))[device_elements - 1], 7);
  memory.reset();
  fake.compute.reset();
  fake.copy_in.reset();
  fake.copy_out.reset();
  fake.settled.reset();
  EXPECT_THAT(fake.runtime->leaks(), IsEmpty());
  EXPECT_THAT(fake.runtime->problems(), IsEmpty());
}

TEST(CudaDevice, BlockingCopiesComeAfterAllStreams) {
  FakeDeviceOptions options;
  options.runtime.late = true;
  FakeDevice fake(options);
  const auto memory = fake.device->allocate(device_bytes);
  const auto kernel = affine_kernel(fake.runtime, 0, 7, device_elements);
  AffineCall call(*kernel, "fill", nullptr, memory->address(), device_bytes);
  call.has_context = false;
  fake.compute->run(call.call());
  EXPECT_THAT(floats_at(*fake.device, memory->address(), device_elements), Each(7.0f));
  fake.compute->run(call.call());
  const std::vector<float> ones(device_elements, 1);
  fake.device->to_device(memory->address(), ones.data(), device_bytes);
  EXPECT_THAT(floats_at(*fake.device, memory->address(), device_elements), Each(1.0f));
  EXPECT_THAT(fake.runtime->problems(), IsEmpty());
  EXPECT_EQ(fake.first_error(), "");
  EXPECT_EQ(fake.device->counters().copies, 0u);  // only copies on streams count
}

TEST(CudaDevice, CopiesOfForeignAddressesAreRefused) {
  FakeDevice fake;
  std::vector<float> host(device_elements);
  EXPECT_THAT(error_text_of([&] { fake.device->to_host(host.data(), host.data() + 1, 4); }),
              HasSubstr("not in the memory of this device"));
}

TEST(CudaDevice, LaneHasTheGpuAndTheCallerKeepsHis) {
  FakeRuntimeOptions options;
  options.gpus = 2;
  const auto runtime = std::make_shared<FakeRuntime>(options);
  const auto device = device_of(runtime, {.name = "cuda:1", .ordinal = 1});
  std::thread::id lane;
  void* memory = nullptr;
  runtime->set_gpu(0);
  device->on_lane([&] {
    lane = std::this_thread::get_id();
    runtime->allocate(memory, 16);
  });
  EXPECT_NE(lane, std::this_thread::get_id());
  EXPECT_EQ(runtime->live_bytes(1), 16u);
  EXPECT_EQ(runtime->release(memory), cudaSuccess);
}

// Streams of two GPUs, enqueued by one thread and by several.
TEST(CudaDevice, TwoGpus) {
  FakeRuntimeOptions options;
  options.gpus = 2;
  const auto runtime = std::make_shared<FakeRuntime>(options);
  const auto zero = device_of(runtime), one = device_of(runtime, {.name = "cuda:1", .ordinal = 1});
  const auto stream_zero = zero->make_stream(), stream_one = one->make_stream();
  const auto x = zero->allocate(device_bytes), y = one->allocate(device_bytes);
  const auto kernel = affine_kernel(runtime, 1, 1, device_elements);
  AffineCall first(*kernel, "first", nullptr, x->address(), device_bytes);
  AffineCall second(*kernel, "second", y->address(), y->address(), device_bytes);
  first.has_context = second.has_context = false;
  const auto ready = zero->make_event();
  stream_zero->run(first.call());
  stream_zero->record(*ready, 1);
  std::thread([&] {
    stream_one->wait(*ready, 1);
    stream_one->copy(y->address(), x->address(), device_bytes, {"between"});
    stream_one->run(second.call());
  }).join();
  EXPECT_THAT(floats_at(*one, y->address(), device_elements), Each(2.0f));
  EXPECT_THAT(runtime->problems(), IsEmpty());
}

TEST(CudaDevice, WhatIsMissingIsSaid) {
  const auto refusal = [](FakeRuntimeOptions options, CudaOptions device) {
    try {
      device_of(std::make_shared<FakeRuntime>(options), device);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({.driver_version = 0}, {}),
              AllOf(HasSubstr("cuda:0 cannot be used"), HasSubstr("driver")));
  EXPECT_THAT(refusal({.driver_version = 12080}, {}), HasSubstr("12.8"));
  EXPECT_THAT(refusal({.gpus = 0}, {}), HasSubstr("no GPU"));
  EXPECT_THAT(refusal({.gpus = 2}, {.name = "cuda:2", .ordinal = 2}),
              AllOf(HasSubstr("no GPU 2"), HasSubstr("cuda:0 to cuda:1")));
  FakeRuntimeOptions old;
  old.properties.name = "GeForce 1080";
  old.properties.major = 6;
  old.properties.minor = 1;
  EXPECT_THAT(refusal(old, {}), AllOf(HasSubstr("GeForce 1080"), HasSubstr("6.1")));
}

TEST(CudaDevice, NeedsCublasLt) {
  struct OneMissing final : cuda::Libraries {
    explicit OneMissing(std::string name) : name(std::move(name)) {}
    const cuda::CublasLt* cublas_lt() override { return nullptr; }
    const cuda::Cudnn* cudnn() override { return nullptr; }
    const cuda::Nvrtc* nvrtc() override { return nullptr; }
    const cuda::Nccl* nccl() override { return nullptr; }
    std::vector<FoundLibrary> report() override {
      return {{name, "13.1", "", "", "was not found", "install it"}};
    }
    std::string name;
  };
  const auto text = [](const char* name) {
    return error_text_of([&] {
      cuda::make_device({}, std::make_shared<FakeRuntime>(), std::make_shared<OneMissing>(name));
    });
  };
  EXPECT_THAT(text("cuBLASLt"), AllOf(HasSubstr("cuBLASLt: was not found"), HasSubstr("install")));
  EXPECT_EQ(text("NCCL"), "");
}

TEST(CudaDevice, NothingIsLeft) {
  FakeDevice fake;
  {
    const auto memory = fake.device->allocate(device_bytes);
    const auto kernel = affine_kernel(fake.runtime, 0, 7, device_elements);
    AffineCall call(*kernel, "fill", nullptr, memory->address(), device_bytes);
    fake.compute->run(call.call());  // with a context
  }
  fake.settled.reset();
  fake.compute.reset();
  fake.copy_in.reset();
  fake.copy_out.reset();
  EXPECT_THAT(fake.runtime->leaks(), Not(IsEmpty()));  // those of the device itself
  fake.device.reset();
  EXPECT_THAT(fake.runtime->leaks(), IsEmpty());
}

}  // namespace
}  // namespace tandem::testing
