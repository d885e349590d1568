// Predicts rows of numbers as they arrive, up to eight at a time, without training.
// predict_stream MODEL.onnx ROWS.txt: a row has 64 numbers; "-": standard input
#include <tandem/session_config.h>
#include <tandem/tandem.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

namespace api = tandem::api;

/// The class of each row.
void predict(api::Session& session, const std::vector<float>& pixels) {
  const auto rows = static_cast<std::int64_t>(pixels.size() / 64);
  if (rows == 0) return;
  const api::Tensors made =
      session.predict({{"image", api::Tensor::view({rows, 1, 8, 8}, pixels)}});
  const std::span<const float> logits = made.at("logits").values<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = logits.begin() + 10 * row;
    std::printf("%td\n", std::max_element(first, first + 10) - first);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: predict_stream MODEL.onnx ROWS.txt\n"), 2;
  try {
    api::Session session(api::SessionConfig{
        .model = {.file = argv[1]}, .batch_size = 8, .optimizer = {.kind = api::Sgd{}}});
    std::ifstream file(argv[2]);
    std::istream& lines = std::string(argv[2]) == "-" ? std::cin : file;
    std::vector<float> pixels;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream numbers(line);
      for (float number; numbers >> number;) pixels.push_back(number);
      if (pixels.size() < 8 * 64) continue;
      predict(session, pixels);
      pixels.clear();
    }
    predict(session, pixels);
    return 0;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
