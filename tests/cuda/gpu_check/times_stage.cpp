// Step times of whole models on the GPU, as `tandem bench` measures them, on data made here.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>

#include "api/program/machine.h"
#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/cuda/gpu_check/stages.h"

namespace tandem::gpu_check {
namespace {

struct Workload {
  std::string name, folder;  // folder: of models/make_all.py
  std::int64_t batch = 0;
  std::string input;         // name of the model's input
  Shape sample;              // shape of one sample of the input
  std::int64_t ids = 0;      // 0: the input is numbers; else token ids below this
  std::int64_t classes = 0;  // 0: labels are 0 or 1
  Shape labels;              // shape of one sample's labels
  std::string precision = "float32";
  std::string optimizer;
  std::vector<std::string> place = {};
};

const char* const sgd = "kind = \"sgd\"\nlr = 1e-2\nmomentum = 0.9\n";
const char* const plain = "kind = \"sgd\"\nlr = 1e-2\n";
const char* const adamw = "kind = \"adamw\"\nlr = 1e-4\nweight_decay = 0.01\n";
const char* const wide_deep_optimizer =
    "kind = \"adam\"\nlr = 3.5e-4\ngroups = [\n"
    "  { at = \"wide:*\", kind = \"ftrl\", lr = 0.05, l1 = 1e-8, l2 = 1e-8, initial_accumulator = "
    "1.0 },\n  { at = \"deep:*\", kind = \"lazy_adam\" },\n]\n";

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = [] {
    std::vector<Workload> list;
    for (const std::int64_t batch : {32, 64, 1024}) {
      list.push_back({"mlp_b" + std::to_string(batch),
                      "mlp",
                      batch,
                      "image",
                      {784},
                      0,
                      10,
                      {},
                      "float32",
                      plain});
    }
    list.push_back({"wide_deep_host_tables",
                    "wide_deep",
                    16'000,
                    "ids",
                    {39},
                    184'968,
                    0,
                    {},
                    "float32",
                    wide_deep_optimizer,
                    {"{ at = \"{wide,deep}.**\", on = \"cpu\", ship = \"auto\" }"}});
    for (const std::string precision : {"float32", "bfloat16"}) {
      list.push_back(
          {"gpt_b16_" + precision, "gpt", 16, "tokens", {128}, 65, 65, {128}, precision, adamw});
    }
    for (const std::string folder : {"resnet50", "resnet50_224"}) {
      const std::int64_t extent = folder == "resnet50" ? 32 : 224;
      const std::int64_t classes = folder == "resnet50" ? 10 : 1000;
      for (const std::string precision : {"bfloat16", "float16"}) {
        list.push_back({folder + "_b256_" + precision,
                        folder,
                        256,
                        "image",
                        {3, extent, extent},
                        0,
                        classes,
                        {},
                        precision,
                        sgd});
      }
    }
    list.push_back({"bert_base_b32_bfloat16",
                    "bert_base",
                    32,
                    "tokens",
                    {128},
                    30'522,
                    30'522,
                    {128},
                    "bfloat16",
                    adamw});
    return list;
  }();
  return all;
}

/// Writes two whole batches of random numbers: a GPU runs faster on zeros.
void write_data(const Workload& w, const std::string& path) {
  const std::int64_t samples = w.batch * 2;
  const auto shape_of = [&](const Shape& sample) {
    Shape shape{samples};
    shape.insert(shape.end(), sample.begin(), sample.end());
    return shape;
  };
  std::uint32_t state = 5;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  HostTensor x(TensorType{w.ids > 0 ? DType::int64 : DType::float32, shape_of(w.sample)});
  if (w.ids > 0) {
    for (std::int64_t& id : x.as<std::int64_t>()) id = next() % w.ids;
  } else {
    for (float& v : x.as<float>()) v = static_cast<float>(next()) * 0x1p-23f - 1.0f;
  }
  HostTensor y(TensorType{w.classes > 0 ? DType::int64 : DType::float32, shape_of(w.labels)});
  if (w.classes > 0) {
    for (std::int64_t& label : y.as<std::int64_t>()) label = next() % w.classes;
  } else {
    for (float& label : y.as<float>()) label = static_cast<float>(next() % 2);
  }
  write_npz(path, {{"x", x}, {"y", y}});
}

std::string config_text(const Workload& w, const std::string& model, const std::string& data,
                        bool tf32) {
  const std::string kind = w.classes > 0 ? "softmax_cross_entropy" : "binary_cross_entropy";
  std::string text = "model = \"" + model + "\"\nbatch_size = " + std::to_string(w.batch) +
                     "\nsteps = 100\nseed = 1\ndevice = \"gpu\"\n";
  text += "[loss]\nterms = [ { name = \"loss\", kind = \"" + kind +
          "\", logits = \"logits\", labels = \"labels\" } ]\n";
  text += "[optimizer]\n" + w.optimizer;
  text += "[precision]\ncompute = \"" + w.precision + "\"\n";
  if (tf32) text += "tf32 = true\n";
  text += "[data]\nkind = \"npz\"\n[data.train]\nfiles = [ \"" + data +
          "\" ]\nshuffle = \"none\"\n[data.fields]\n" + w.input + " = \"x\"\nlabels = \"y\"\n";
  return text;
}

/// Returns the bench's report of a workload, and writes its trace if `trace` names a file.
Json measure(const Workload& w, const Options& options, const std::string& trace) {
  const std::string folder = std::filesystem::absolute(options.out).string();
  const std::string data = folder + "/" + w.name + ".npz", config = folder + "/" + w.name + ".toml";
  const std::string model =
      std::filesystem::absolute(options.models + "/" + w.folder + "/torchscript.onnx").string();
  write_data(w, data);
  std::ofstream(config) << config_text(w, model, data, options.tf32);
  api::BenchOptions bench;
  bench.seconds = options.seconds;
  bench.trace_path = trace;
  bench.place = w.place;
  if (options.use != "cuda:0") bench.devices = {"gpu=" + options.use};
  const api::Report report = api::bench(config, bench);
  std::filesystem::remove(data);
  return Json::parse(report.json);
}

std::string missing_model(const Workload& w, const Options& options) {
  const std::string path = options.models + "/" + w.folder + "/torchscript.onnx";
  if (std::filesystem::exists(path)) return "";
  return "there is no " + path + " (models/make_all.py, models/wide_deep/make_model.py --full)";
}

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const Workload& w : workloads()) names.push_back(w.name);
  return names;
}

void run_times(const Options& options, Report& report) {
  for (const Workload& w : workloads()) {
    if (!is_wanted(options, w.name)) continue;
    if (const std::string why = missing_model(w, options); !why.empty()) {
      report.skipped(w.name, why);
      continue;
    }
    try {
      const Json line = measure(w, options, "");
      report.value(w.name + " step", line["step_ms"], "ms");
      Json kept;
      for (const char* key : {"step_ms", "step_ms_p10", "step_ms_p90", "samples_per_second",
                              "peak_rss_mib", "queues", "operators"}) {
        if (line.contains(key)) kept[key] = line[key];
      }
      report.note(w.name, kept);
      report.passed(w.name);
    } catch (const std::exception& error) {
      report.failed(w.name, error.what());
    }
  }
}

double wall_by_longest(const Json& trace) {
  struct Track {
    std::vector<std::pair<double, double>> spans;
  };
  std::map<int, Track> tracks;
  double begin = 1e300, end = -1e300;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X") continue;
    const double from = event.at("ts"), until = from + event.at("dur").get<double>();
    tracks[event.at("tid")].spans.emplace_back(from, until);
    begin = std::min(begin, from);
    end = std::max(end, until);
  }
  double longest = 0;
  for (auto& [id, track] : tracks) {
    std::sort(track.spans.begin(), track.spans.end());
    double busy = 0, reached = -1e300;
    for (const auto& [from, until] : track.spans) {
      busy += std::max(0.0, until - std::max(from, reached));
      reached = std::max(reached, until);
    }
    longest = std::max(longest, busy);
  }
  return longest > 0 ? (end - begin) / longest : 1e300;
}

void run_trace_overlap(const Options& options, Report& report) {
  for (const Workload& w : workloads()) {
    if (w.folder != "wide_deep") continue;
    const std::string check = w.name + ", wall by the longest queue of its trace";
    if (!is_wanted(options, check)) continue;
    if (const std::string why = missing_model(w, options); !why.empty()) {
      report.skipped(check, why);
      continue;
    }
    const auto measure_overlap = [&] {
      const std::string path = options.out + "/" + w.name + "_trace.json";
      (void)measure(w, options, path);
      std::ifstream file(path);
      // The busy time comes from this run, whatever slowed it: only waiting makes more than 1.
      report.measured(check, wall_by_longest(Json::parse(file)), 1.15);
    };
    report.run(check, measure_overlap, options.is_broken);
  }
}

}  // namespace tandem::gpu_check
